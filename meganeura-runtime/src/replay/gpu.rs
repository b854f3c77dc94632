//! The replayer of devices with shaders: one pass of copies, one compute pass with the planned barriers, one
//! submission. Where times are asked for, each step is a pass of its own.

use std::ops::Range;

use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule::{Plan, Schedule};

use super::commands::{Command, commands};
use super::facts::Facts;
use super::program::{Call, Place, Replayer, Stretch, Work, span};
use crate::device::gpu::{Binding, Dispatch, Gpu, HostBuffer, Memory, Pipeline, Source, Transfer};
use crate::{Error, Result};

/// The pipelines of one entry.
pub struct GpuReplayer {
    device: Gpu,
    pipelines: Vec<Pipeline>,
}

/// The dispatches of one entry at known dimensions.
struct GpuWork {
    device: Gpu,
    name: String,
    /// Those that the commands name, in their order of text.
    pipelines: Vec<Pipeline>,
    commands: Vec<Command>,
    /// Where the commands of each launched step end.
    ends: Vec<usize>,
}

impl GpuReplayer {
    /// Makes the pipelines of all texts, in parallel.
    pub fn new(device: &Gpu, schedule: &Schedule, texts: &[&str]) -> Result<GpuReplayer> {
        let names: Vec<String> = (0..texts.len()).map(|k| format!("{} {k}", schedule.name)).collect();
        let sources = texts.iter().zip(&names).map(|(text, name)| Source { name, text });
        let pipelines = device.pipelines(&sources.collect::<Vec<_>>()).into_iter().collect::<Result<_>>()?;
        Ok(GpuReplayer { device: device.clone(), pipelines })
    }
}

impl Replayer for GpuReplayer {
    fn facts(&self) -> Facts {
        let limits = self.device.limits();
        Facts { workgroup_memory: limits.workgroup_bytes, binding: limits.binding_bytes }
    }

    fn prepare(&self, schedule: &Schedule, plan: &Plan, env: &Env) -> Result<Box<dyn Work>> {
        let (commands, ends) = commands(schedule, plan, env, &self.facts())?;
        let (device, name, pipelines) = (self.device.clone(), schedule.name.clone(), self.pipelines.clone());
        Ok(Box::new(GpuWork { device, name, pipelines, commands, ends }))
    }
}

impl Work for GpuWork {
    fn replay(&self, call: &Call<'_>) -> Result<()> {
        let commands = &self.commands[span(&self.ends, &call.steps)];
        let mut ends = Vec::with_capacity(commands.len());
        let mut stretches = Vec::with_capacity(commands.len() * 4);
        for command in commands {
            for point in &command.bindings {
                match (call.locate)(point.buffer, point.offset)? {
                    Place::Device(stretch) => stretches.push(stretch),
                    Place::Program(..) => return Err(self.fault("a value that was not brought to the device")),
                }
            }
            ends.push(stretches.len());
        }
        let bindings = stretches.iter().map(|stretch| self.binding(stretch)).collect::<Result<Vec<_>>>()?;
        let starts = [0].into_iter().chain(ends.iter().copied());
        let limits = self.device.limits();
        let grid = |groups| limits.grid(&self.name, groups);
        let grids = commands.iter().map(|command| grid(command.groups)).collect::<Result<Vec<_>>>()?;
        let ranges = starts.zip(&ends).map(|(start, end)| start..*end);
        let own = commands.iter().zip(&grids).zip(ranges).map(|((command, grid), range)| Dispatch {
            pipeline: &self.pipelines[command.text],
            buffers: &bindings[range],
            words: &command.words,
            grid: *grid,
            barrier: command.barrier,
        });
        let mut then = Updates::default();
        if let Some(updates) = call.then {
            for launch in &updates.launches {
                then.grids.push(limits.grid("the optimizer", launch.groups)?);
                let places = launch.places.iter().map(|place| self.binding(place));
                then.bindings.push(places.collect::<Result<Vec<_>>>()?);
            }
        }
        let (pipeline, launches) = match call.then {
            Some(updates) => (updates.pipeline.as_ref(), updates.launches.as_slice()),
            None => (None, &[][..]),
        };
        let spots = launches.iter().zip(then.bindings.iter().zip(&then.grids)).enumerate();
        let updates = spots.filter_map(|(k, (launch, (buffers, grid)))| {
            Some(Dispatch { pipeline: pipeline?, buffers, words: &launch.words, grid: *grid, barrier: k == 0 })
        });

        let mut recorder = self.device.recorder()?;
        let staged = call.uploads.iter().map(|(bytes, _)| self.stage(bytes)).collect::<Result<Vec<_>>>()?;
        if !staged.is_empty() {
            let copies = staged.iter().zip(call.uploads).map(|(staged, (bytes, to))| {
                let (from, to) = (staged.buffer().at(0), self.binding(to)?);
                Ok(Transfer::Copy { from, to, bytes: bytes.len() as u64 })
            });
            recorder.transfer(copies.collect::<Result<Vec<_>>>()?)?;
        }
        match &call.times {
            None => recorder.compute(own.chain(updates))?,
            Some(times) => {
                let own: Vec<Dispatch> = own.collect();
                let first = span(&self.ends, &call.steps).start;
                for step in call.steps.start..call.steps.end.min(self.ends.len()) {
                    let Range { start, end } = span(&self.ends, &(step..step + 1));
                    recorder.compute_timed(step, &own[start - first..end - first], times)?;
                }
                recorder.compute_timed(self.ends.len(), &updates.collect::<Vec<_>>(), times)?;
            }
        }
        recorder.submit()?;
        Ok(())
    }
}

/// Where the updates of a call are bound.
#[derive(Default)]
struct Updates<'a> {
    bindings: Vec<Vec<Binding<'a>>>,
    grids: Vec<[u32; 3]>,
}

impl GpuWork {
    fn binding<'a>(&self, stretch: &'a Stretch) -> Result<Binding<'a>> {
        let Some(buffer) = stretch.buffer.gpu() else { return Err(self.fault("a buffer of another device")) };
        Ok(buffer.at(stretch.offset))
    }

    /// A copy of the program's values that the submission can read.
    fn stage(&self, bytes: &[u8]) -> Result<HostBuffer> {
        let mut staged = self.device.host_buffer(Memory::Upload, bytes.len() as u64)?;
        staged.write(0, bytes)?;
        Ok(staged)
    }

    fn fault(&self, what: &str) -> Error {
        Error::Kernel { kernel: self.name.clone(), problem: format!("found {what}") }
    }
}
