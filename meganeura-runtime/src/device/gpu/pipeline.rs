//! Pipelines from WGSL texts.
//!
//! A text declares storage buffers `b0 … b14` and one uniform `p`, a struct of `u32` words, without groups or
//! bindings; it declares only those it uses. The driver library binds by name from a layout that is a value, so one
//! dynamic [`Arguments`] serves every kernel: buffers in the order of their numbers, then the words.

use super::context::{Context, panic_message};
use super::limits::{self, Limits, MAX_BUFFERS, MAX_WORDS};
use super::record::Dispatch;
use crate::{Error, Result};
use blade_graphics::{self as gpu, ShaderBindable as _};
use naga::{AddressSpace, Module, ScalarKind, ShaderStage, TypeInner};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

const NAMES: [&str; MAX_BUFFERS] =
    ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11", "b12", "b13", "b14"];

/// A shared handle of one compiled kernel.
#[derive(Clone)]
pub struct Pipeline(pub(super) Arc<PipelineInner>);

pub(super) struct PipelineInner {
    context: Arc<Context>,
    // Taken only by `drop`.
    raw: Option<gpu::ComputePipeline>,
    name: String,
    interface: Interface,
    pub(super) mark: AtomicU64,
}

/// What a text declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Numbers of the buffers, ascending: `[0, 2]` for `b0` and `b2`.
    pub buffers: Vec<usize>,
    /// Words of `p`, 0 without it.
    pub words: usize,
    /// Invocations along each axis of a workgroup.
    pub workgroup: [u32; 3],
}

/// A kernel's name, for messages, and its WGSL text.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What error messages call it.
    pub name: &'a str,
    /// The whole text, with one compute entry point.
    pub text: &'a str,
}

impl Pipeline {
    pub(super) fn new(context: &Arc<Context>, limits: &Limits, source: Source) -> Result<Self> {
        context.check()?;
        let refuse = |problem: String| Error::Kernel { kernel: source.name.to_string(), problem };
        let module = naga::front::wgsl::parse_str(source.text).map_err(|e| refuse(e.emit_to_string(source.text)))?;
        let (interface, entry) = inspect(&module, limits, source.name)?;
        let layout = layout(&interface);
        let raw = catch_unwind(AssertUnwindSafe(|| {
            context.call_unguarded(|gpu| {
                let shader = gpu
                    .try_create_shader(gpu::ShaderDesc { source: "", naga_module: Some(module.clone()) })
                    .map_err(|_| validation_message(&module, source.text))?;
                Ok(gpu.create_compute_pipeline(gpu::ComputePipelineDesc {
                    name: "",
                    data_layouts: &[&layout],
                    compute: shader.at(&entry),
                }))
            })
        }));
        let raw = raw.unwrap_or_else(|panic| Err(panic_message(&*panic))).map_err(refuse)?;
        Ok(Self(Arc::new(PipelineInner {
            context: context.clone(),
            raw: Some(raw),
            name: source.name.to_string(),
            interface,
            mark: AtomicU64::new(0),
        })))
    }

    /// The name given with the text.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What the text declares.
    pub fn interface(&self) -> &Interface {
        &self.0.interface
    }

    pub(super) fn raw(&self) -> &gpu::ComputePipeline {
        let Some(raw) = &self.0.raw else { unreachable!("only `drop` takes the pipeline") };
        raw
    }

    pub(super) fn refuse(&self, problem: String) -> Error {
        Error::Kernel { kernel: self.0.name.clone(), problem }
    }

    /// True for the first call of each recording.
    pub(super) fn mark(&self, recording: u64) -> bool {
        self.0.mark.swap(recording, Ordering::Relaxed) != recording
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pipeline({}, {:?})", self.0.name, self.0.interface)
    }
}

impl Drop for PipelineInner {
    fn drop(&mut self) {
        if let Some(mut raw) = self.raw.take() {
            self.context.destroy("destroying a pipeline", |gpu| gpu.destroy_compute_pipeline(&mut raw));
        }
    }
}

/// Makes pipelines on as many threads as the host has; one result for each source, in their order.
pub(super) fn create(context: &Arc<Context>, limits: &Limits, sources: &[Source]) -> Vec<Result<Pipeline>> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(sources.len());
    if threads <= 1 {
        return sources.iter().map(|&source| Pipeline::new(context, limits, source)).collect();
    }
    let results: Vec<OnceLock<Result<Pipeline>>> = sources.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(&source) = sources.get(index) else { break };
                    // Each index is handed out once, so the cell is empty.
                    let _ = results[index].set(Pipeline::new(context, limits, source));
                }
            });
        }
    });
    let lost = || context.lose("a thread that made pipelines stopped".to_string());
    results.into_iter().map(|cell| cell.into_inner().unwrap_or_else(|| Err(lost()))).collect()
}

