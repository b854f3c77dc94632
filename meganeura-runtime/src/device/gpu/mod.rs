//! GPUs, and whatever else speaks Vulkan: buffers, pipelines, recordings, submissions.
//!
//! What comes in are WGSL texts, words, grids and byte offsets; what goes out are submissions that can be waited
//! for. All checks against limits and sizes happen before anything reaches the driver, and a panic of the driver
//! library becomes an error that marks the device as lost. Beside the mapping of files this is the only module of the
//! crate with `unsafe`: what the driver library requires, mapped memory, and that encoders and sync points may change
//! threads.

mod buffer;
mod candidates;
mod context;
mod limits;
mod pipeline;
mod probe;
mod query;
mod queue;
mod record;
mod staging;

pub use buffer::{Binding, Buffer, Memory};
pub use limits::{BINDING_ALIGNMENT, Limits, MAX_BUFFERS, MAX_WORDS};
pub use pipeline::{Interface, Pipeline, Source};
pub use record::{Dispatch, Recorder, Submission, Transfer};
pub use staging::HostBuffer;

pub(super) use candidates::{Candidate, candidates};

use super::DeviceInfo;
use crate::Result;
use context::Context;
use pipeline::PipelineInner;
use queue::Queue;
use staging::Staging;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// A device with shaders; cloning gives another handle of the same one.
#[derive(Clone)]
pub struct Gpu {
    shared: Arc<Shared>,
}

struct Shared {
    context: Arc<Context>,
    queue: Arc<Queue>,
    staging: Arc<Staging>,
    info: DeviceInfo,
    facts: Facts,
    subgroup: OnceLock<Option<u32>>,
    pipelines: Mutex<BTreeMap<String, Weak<PipelineInner>>>,
}

/// What the driver says about a device beyond the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Whether shaders may compute in f16.
    pub f16: bool,
    /// Tile size of cooperative matrices of f16 with f32 accumulators, 0 without them.
    pub cooperative_f16: u32,
    /// Tile size of cooperative matrices of f32, 0 without them.
    pub cooperative_f32: u32,
}

impl Gpu {
    /// Runs on a context that the program also uses for other things.
    pub fn new(context: Arc<blade_graphics::Context>) -> Self {
        let info = candidates::info(context.device_information());
        let capabilities = context.capabilities();
        let facts = Facts {
            f16: capabilities.shader_float16,
            cooperative_f16: capabilities.cooperative_matrix.f16_tile,
            cooperative_f32: capabilities.cooperative_matrix.f32_tile,
        };
        let (limits, heap) = query::query(&info.name).unwrap_or((Limits::BASELINE, 0));
        let context = Arc::new(Context::new(context, info.name.clone(), limits, heap));
        let queue = Arc::new(Queue::new(context.clone()));
        let (staging, pipelines, subgroup) = Default::default();
        Self { shared: Arc::new(Shared { context, queue, staging, info, facts, subgroup, pipelines }) }
    }

    /// Its name, driver and kind.
    pub fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    /// Bytes of device and staging memory that this device's handles, tensors and models hold at the moment.
    pub fn allocated_bytes(&self) -> u64 {
        self.shared.context.allocated()
    }

    /// Whether it was lost; every call but this one then fails with [`Error::DeviceLost`].
    pub fn is_lost(&self) -> bool {
        self.shared.context.is_lost()
    }
    /// What it is trusted with.
    pub fn limits(&self) -> &Limits {
        self.shared.context.limits()
    }

    /// What its driver says beyond the baseline.
    pub fn facts(&self) -> &Facts {
        &self.shared.facts
    }

    /// How many invocations a subgroup has, if all of a workgroup of 256 have as many and lie in the order of their
    /// indices; found by running a kernel once.
    pub fn subgroup_size(&self) -> Result<Option<u32>> {
        if let Some(known) = self.shared.subgroup.get() {
            return Ok(*known);
        }
        let found = probe::subgroup_size(self)?;
        Ok(*self.shared.subgroup.get_or_init(|| found))
    }

