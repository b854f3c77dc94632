//! Times of steps, as people ask for them.

use std::sync::Arc;
use std::time::Duration;

use super::record::{Recorded, Summed, Taken};
use super::trace;
use crate::replay::Steps;
use crate::{Error, Result};

/// Where the time of calls went, step by step. `Display` prints tables by step, layer and kernel.
pub struct Profile {
    pub(super) device: String,
    pub(super) entries: Vec<Entry>,
    /// Those that are kept one by one, in the order in which they began.
    pub(super) calls: Vec<Recorded>,
}

/// The calls of one entry.
pub(super) struct Entry {
    pub(super) model: String,
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) steps: Vec<StepTime>,
}

/// The time of one step of a schedule, in all calls together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StepTime {
    /// The model's name.
    pub model: String,
    /// The entry's; of a training step `loss, training`.
    pub entry: String,
    /// The number of the step in the schedule; the optimizer's update has the one behind the last.
    pub number: usize,
    /// Its kernels.
    pub kernel: String,
    /// What it computes, as the language names it.
    pub what: String,
    /// The dotted path of the layer that it serves, empty at the top.
    pub layer: String,
    /// How often it ran: more than once a call inside of a loop.
    pub launches: u64,
    /// How long that took.
    pub time: Duration,
    /// Bytes that it moved, each value once a launch.
    pub bytes: u64,
    /// Its floating-point operations.
    pub flops: u64,
}

impl Profile {
    pub(super) fn new(device: String, taken: Taken) -> Profile {
        let Taken { mut summed, calls } = taken;
        for call in &calls {
            match summed.iter_mut().find(|sum| Arc::ptr_eq(&sum.steps, &call.steps)) {
                Some(sum) => sum.add(&call.times),
                None => {
                    let mut sum = Summed::of(&call.steps);
                    sum.add(&call.times);
                    summed.push(sum);
                }
            }
        }
        let mut entries: Vec<Entry> = vec![];
        for sum in &summed {
            let Steps { model, entry, .. } = &*sum.steps;
            let at = entries.iter().position(|known| (&known.model, &known.name) == (model, entry));
            let at = at.unwrap_or_else(|| {
                entries.push(Entry { model: model.clone(), name: entry.clone(), calls: 0, steps: vec![] });
                entries.len() - 1
            });
            entries[at].add(sum);
        }
        Profile { device, entries, calls }
    }

    /// The device, as it prints.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Every step that ran, entry by entry, in the order of their schedules.
    pub fn steps(&self) -> impl Iterator<Item = &StepTime> {
        self.entries.iter().flat_map(|entry| &entry.steps)
    }

    /// The calls of an entry of a model.
    pub fn calls(&self, model: &str, entry: &str) -> u64 {
        let entries = self.entries.iter().filter(|known| known.model == model && known.name == entry);
        entries.map(|known| known.calls).sum()
    }

    /// The time of all steps together.
    pub fn time(&self) -> Duration {
        self.steps().map(|step| step.time).sum()
    }

    /// The calls on a line of time in the trace-event format, JSON that <https://ui.perfetto.dev> and `chrome://tracing`
    /// open. Of very many calls it has the last.
    pub fn trace(&self) -> String {
        trace::trace(&self.device, &self.calls)
    }

    /// Writes [`Profile::trace`] to a file.
    pub fn write_trace(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        let path = path.as_ref();
        std::fs::write(path, self.trace()).map_err(|error| Error::File {
            doing: "writing",
            path: path.display().to_string(),
            source: Arc::new(error),
        })
    }
}

impl Entry {
    fn add(&mut self, sum: &Summed) {
        self.calls += sum.calls;
        let steps = &sum.steps;
        for (k, (count, time)) in sum.launches.iter().enumerate().filter(|(_, (count, _))| *count > 0) {
            let text = steps.launched.get(k).map(|launched| (launched.number, steps.text(launched)));
            let number = text.map_or(steps.texts.len(), |(number, _)| number);
            let at = self.steps.binary_search_by_key(&number, |step| step.number).unwrap_or_else(|at| {
                let new = StepTime {
                    model: steps.model.clone(),
                    entry: steps.entry.clone(),
                    number,
                    kernel: text.map_or("update".into(), |(_, text)| text.kernel.clone()),
                    what: text.map_or("optimizer".into(), |(_, text)| text.what.clone()),
                    layer: text.map_or(String::new(), |(_, text)| text.layer.clone()),
                    launches: 0,
                    time: Duration::ZERO,
                    bytes: 0,
                    flops: 0,
                };
                self.steps.insert(at, new);
                at
            });
            let step = &mut self.steps[at];
            step.launches += count;
            step.time += *time;
            step.bytes += text.map_or(0, |(_, text)| text.bytes * count);
            step.flops += text.map_or(0, |(_, text)| text.flops * count);
        }
    }
}
