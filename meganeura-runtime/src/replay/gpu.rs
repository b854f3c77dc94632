//! The replayer of devices with shaders: one pass of copies, one compute pass with the planned barriers, one
//! submission.

use meganeura_shaders::schedule::Schedule;

use super::program::{Call, Replayer};
use super::recipe::{Facts, Recipe};
use crate::Result;
use crate::device::{Device, Dispatch, Pipeline, Source, Submission, Transfer};

/// The pipelines of one entry.
pub struct GpuReplayer {
    device: Device,
    name: String,
    pipelines: Vec<Pipeline>,
}

impl GpuReplayer {
    /// Makes the pipelines of all texts, in parallel.
    pub fn new(device: &Device, schedule: &Schedule, texts: &[&str]) -> Result<GpuReplayer> {
        let names: Vec<String> = (0..texts.len()).map(|k| format!("{} {k}", schedule.name)).collect();
        let sources = texts.iter().zip(&names).map(|(text, name)| Source { name, text });
        let pipelines = device.pipelines(&sources.collect::<Vec<_>>()).into_iter().collect::<Result<_>>()?;
        Ok(GpuReplayer { device: device.clone(), name: schedule.name.clone(), pipelines })
    }
}

impl Replayer for GpuReplayer {
    fn facts(&self) -> Facts {
        let limits = self.device.limits();
        Facts { workgroup_memory: limits.workgroup_bytes, binding: limits.binding_bytes }
    }

    fn replay(&self, recipe: &Recipe, call: &Call<'_>) -> Result<Submission> {
        let commands = &recipe.commands;
        let mut ends = Vec::with_capacity(commands.len());
        let mut stretches = Vec::with_capacity(commands.len() * 4);
        for command in commands {
            for point in &command.bindings {
                stretches.push((call.locate)(point.buffer, point.offset)?);
            }
            ends.push(stretches.len());
        }
        let bindings: Vec<_> = stretches.iter().map(super::Stretch::binding).collect();
        let starts = [0].into_iter().chain(ends.iter().copied());
        let limits = self.device.limits();
        let grids = commands.iter().map(|command| limits.grid(&self.name, command.groups));
        let grids = grids.collect::<Result<Vec<_>>>()?;
        let own = commands.iter().zip(&grids).zip(starts.zip(&ends)).map(|((command, grid), (start, end))| Dispatch {
            pipeline: &self.pipelines[command.text],
            buffers: &bindings[start..*end],
            words: &command.words,
            grid: *grid,
            barrier: command.barrier,
        });
        let mut recorder = self.device.recorder()?;
        if !call.copies.is_empty() {
            let copies = call.copies.iter();
            recorder.transfer(copies.map(|copy| Transfer::Copy {
                from: copy.from.binding(),
                to: copy.to.binding(),
                bytes: copy.bytes,
            }))?;
        }
        recorder.compute(own.chain(call.then.iter().copied()))?;
        recorder.submit()
    }
}
