//! How long the steps of a call took.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The times of a call's steps, as far as the device has told them; a GPU does so when it is done with the call.
#[derive(Debug)]
pub struct Times(Mutex<Vec<Option<Duration>>>);

impl Times {
    /// No times yet of this many steps.
    pub fn new(steps: usize) -> Times {
        Times(Mutex::new(vec![None; steps]))
    }

    /// Adds to the time of a step; others are ignored.
    pub fn add(&self, step: usize, time: Duration) {
        if let Some(known) = self.lock().get_mut(step) {
            *known = Some(known.unwrap_or_default() + time);
        }
    }

    /// The times by step; none of what did not run.
    pub fn told(&self) -> Vec<Option<Duration>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Duration>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
