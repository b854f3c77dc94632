//! Device memory that is used again: results of calls and copies of arguments.
//!
//! A buffer that comes back may still be in use by work in flight. That is safe: submissions run one after the other,
//! so whoever writes it next does so after that work.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Result;
use crate::device::{Buffer, Device};

/// Free buffers that a pool keeps.
const KEPT: usize = 32;

/// Free device buffers.
#[derive(Clone, Default)]
pub(crate) struct Pool {
    free: Arc<Mutex<Vec<Buffer>>>,
}

/// A buffer with one owner; it goes back to its pool when dropped.
pub(crate) struct Pooled {
    buffer: Buffer,
    free: Arc<Mutex<Vec<Buffer>>>,
}

impl Pool {
    /// Memory of at least this size, with undefined content.
    pub(crate) fn take(&self, device: &Device, what: &str, bytes: u64) -> Result<Pooled> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fits =
            free.iter().enumerate().filter(|(_, buffer)| (bytes..=bytes.max(4096) * 4).contains(&buffer.bytes()));
        let best = fits.min_by_key(|(_, buffer)| buffer.bytes()).map(|(at, _)| at);
        let known = best.map(|at| free.swap_remove(at));
        drop(free);
        let buffer = match known {
            Some(buffer) => buffer,
            None => device.buffer(what, bytes.max(256))?,
        };
        Ok(Pooled { buffer, free: self.free.clone() })
    }
}

impl Pooled {
    /// The buffer.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.buffer.clone());
        if free.len() > KEPT {
            free.remove(0);
        }
    }
}
