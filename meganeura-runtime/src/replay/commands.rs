//! What a plan dispatches at known dimensions: shader texts, bound to which bytes of which buffer, with which words.
//!
//! Nothing is decided here but which variant of a step this device runs.

use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule::{
    ALIGN, Binding, BufferId, Dispatch, ELEMENT, Operand, Plan, Schedule, Step, Variant, Word,
};

use super::facts::{Facts, fault, start, unroll};
use crate::{Error, Result};

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

/// What a plan dispatches at given dimensions, and where the dispatches of each launched step end.
pub(super) fn commands(
    schedule: &Schedule,
    plan: &Plan,
    env: &Env,
    facts: &Facts,
) -> Result<(Vec<Command>, Vec<usize>)> {
    let (mut commands, mut ends) = (vec![], vec![]);
    unroll(schedule, plan, env, |step, _, index| {
        let variant = step.variants.iter().find(|variant| facts.allow(&variant.condition, env));
        let Some(Variant { dispatches, .. }) = variant else {
            return Err(fault(schedule, "a step without a variant for this device"));
        };
        let site = Site { schedule, env, index };
        for (k, dispatch) in dispatches.iter().enumerate() {
            let barrier = if k == 0 { step.barrier } else { dispatch.barrier };
            commands.push(site.command(step, dispatch, barrier)?);
        }
        ends.push(commands.len());
        Ok(())
    })?;
    Ok((commands, ends))
}

/// Where in the loops a step is.
struct Site<'a> {
    schedule: &'a Schedule,
    env: &'a Env,
    index: &'a [i64],
}

impl Site<'_> {
    fn command(&self, step: &Step, dispatch: &Dispatch, barrier: bool) -> Result<Command> {
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
            let start = start(place, self.env, self.index);
            let line = start - start.rem_euclid(ALIGN);
            bindings.push(Point { buffer: place.buffer, offset: line.unsigned_abs() });
            inside.push((start - line) / ELEMENT);
        }
        let words = dispatch.words.iter().map(|(name, word)| self.word(name, word, &inside));
        let words = words.collect::<Result<Vec<u32>>>()?;
        let (text, groups) = (dispatch.text as usize, dispatch.groups.eval(self.env).unsigned_abs());
        Ok(Command { text, bindings, words, groups, barrier })
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
