//! A schedule unrolled at given sizes: what runs between two barriers, and where values lie.

use std::collections::BTreeMap;

use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::schedule::{After, BufferId, ELEMENT, Item, Loop, Place, Plan, Schedule, Slot, Step};

/// One launch.
#[derive(Clone, Debug)]
pub struct Call<'s> {
    /// What runs.
    pub step: &'s Step,
    /// The index of each loop, as far as it is running.
    pub index: Vec<i64>,
}

/// What runs between two barriers, and the buffers whose life ends there.
#[derive(Clone, Debug, Default)]
pub struct Group<'s> {
    /// Launches, in the order of the text.
    pub calls: Vec<Call<'s>>,
    /// Buffers that nobody reads later.
    pub ends: Vec<BufferId>,
}

/// All groups of a call at these sizes.
pub fn trace<'s>(schedule: &'s Schedule, plan: &'s Plan, env: &Env) -> Vec<Group<'s>> {
    let mut ends: BTreeMap<After, Vec<BufferId>> = BTreeMap::new();
    plan.lives.iter().for_each(|life| ends.entry(life.end).or_default().push(life.buffer));
    let index = vec![0; schedule.loops.len()];
    let mut tracer = Tracer { schedule, env, ends, index, step: 0, groups: vec![], open: Group::default() };
    tracer.items(&plan.items);
    tracer.groups.push(tracer.open);
    tracer.groups
}

struct Tracer<'s, 'e> {
    schedule: &'s Schedule,
    env: &'e Env,
    ends: BTreeMap<After, Vec<BufferId>>,
    index: Vec<i64>,
    step: usize,
    groups: Vec<Group<'s>>,
    open: Group<'s>,
}

impl<'s> Tracer<'s, '_> {
    fn items(&mut self, items: &'s [Item]) {
        for item in items {
            let after = match item {
                Item::Step(step) => {
                    if step.barrier {
                        self.groups.push(std::mem::take(&mut self.open));
                    }
                    // The next iteration's buffer may begin where that of this one ends.
                    self.open.ends.retain(|buffer| step.places().all(|place| place.buffer != *buffer));
                    self.open.calls.push(Call { step, index: self.index.clone() });
                    self.step += 1;
                    After::Step(self.step - 1)
                }
                Item::Loop { id, body } => {
                    let Loop { count, reversed, .. } = &self.schedule.loops[*id];
                    let (count, start) = (count.eval(self.env), self.step);
                    for iteration in 0..count {
                        self.index[*id] = if *reversed { count - 1 - iteration } else { iteration };
                        self.step = start;
                        self.items(body);
                    }
                    After::Loop(*id)
                }
            };
            self.open.ends.extend(self.ends.get(&after).into_iter().flatten());
        }
    }
}

/// The element of its buffer that a place begins at.
pub fn begin(place: &Place, index: &[i64], env: &Env) -> usize {
    let slot = |slot: &Slot| {
        let at = slot.base.eval(env) + slot.index.map_or(0, |id| index[id]);
        (if slot.parity { at & 1 } else { at }) * slot.stride.eval(env)
    };
    let lead: i64 = place.lead.iter().map(|rows| rows.first.eval(env) * rows.stride.eval(env)).sum();
    ((place.offset.eval(env) + place.slots.iter().map(slot).sum::<i64>() + lead) / ELEMENT) as usize
}

/// The elements of a value, as (first, length) runs within its buffer.
pub fn runs(place: &Place, shape: &[Dim], index: &[i64], env: &Env) -> Vec<(usize, usize)> {
    let starts = place.lead.iter().fold(vec![begin(place, index, env)], |starts, rows| {
        let (count, stride) = (rows.count.eval(env) as usize, (rows.stride.eval(env) / ELEMENT) as usize);
        starts.iter().flat_map(|start| (0..count).map(move |row| start + row * stride)).collect()
    });
    let length = env.shape(&shape[place.lead.len()..]).iter().product::<i64>() as usize;
    starts.into_iter().map(|start| (start, length)).collect()
}

/// The next of a sequence of numbers that look random (SplitMix64).
pub fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
