//! A Vulkan device that runs one dispatch after another; buffers live in memory that the host sees.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Once;

use blade_graphics as gpu;
use gpu::{ShaderBindable, ShaderData};
use meganeura_shaders::schedule::MAX_BINDINGS;

/// A device, or none on this machine.
pub(crate) struct Vulkan {
    context: gpu::Context,
    encoder: gpu::CommandEncoder,
    /// Made pipelines by their texts: the driver compiles each once.
    pipelines: BTreeMap<String, gpu::ComputePipeline>,
}

/// A dispatch with everything known.
pub(crate) struct Run<'a> {
    pub(crate) text: &'a str,
    /// Buffer and byte offset of each binding.
    pub(crate) bindings: Vec<(usize, u64)>,
    pub(crate) words: Vec<u32>,
    pub(crate) groups: u64,
}

const NAMES: [&str; MAX_BINDINGS] =
    ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11", "b12", "b13", "b14"];

struct Data {
    buffers: [gpu::BufferPiece; MAX_BINDINGS],
    words: [u32; 64],
}

impl ShaderData for Data {
    fn layout() -> gpu::ShaderDataLayout {
        let mut bindings: Vec<_> = NAMES.iter().map(|name| (*name, gpu::ShaderBinding::Buffer)).collect();
        bindings.push(("p", gpu::ShaderBinding::Plain { size: 256 }));
        gpu::ShaderDataLayout { bindings }
    }

    fn fill(&self, mut context: gpu::PipelineContext) {
        for (number, buffer) in self.buffers.iter().enumerate() {
            buffer.bind_to(&mut context, number as u32);
        }
        self.words.bind_to(&mut context, MAX_BINDINGS as u32);
    }
}

impl Vulkan {
    /// None, with a line that says so, where there is no Vulkan device; under `CI` that is a failure.
    pub(crate) fn open() -> Option<Vulkan> {
        static TOLD: Once = Once::new();
        // SAFETY: the context outlives everything made from it, as `Vulkan` owns all of it.
        let context = unsafe { gpu::Context::init(gpu::ContextDesc::default()) };
        let context = match context {
            Ok(context) => context,
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "there is no Vulkan device: {error:?}");
                TOLD.call_once(|| {
                    // Past the capture of test output, which hides what passes.
                    let _ = writeln!(std::io::stderr(), "skipped on Vulkan: there is no device ({error:?})");
                });
                return None;
            }
        };
        let desc = gpu::CommandEncoderDesc { name: "test", buffer_count: 1, manual_barriers: false };
        let encoder = context.create_command_encoder(desc);
        Some(Vulkan { context, encoder, pipelines: BTreeMap::new() })
    }

    /// Runs dispatches, each after the one before, over buffers that start as given; returns what they become.
    pub(crate) fn run(&mut self, buffers: &[Vec<u32>], runs: &[Run<'_>]) -> Vec<Vec<u32>> {
        let made: Vec<gpu::Buffer> = buffers
            .iter()
            .map(|words| {
                let size = (words.len() * 4).max(256) as u64;
                let desc = gpu::BufferDesc { name: "test", size, memory: gpu::Memory::Shared };
                let buffer = self.context.create_buffer(desc);
                // SAFETY: the buffer is mapped, at least as long as the words, and no command uses it yet.
                unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), buffer.data().cast::<u32>(), words.len()) };
                buffer
            })
            .collect();
        let layout = Data::layout();
        for run in runs {
            // The library wants the uniform to have the size of the bound type.
            let padding: String = (run.words.len()..64).map(|word| format!("    pad{word}: u32,\n")).collect();
            let text = run.text.replacen("\n}", &format!("\n{padding}}}"), 1);
            let pipeline = self.pipelines.entry(text).or_insert_with_key(|text| {
                let shader = self.context.create_shader(gpu::ShaderDesc { source: text, naga_module: None });
                let desc =
                    gpu::ComputePipelineDesc { name: "test", data_layouts: &[&layout], compute: shader.at("main") };
                self.context.create_compute_pipeline(desc)
            });
            let mut data = Data { buffers: [made[0].into(); MAX_BINDINGS], words: [0; 64] };
            for (slot, (buffer, offset)) in data.buffers.iter_mut().zip(&run.bindings) {
                *slot = made[*buffer].at(*offset);
            }
            data.words[..run.words.len()].copy_from_slice(&run.words);
            self.encoder.start();
            {
                let mut pass = self.encoder.compute("test");
                let mut bound = pass.with(pipeline);
                bound.bind(0, &data);
                let x = run.groups.clamp(1, 65_535);
                let grid = [x as u32, run.groups.div_ceil(x) as u32, 1];
                if run.groups > 0 {
                    bound.dispatch(grid);
                }
            }
            let sync = self.context.submit(&mut self.encoder);
            assert!(self.context.wait_for(&sync, 60_000).unwrap(), "the device does not answer");
        }
        let read = |(buffer, words): (&gpu::Buffer, &Vec<u32>)| {
            // SAFETY: all commands have ended, and the buffer is as long as it was when it was filled.
            unsafe { std::slice::from_raw_parts(buffer.data().cast::<u32>(), words.len()) }.to_vec()
        };
        let results = made.iter().zip(buffers).map(read).collect();
        made.into_iter().for_each(|buffer| self.context.destroy_buffer(buffer));
        results
    }
}