fn layout(interface: &Interface) -> gpu::ShaderDataLayout {
    let mut bindings: Vec<_> =
        interface.buffers.iter().map(|&number| (NAMES[number], gpu::ShaderBinding::Buffer)).collect();
    if interface.words > 0 {
        bindings.push(("p", gpu::ShaderBinding::Plain { size: 4 * interface.words as u32 }));
    }
    gpu::ShaderDataLayout { bindings }
}

/// Reads the interface off the module and checks the conventions and the limits; also the entry point's name.
fn inspect(module: &Module, limits: &Limits, name: &str) -> Result<(Interface, String)> {
    let refuse = |problem: String| Error::Kernel { kernel: name.to_string(), problem };
    let [entry] = &module.entry_points[..] else {
        return Err(refuse(format!("expected one entry point, found {}", module.entry_points.len())));
    };
    if entry.stage != ShaderStage::Compute {
        return Err(refuse(format!("expected a compute entry point, found {:?}", entry.stage)));
    }
    let mut buffers = Vec::new();
    let mut words = 0;
    let mut workgroup_bytes = 0u64;
    for (_, variable) in module.global_variables.iter() {
        let variable_name = variable.name.as_deref().unwrap_or("_");
        match variable.space {
            AddressSpace::Storage { .. } => {
                let number = NAMES.iter().position(|&known| known == variable_name);
                buffers.push(number.ok_or_else(|| {
                    refuse(format!("expected storage variables `b0` to `b14`, found `{variable_name}`"))
                })?);
            }
            AddressSpace::Uniform if variable_name == "p" => {
                words = words_of(module, variable.ty).ok_or_else(|| {
                    refuse("expected `p` to be a struct of `u32` words, found another type".to_string())
                })?;
            }
            AddressSpace::Uniform => {
                return Err(refuse(format!("expected one uniform `p`, found `{variable_name}`")));
            }
            AddressSpace::WorkGroup => {
                workgroup_bytes += u64::from(module.types[variable.ty].inner.size(module.to_ctx()));
            }
            _ => {}
        }
    }
    buffers.sort_unstable();
    let what = || format!("kernel `{name}`");
    limits::check(what, "words of `p`", MAX_WORDS as u64, words as u64)?;
    limits::check(what, "bytes of workgroup memory", limits.workgroup_bytes.into(), workgroup_bytes)?;
    let invocations = entry.workgroup_size.iter().map(|&n| u64::from(n)).product();
    limits::check(what, "invocations of a workgroup", limits.invocations.into(), invocations)?;
    for (allowed, found) in limits.workgroup.into_iter().zip(entry.workgroup_size) {
        limits::check(what, "invocations along an axis of a workgroup", allowed.into(), found.into())?;
    }
    Ok((Interface { buffers, words, workgroup: entry.workgroup_size }, entry.name.clone()))
}

fn words_of(module: &Module, ty: naga::Handle<naga::Type>) -> Option<usize> {
    let TypeInner::Struct { members, span } = &module.types[ty].inner else { return None };
    let is_word = |member: &naga::StructMember| match module.types[member.ty].inner {
        TypeInner::Scalar(scalar) => scalar.kind == ScalarKind::Uint && scalar.width == 4,
        _ => false,
    };
    members.iter().all(is_word).then_some(*span as usize / 4)
}

fn validation_message(module: &Module, text: &str) -> String {
    let flags = naga::valid::ValidationFlags::all() ^ naga::valid::ValidationFlags::BINDINGS;
    match naga::valid::Validator::new(flags, naga::valid::Capabilities::all()).validate(module) {
        Err(error) => error.emit_to_string(text),
        Ok(_) => "needs a capability that the device does not have".to_string(),
    }
}

/// The arguments of any kernel: the buffers that it declares, in the order of their numbers, then its words.
pub(super) struct Arguments<'a>(pub(super) &'a Dispatch<'a>);

impl gpu::ShaderData for Arguments<'_> {
    fn layout() -> gpu::ShaderDataLayout {
        unreachable!("layouts are made from each text")
    }

    fn fill(&self, mut context: gpu::PipelineContext) {
        let interface = self.0.pipeline.interface();
        for (index, &number) in interface.buffers.iter().enumerate() {
            let binding = &self.0.buffers[number];
            gpu::BufferPiece { buffer: binding.buffer.0.raw, offset: binding.offset }
                .bind_to(&mut context, index as u32);
        }
        bind_words(self.0.words, &mut context, interface.buffers.len() as u32);
    }
}

/// Plain data is bound by its Rust type, whose size must be that of the struct: one instance for each length.
fn bind_words(words: &[u32], context: &mut gpu::PipelineContext, index: u32) {
    macro_rules! bind {
        ($($count:literal)*) => {
            match words.len() {
                0 => {}
                $($count => {
                    if let Ok(words) = <[u32; $count]>::try_from(words) {
                        words.bind_to(context, index);
                    }
                })*
                more => unreachable!("{more} words passed the check against MAX_WORDS"),
            }
        };
    }
    bind!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
          31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60);
}
