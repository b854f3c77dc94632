//! Which steps read what others wrote, and which steps run at once.

use std::collections::{BTreeMap, BTreeSet};

use meganeura_shaders::schedule::{BufferId, Item, LoopId, Plan, Step};

/// A step of the text, loop bodies once.
pub(super) struct Placed<'s> {
    pub(super) step: &'s Step,
    /// The stretch between barriers that it runs in.
    pub(super) epoch: usize,
}

/// A loop, by the epochs of its body.
pub(super) struct Around {
    pub(super) id: LoopId,
    pub(super) epochs: [usize; 2],
    /// How many loops are around it.
    pub(super) depth: usize,
    steps: [usize; 2],
}

/// The steps of a plan with what orders them.
pub(super) struct Order<'s> {
    pub(super) steps: Vec<Placed<'s>>,
    pub(super) loops: Vec<Around>,
    /// From the step that writes to the step that reads; of `true` ones the reader is in the next iteration.
    pub(super) edges: BTreeSet<(usize, usize, bool)>,
}

impl<'s> Order<'s> {
    pub(super) fn new(plan: &'s Plan) -> Order<'s> {
        let mut order = Order { steps: vec![], loops: vec![], edges: BTreeSet::new() };
        order.items(&plan.items, 0, &mut 0);
        order.connect();
        order
    }

    fn items(&mut self, items: &'s [Item], depth: usize, epoch: &mut usize) {
        for item in items {
            match item {
                Item::Step(step) => {
                    *epoch += usize::from(step.barrier);
                    self.steps.push(Placed { step, epoch: *epoch });
                }
                Item::Loop { id, body } => {
                    let (at, first) = (self.loops.len(), self.steps.len());
                    self.loops.push(Around { id: *id, epochs: [0; 2], depth, steps: [first; 2] });
                    self.items(body, depth + 1, epoch);
                    let last = self.steps.len().saturating_sub(1).max(first);
                    let epochs = [first, last].map(|step| self.steps.get(step).map_or(0, |placed| placed.epoch));
                    self.loops[at] = Around { id: *id, epochs, depth, steps: [first, last] };
                }
            }
        }
    }

    /// A buffer is read from the step before that wrote it last, and in a loop also from the last one of the iteration
    /// before, where that stands behind the reader.
    fn connect(&mut self) {
        let mut writers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
        for (k, placed) in self.steps.iter().enumerate() {
            placed.step.members.iter().for_each(|member| writers.entry(member.write.buffer).or_default().push(k));
        }
        for (reader, placed) in self.steps.iter().enumerate() {
            let places = placed.step.members.iter().flat_map(|member| member.places_read());
            for (place, _) in places {
                let Some(writers) = writers.get(&place.buffer) else { continue };
                if let Some(writer) = writers.iter().rev().find(|writer| **writer < reader) {
                    self.edges.insert((*writer, reader, false));
                }
                let within = |around: &&Around| (around.steps[0]..=around.steps[1]).contains(&reader);
                let innermost = self.loops.iter().filter(within).max_by_key(|around| around.depth);
                if let Some(around) = innermost
                    && let Some(writer) = writers.iter().rev().find(|writer| **writer <= around.steps[1])
                    && *writer >= reader
                {
                    self.edges.insert((*writer, reader, true));
                }
            }
        }
    }
}
