//! What a call runs, for people.

use std::fmt;

use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule as data;

use crate::picture::Picture;
use crate::session::Entry;
use crate::{Error, Result};

/// The schedule of an entry: kernels, steps, bytes and operations. `Display` shows it with symbolic sizes.
#[derive(Clone, Debug)]
pub struct Schedule(data::Schedule);

impl Schedule {
    #[doc(hidden)]
    pub fn read(entry: &Entry) -> Result<Schedule> {
        let read = postcard::from_bytes(entry.schedule);
        let fault = |error| Error::Kernel { kernel: entry.name.into(), problem: format!("cannot be read: {error}") };
        read.map(Schedule).map_err(fault)
    }

    /// The table at given dimensions, in order of their declaration in the model.
    pub fn at(&self, dimensions: &[i64]) -> Result<String> {
        Ok(self.0.table(&self.bind(dimensions)?).to_string())
    }

    /// A picture at given dimensions: steps with what they read from each other, and the arena over time.
    pub fn picture(&self, title: &str, dimensions: &[i64]) -> Result<Picture> {
        let env = self.bind(dimensions)?;
        let Some(plan) = self.0.plans.iter().find(|plan| plan.condition.holds_at(&env)) else {
            return Err(Error::Kernel { kernel: self.0.name.clone(), problem: "the schedule has no plan".into() });
        };
        Ok(Picture::new(title, &self.0, plan, &env))
    }

    fn bind(&self, dimensions: &[i64]) -> Result<Env> {
        let env = self.0.symbols.bind(dimensions);
        let env = env.map_err(|out| Error::Mismatch {
            name: out.name.clone(),
            expected: format!("a value in {}..={} step {}", out.low, out.high, out.step),
            found: out.value.map_or_else(|| "none".into(), |value| value.to_string()),
        })?;
        check(&self.0, &env)?;
        Ok(env)
    }

    /// The data.
    #[doc(hidden)]
    pub fn data(&self) -> &data::Schedule {
        &self.0
    }
}

/// Whether known dimensions keep what their bounds do not promise.
pub(crate) fn check(schedule: &data::Schedule, env: &Env) -> Result<()> {
    let Some(broken) = schedule.checks.iter().find(|check| !check.holds(env)) else { return Ok(()) };
    let concerned = &broken.low.symbols() | &broken.high.symbols();
    let found = schedule.symbols.declared().into_iter().filter(|bounds| concerned.contains(&bounds.symbol));
    let found: Vec<String> = found.map(|bounds| format!("{} = {}", bounds.name, bounds.dim.eval(env))).collect();
    let expected = broken.show(&schedule.symbols);
    Err(Error::Mismatch { name: broken.what.clone(), expected, found: found.join(", ") })
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
