//! Device memory that is used again: results of calls and copies of arguments.
//!
//! The pool keeps a handle of every buffer that it made. One is free again when nobody else has a handle: no tensor,
//! and no submission in flight, which holds what it uses.

use crate::Result;
use crate::device::{Buffer, Device};

/// Buffers that a pool remembers; more live on by themselves until their last handle goes.
const REMEMBERED: usize = 64;

/// Buffers, free or not.
#[derive(Default)]
pub(crate) struct Pool {
    buffers: Vec<Buffer>,
}

impl Pool {
    /// Memory of at least this size, with undefined content; `what` names it in errors.
    pub(crate) fn take(&mut self, device: &Device, what: impl FnOnce() -> String, bytes: u64) -> Result<Buffer> {
        let bytes = bytes.max(256);
        let fits =
            |buffer: &&Buffer| (bytes..=bytes.saturating_mul(2)).contains(&buffer.bytes()) && buffer.is_unshared();
        if let Some(free) = self.buffers.iter().filter(fits).min_by_key(|buffer| buffer.bytes()) {
            return Ok(free.clone());
        }
        let made = device.buffer(&what(), bytes)?;
        if self.buffers.len() >= REMEMBERED {
            self.buffers.remove(0);
        }
        self.buffers.push(made.clone());
        Ok(made)
    }
}
