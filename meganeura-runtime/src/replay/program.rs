//! An entry on a device: its schedule, decoded once, its kernels, made once, its recipes, made once a set of sizes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use meganeura_shaders::arena::Arena;
use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule::{BufferId, Plan, Schedule};

use super::facts::{Facts, choose};
use super::steps::Steps;
use super::update::Updates;
use crate::device::{Binding, Buffer, Times};
use crate::{Error, Result};

/// Recipes that a program keeps; the oldest goes.
const RECIPES: usize = 16;

/// A kind of device, as the replay of one entry sees it. The schedule is the same for all of them.
///
/// [`GpuReplayer`](super::GpuReplayer) dispatches the shader texts of the schedule's steps,
/// [`HostReplayer`](super::HostReplayer) runs their kernel descriptions on the CPU.
pub trait Replayer: Send + Sync {
    /// What the choice of plans and variants depends on.
    fn facts(&self) -> Facts;

    /// Everything that a plan runs at these dimensions.
    fn prepare(&self, schedule: &Schedule, plan: &Plan, env: &Env) -> Result<Box<dyn Work>>;
}

/// What a replayer made of a plan at known dimensions. It does not depend on where a call's buffers lie.
pub trait Work: Send + Sync {
    /// Brings the arguments in, runs the plan, then the updates.
    fn replay(&self, call: &Call<'_>) -> Result<()>;
}

/// A plan at known dimensions.
pub struct Recipe {
    /// The dimensions.
    pub env: Env,
    /// Where arena buffers lie.
    pub arena: Arena,
    /// The number of the plan that it runs.
    plan: usize,
    work: Box<dyn Work>,
    /// Made when somebody asks.
    steps: OnceLock<Arc<Steps>>,
}

impl Recipe {
    /// What it launches, for people.
    pub(crate) fn steps(&self, model: &str, schedule: &Schedule) -> Result<&Arc<Steps>> {
        if let Some(known) = self.steps.get() {
            return Ok(known);
        }
        let made = Steps::new(model, schedule, &schedule.plans[self.plan], &self.env)?;
        Ok(self.steps.get_or_init(|| Arc::new(made)))
    }

    /// The plan that it runs.
    pub(crate) fn plan<'s>(&self, schedule: &'s Schedule) -> &'s Plan {
        &schedule.plans[self.plan]
    }

    /// Runs it.
    pub fn replay(&self, call: &Call<'_>) -> Result<()> {
        self.work.replay(call)
    }
}

/// The memory of one call.
pub struct Call<'a> {
    /// Where a byte of a buffer of the schedule lies.
    pub locate: &'a dyn Fn(BufferId, u64) -> Result<Place<'a>>,
    /// Values of the program that become buffers before the first step.
    pub uploads: &'a [(&'a [u8], Stretch)],
    /// What follows the last step: the optimizer's update.
    pub then: Option<&'a Updates>,
    /// Which of the launched steps run, counted with loops unrolled.
    pub steps: Range<usize>,
    /// Where the time of each goes; that of the updates stands behind those of all steps.
    pub times: Option<Arc<Times>>,
}

impl<'a> Call<'a> {
    /// A whole call.
    pub fn new(
        locate: &'a dyn Fn(BufferId, u64) -> Result<Place<'a>>,
        uploads: &'a [(&'a [u8], Stretch)],
        then: Option<&'a Updates>,
    ) -> Call<'a> {
        Call { locate, uploads, then, steps: 0..usize::MAX, times: None }
    }
}

/// The launches of some steps, of which each ends at the given number.
pub(super) fn span(ends: &[usize], steps: &Range<usize>) -> Range<usize> {
    let end = |steps: usize| steps.min(ends.len()).checked_sub(1).map_or(0, |last| ends[last]);
    end(steps.start)..end(steps.end)
}

/// Where a value of a call lies.
pub enum Place<'a> {
    /// In a device's memory.
    Device(Stretch),
    /// In the program's own, from this byte on; only the CPU reads it there.
    Program(&'a [u32], u64),
}

/// A byte of a device's memory; a binding goes from it to the end of its buffer.
#[derive(Clone)]
pub struct Stretch {
    /// The buffer.
    pub buffer: Buffer,
    /// Bytes into it.
    pub offset: u64,
}

impl From<Binding<'_>> for Stretch {
    fn from(binding: Binding<'_>) -> Stretch {
        Stretch { buffer: binding.buffer.clone(), offset: binding.offset }
    }
}

/// A decoded entry.
pub struct Program {
    schedule: Schedule,
    replayer: Box<dyn Replayer>,
    /// By the values of all symbols, with the time of the last use.
    recipes: BTreeMap<Vec<i64>, (u64, Arc<Recipe>)>,
    clock: u64,
}

impl Program {
    /// Decodes the bytes that `model!` emitted and lets `open` prepare the texts for a device.
    pub fn open(bytes: &[u8], open: impl FnOnce(&Schedule) -> Result<Box<dyn Replayer>>) -> Result<Program> {
        let schedule: Schedule = postcard::from_bytes(bytes).map_err(|error| Error::Kernel {
            kernel: "schedule".into(),
            problem: format!("cannot be read: {error}"),
        })?;
        let replayer = open(&schedule)?;
        Ok(Program { schedule, replayer, recipes: BTreeMap::new(), clock: 0 })
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// What runs at these dimensions.
    pub fn recipe(&mut self, env: Env) -> Result<Arc<Recipe>> {
        self.clock += 1;
        let key: Vec<i64> = self.schedule.symbols.declared().iter().map(|bounds| bounds.dim.eval(&env)).collect();
        if let Some((used, known)) = self.recipes.get_mut(&key) {
            *used = self.clock;
            return Ok(known.clone());
        }
        let (plan, arena) = choose(&self.schedule, &env, &self.replayer.facts())?;
        let work = self.replayer.prepare(&self.schedule, &self.schedule.plans[plan], &env)?;
        let made = Arc::new(Recipe { env, arena, plan, work, steps: OnceLock::new() });
        if self.recipes.len() >= RECIPES
            && let Some(oldest) = self.recipes.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone())
        {
            self.recipes.remove(&oldest);
        }
        self.recipes.insert(key, (self.clock, made.clone()));
        Ok(made)
    }
}