    /// Fails with [`Error::OutOfMemory`] if `bytes` are more than the driver says are left.
    pub fn check_memory(&self, what: &str, bytes: u64) -> Result<()> {
        self.shared.queue.reap()?;
        buffer::check_budget(&self.shared.context, what, bytes)
    }

    /// Device memory of at least `bytes`, with undefined content; `what` names it in errors.
    pub fn buffer(&self, what: &str, bytes: u64) -> Result<Buffer> {
        self.shared.queue.reap()?;
        Buffer::new(&self.shared.context, what, bytes, Memory::Device)
    }

    /// Host memory of at least `bytes`, with undefined content.
    pub fn host_buffer(&self, memory: Memory, bytes: u64) -> Result<HostBuffer> {
        HostBuffer::new(&self.shared.queue, &self.shared.staging, memory, bytes)
    }

    /// Sets every byte of buffers to zero, after all that was submitted before.
    pub fn clear<'a>(&self, buffers: impl Iterator<Item = &'a Buffer>) -> Result<()> {
        let mut buffers = buffers.peekable();
        if buffers.peek().is_none() {
            return Ok(());
        }
        let mut recorder = self.recorder()?;
        recorder.transfer(buffers.map(|to| Transfer::Fill { to: to.at(0), bytes: to.bytes(), value: 0 }))?;
        recorder.submit()?;
        Ok(())
    }

    /// Pipelines of texts, each made once while any is in use; new ones are made on several threads.
    pub fn pipelines(&self, sources: &[Source]) -> Vec<Result<Pipeline>> {
        let mut known: Vec<Option<Pipeline>> = {
            let pipelines = self.lock_pipelines();
            let find = |source: &Source| pipelines.get(source.text)?.upgrade().map(Pipeline);
            sources.iter().map(find).collect()
        };
        let mut missing: Vec<Source> = Vec::new();
        for (source, _) in sources.iter().zip(&known).filter(|(_, known)| known.is_none()) {
            if missing.iter().all(|other| other.text != source.text) {
                missing.push(*source);
            }
        }
        let made = pipeline::create(&self.shared.context, self.limits(), &missing);
        let mut pipelines = self.lock_pipelines();
        pipelines.retain(|_, pipeline| pipeline.strong_count() > 0);
        for (source, pipeline) in missing.iter().zip(&made) {
            if let Ok(pipeline) = pipeline {
                pipelines.insert(source.text.to_string(), Arc::downgrade(&pipeline.0));
            }
        }
        drop(pipelines);
        let result = |(index, source): (usize, &Source)| match known[index].take() {
            Some(pipeline) => Ok(pipeline),
            None => match missing.iter().position(|other| other.text == source.text) {
                Some(at) => made[at].clone(),
                None => unreachable!("a source is known or missing"),
            },
        };
        sources.iter().enumerate().map(result).collect()
    }

    /// One pipeline.
    pub fn pipeline(&self, name: &str, text: &str) -> Result<Pipeline> {
        let mut made = self.pipelines(&[Source { name, text }]);
        let Some(pipeline) = made.pop() else { unreachable!("one source gives one result") };
        pipeline
    }

    /// Waits for all that was submitted; the times of timed recordings are told then.
    pub fn settle(&self) -> Result<()> {
        self.shared.queue.settle()
    }

    /// Begins a recording.
    pub fn recorder(&self) -> Result<Recorder> {
        Recorder::new(&self.shared.queue)
    }

    /// Copies bytes to the device; they may change at once, and everything submitted later sees them.
    pub fn upload(&self, to: Binding, bytes: &[u8]) -> Result<()> {
        staging::upload(&self.shared.queue, &self.shared.staging, to, bytes)
    }

    /// Copies bytes from the device after everything submitted so far, and waits for them.
    pub fn download(&self, from: Binding, into: &mut [u8]) -> Result<()> {
        staging::download(&self.shared.queue, &self.shared.staging, from, into)
    }

    /// Whether both are handles of one device.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn lock_pipelines(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Weak<PipelineInner>>> {
        self.shared.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.info.fmt(f)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({})", self.shared.info)
    }
}
