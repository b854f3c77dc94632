//! What both replayers ask of a schedule at known dimensions: which plan is taken, what runs, where places begin.

use meganeura_shaders::arena::Arena;
use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule::{BufferId, Condition, Item, Place, Plan, Schedule, Step, steps};

use crate::{Error, Result};

/// What the choice of plans and variants depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Bytes of shared memory that a workgroup may use.
    pub workgroup_memory: u32,
    /// Bytes of one buffer that kernels can reach.
    pub binding: u64,
}

impl Facts {
    /// Whether a condition holds at these dimensions.
    pub fn allow(&self, condition: &Condition, env: &Env) -> bool {
        match condition {
            Condition::Always => true,
            Condition::AtMost(dim, most) => dim.eval(env) <= *most,
            Condition::WorkgroupMemory(bytes) => *bytes <= self.workgroup_memory,
            Condition::All(all) => all.iter().all(|condition| self.allow(condition, env)),
        }
    }
}

/// The number of the first plan that a device may take, and where its arena buffers lie.
pub(super) fn choose(schedule: &Schedule, env: &Env, facts: &Facts) -> Result<(usize, Arena)> {
    let mut plans = schedule.plans.iter().enumerate();
    let Some((number, plan)) = plans.find(|(_, plan)| facts.allow(&plan.condition, env)) else {
        return Err(fault(schedule, "no plan for these dimensions"));
    };
    for life in &plan.lives {
        let (name, found) = (&schedule.buffers[life.buffer].name, bytes(schedule, life.buffer, env));
        if found > facts.binding {
            let what = format!("value `{name}` of `{}`", schedule.name);
            return Err(Error::Limit { what, limit: "bytes of one storage binding", allowed: facts.binding, found });
        }
    }
    let most = i64::try_from(facts.binding).unwrap_or(i64::MAX);
    Ok((number, plan.arena_in_segments(&schedule.buffers, env, most)))
}

/// The size of a buffer outside the arena.
pub fn bytes(schedule: &Schedule, buffer: BufferId, env: &Env) -> u64 {
    schedule.buffers[buffer].bytes.eval(env).unsigned_abs()
}

/// The first byte of a place in its buffer, at these indices of the loops.
pub(crate) fn start(place: &Place, env: &Env, index: &[i64]) -> i64 {
    let slots = place.slots.iter().map(|slot| {
        let at = slot.base.eval(env) + slot.index.map_or(0, |id| index[id]);
        (if slot.parity { at & 1 } else { at }) * slot.stride.eval(env)
    });
    place.offset.eval(env) + slots.sum::<i64>()
}

/// Calls `each` for every step that a plan runs, loops unrolled, with the number of the step in the text and the
/// indices of all loops.
pub(crate) fn unroll(
    schedule: &Schedule,
    plan: &Plan,
    env: &Env,
    each: impl FnMut(&Step, usize, &[i64]) -> Result<()>,
) -> Result<()> {
    Unroll { schedule, env, index: vec![0; schedule.loops.len()], each }.items(&plan.items, 0).map(drop)
}

struct Unroll<'a, F> {
    schedule: &'a Schedule,
    env: &'a Env,
    index: Vec<i64>,
    each: F,
}

impl<F: FnMut(&Step, usize, &[i64]) -> Result<()>> Unroll<'_, F> {
    /// Runs items of which the first step is number `next`; gives the number behind the last.
    fn items(&mut self, items: &[Item], mut next: usize) -> Result<usize> {
        for item in items {
            next = match item {
                Item::Step(step) => {
                    (self.each)(step, next, &self.index)?;
                    next + 1
                }
                Item::Loop { id, body } => {
                    let info = &self.schedule.loops[*id];
                    let count = info.count.eval(self.env);
                    for iteration in 0..count {
                        self.index[*id] = if info.reversed { count - 1 - iteration } else { iteration };
                        self.items(body, next)?;
                    }
                    next + steps(body).len()
                }
            };
        }
        Ok(next)
    }
}

/// A schedule that cannot be run: a fault of the compiler.
pub(super) fn fault(schedule: &Schedule, what: &str) -> Error {
    Error::Kernel { kernel: schedule.name.clone(), problem: format!("the schedule has {what}") }
}
