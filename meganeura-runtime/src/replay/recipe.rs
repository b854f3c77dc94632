//! A schedule at known dimensions: what is dispatched, bound to which bytes of which buffer, with which words.
//!
//! Loops are unrolled here and nothing is decided but which variant of a step this device runs. A recipe depends on
//! the dimensions alone, not on where a call's buffers lie, so it is made once for each set of dimensions.

use meganeura_shaders::arena::Arena;
use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::schedule::{
    ALIGN, Binding, BufferId, Condition, Dispatch, ELEMENT, Item, LoopId, Operand, Place, Schedule, Step, Variant, Word,
};

use crate::{Error, Result};

/// What the choice of variants depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Bytes of shared memory that a workgroup may use.
    pub workgroup_memory: u32,
    /// Bytes of one storage binding.
    pub binding: u64,
}

/// Bytes of a buffer of the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The buffer.
    pub buffer: BufferId,
    /// A multiple of [`ALIGN`].
    pub offset: u64,
}

/// One dispatch.
#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    /// The shader text.
    pub text: usize,
    /// What `b0`, `b1`, … are.
    pub bindings: Vec<Point>,
    /// The words of `p`.
    pub words: Vec<u32>,
    /// Workgroups.
    pub groups: u64,
    /// Whether everything before must have ended.
    pub barrier: bool,
}

/// Everything that a call at these dimensions runs.
#[derive(Debug)]
pub struct Recipe {
    /// The dimensions.
    pub env: Env,
    /// Where arena buffers lie.
    pub arena: Arena,
    /// In order.
    pub commands: Vec<Command>,
}

/// Makes the recipe of a schedule at given dimensions for a device.
pub(super) fn recipe(schedule: &Schedule, env: Env, facts: &Facts) -> Result<Recipe> {
    let Some(plan) = schedule.plans.iter().find(|plan| holds(&plan.condition, &env, facts)) else {
        return Err(fault(schedule, "no plan for these dimensions"));
    };
    for life in &plan.lives {
        let (name, found) = (&schedule.buffers[life.buffer].name, bytes(schedule, life.buffer, &env));
        if found > facts.binding {
            let what = format!("value `{name}` of `{}`", schedule.name);
            return Err(Error::Limit { what, limit: "bytes of one storage binding", allowed: facts.binding, found });
        }
    }
    let arena = plan.arena_in_segments(&schedule.buffers, &env, i64::try_from(facts.binding).unwrap_or(i64::MAX));
    let index = vec![0; schedule.loops.len()];
    let mut cook = Cook { schedule, env: &env, facts, index, commands: vec![] };
    cook.items(&plan.items)?;
    let commands = cook.commands;
    Ok(Recipe { env, arena, commands })
}

fn fault(schedule: &Schedule, what: &str) -> Error {
    Error::Kernel { kernel: schedule.name.clone(), problem: format!("the schedule has {what}") }
}

fn holds(condition: &Condition, env: &Env, facts: &Facts) -> bool {
    match condition {
        Condition::Always => true,
        Condition::AtMost(dim, most) => dim.eval(env) <= *most,
        Condition::WorkgroupMemory(bytes) => *bytes <= facts.workgroup_memory,
        Condition::All(all) => all.iter().all(|condition| holds(condition, env, facts)),
    }
}

struct Cook<'a> {
    schedule: &'a Schedule,
    env: &'a Env,
    facts: &'a Facts,
    index: Vec<i64>,
    commands: Vec<Command>,
}

impl Cook<'_> {
    fn items(&mut self, items: &[Item]) -> Result<()> {
        for item in items {
            match item {
                Item::Step(step) => self.step(step)?,
                Item::Loop { id, body } => self.repeat(*id, body)?,
            }
        }
        Ok(())
    }

    fn repeat(&mut self, id: LoopId, body: &[Item]) -> Result<()> {
        let info = &self.schedule.loops[id];
        let count = info.count.eval(self.env);
        for iteration in 0..count {
            self.index[id] = if info.reversed { count - 1 - iteration } else { iteration };
            self.items(body)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let variant = step.variants.iter().find(|v| holds(&v.condition, self.env, self.facts));
        let Some(Variant { dispatches, .. }) = variant else {
            return Err(fault(self.schedule, "a step without a variant for this device"));
        };
        for (k, dispatch) in dispatches.iter().enumerate() {
            let barrier = if k == 0 { step.barrier } else { dispatch.barrier };
            self.dispatch(step, dispatch, barrier)?;
        }
        Ok(())
    }

    fn dispatch(&mut self, step: &Step, dispatch: &Dispatch, barrier: bool) -> Result<()> {
        let mut inside = Vec::with_capacity(dispatch.bindings.len());
        let mut bindings = Vec::with_capacity(dispatch.bindings.len());
        for binding in &dispatch.bindings {
            let place = match binding {
                Binding::Write(member) => &step.members[*member].write,
                Binding::Read(member, argument) => match &step.members[*member].reads[*argument].0 {
                    Operand::Memory(place) => place,
                    Operand::Index(_) => return Err(fault(self.schedule, "a loop index that is bound as memory")),
                },
            };
            let start = self.start(place);
            let line = start - start.rem_euclid(ALIGN);
            bindings.push(Point { buffer: place.buffer, offset: line.unsigned_abs() });
            inside.push((start - line) / ELEMENT);
        }
        let words = dispatch.words.iter().map(|(name, word)| self.word(name, word, &inside));
        let words = words.collect::<Result<Vec<u32>>>()?;
        let (text, groups) = (dispatch.text as usize, dispatch.groups.eval(self.env).unsigned_abs());
        self.commands.push(Command { text, bindings, words, groups, barrier });
        Ok(())
    }

    /// The first byte of a place in its buffer.
    fn start(&self, place: &Place) -> i64 {
        let slots = place.slots.iter().map(|slot| {
            let at = slot.base.eval(self.env) + slot.index.map_or(0, |id| self.index[id]);
            (if slot.parity { at & 1 } else { at }) * slot.stride.eval(self.env)
        });
        place.offset.eval(self.env) + slots.sum::<i64>()
    }

    fn word(&self, name: &str, word: &Word, inside: &[i64]) -> Result<u32> {
        let value = match word {
            Word::Size(dim) => dim.eval(self.env),
            Word::SizeAsFloat(dim) => return Ok((dim.eval(self.env) as f32).to_bits()),
            Word::Inside(binding) => inside.get(*binding).copied().unwrap_or(-1),
            Word::Index(id) => self.index[*id],
        };
        u32::try_from(value).map_err(|_| Error::Limit {
            what: format!("word `{name}` of a kernel of `{}`", self.schedule.name),
            limit: "32-bit index",
            allowed: u64::from(u32::MAX),
            found: value.unsigned_abs(),
        })
    }
}

/// The size of a buffer outside the arena.
pub fn bytes(schedule: &Schedule, buffer: BufferId, env: &Env) -> u64 {
    let size: &Dim = &schedule.buffers[buffer].bytes;
    size.eval(env).unsigned_abs()
}
