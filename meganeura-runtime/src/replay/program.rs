//! An entry on a device: its schedule, decoded once, its kernels, made once, its recipes, made once a set of sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule::{BufferId, Schedule};

use super::recipe::{Facts, Recipe, recipe};
use crate::device::{Binding, Submission};
use crate::{Error, Result};

/// Recipes that a program keeps; the oldest goes.
const RECIPES: usize = 16;

/// What a kind of device does with recipes. The schedule is the same for all of them.
pub trait Replayer: Send + Sync {
    /// What the choice of variants depends on.
    fn facts(&self) -> Facts;

    /// Runs copies in, the recipe's commands, and whatever follows them, in one submission.
    fn replay(&self, recipe: &Recipe, call: &Call<'_>) -> Result<Submission>;
}

/// The memory of one call.
pub struct Call<'a> {
    /// Where a byte of a buffer of the schedule lies.
    pub locate: &'a dyn Fn(BufferId, u64) -> Result<Stretch>,
    /// Copies before the first command.
    pub copies: &'a [Copy],
    /// Dispatches after the last command, behind a barrier: the optimizer's update.
    pub then: &'a [crate::device::Dispatch<'a>],
}

/// A byte of a device's memory; a binding goes from it to the end of its buffer.
#[derive(Clone)]
pub struct Stretch {
    /// The buffer.
    pub buffer: crate::device::Buffer,
    /// Bytes into it.
    pub offset: u64,
}

impl Stretch {
    /// The device layer's view of it.
    pub fn binding(&self) -> Binding<'_> {
        self.buffer.at(self.offset)
    }
}

/// Bytes from one place to another.
#[derive(Clone)]
pub struct Copy {
    /// From where.
    pub from: Stretch,
    /// To where.
    pub to: Stretch,
    /// How many, a multiple of four.
    pub bytes: u64,
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
        let made = Arc::new(recipe(&self.schedule, env, &self.replayer.facts())?);
        if self.recipes.len() >= RECIPES
            && let Some(oldest) = self.recipes.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone())
        {
            self.recipes.remove(&oldest);
        }
        self.recipes.insert(key, (self.clock, made.clone()));
        Ok(made)
    }

    /// Runs a recipe of this program.
    pub fn replay(&self, recipe: &Recipe, call: &Call<'_>) -> Result<Submission> {
        self.replayer.replay(recipe, call)
    }
}
