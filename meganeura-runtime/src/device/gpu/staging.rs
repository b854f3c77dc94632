//! Host-visible buffers between the program and the device, and the copies through them.
//!
//! Staging buffers are pooled: one that comes back is handed out again when no submission uses it any more. Copies
//! are submissions like any other, so what is uploaded is seen by everything submitted later.

use super::buffer::{Binding, Buffer, Memory};
use super::context::Context;
use super::queue::Queue;
use super::record::{Recorder, Transfer};
use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one copy; larger transfers are cut.
const CHUNK: u64 = 16 << 20;
/// Bytes that the pool keeps when nothing is in use.
const POOL: u64 = 64 << 20;

#[derive(Default)]
pub(super) struct Staging {
    pool: Mutex<Vec<Buffer>>,
}

/// A staging buffer with one owner; it goes back to its device's pool when dropped.
pub struct HostBuffer {
    // Taken only by `drop`.
    buffer: Option<Buffer>,
    staging: Arc<Staging>,
}

impl HostBuffer {
    pub(super) fn new(queue: &Queue, staging: &Arc<Staging>, memory: Memory, bytes: u64) -> Result<Self> {
        queue.reap()?;
        let buffer = match staging.take(memory, bytes) {
            Some(buffer) => buffer,
            None => allocate(queue.context(), memory, bytes)?,
        };
        Ok(Self { buffer: Some(buffer), staging: staging.clone() })
    }

    /// The buffer, to record copies with.
    pub fn buffer(&self) -> &Buffer {
        let Some(buffer) = &self.buffer else { unreachable!("only `drop` takes the buffer") };
        buffer
    }

    /// Writes at a byte offset. A submission that reads those bytes must be done, or it may see either content.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let to = self.pointer(offset, bytes.len())?;
        // SAFETY: `pointer` checked the range, the memory stays mapped while the buffer lives, and `&mut self` is
        // the only access of this program.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        Ok(())
    }

    /// Reads at a byte offset. A submission that writes those bytes must be done, or either content may be seen.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let from = self.pointer(offset, into.len())?;
        // SAFETY: as in `write`; writers need `&mut self`.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
        }
        Ok(())
    }

    fn pointer(&self, offset: u64, bytes: usize) -> Result<*mut u8> {
        let buffer = self.buffer();
        buffer.0.context.check()?;
        let end = offset.checked_add(bytes as u64);
        let data = buffer.0.raw.data();
        if data.is_null() || end.is_none_or(|end| end > buffer.bytes()) {
            return Err(Error::Kernel {
                kernel: "staging".to_string(),
                problem: format!("expected a range within {buffer:?}, found {bytes} bytes at {offset}"),
            });
        }
        // SAFETY: `offset` is within the mapped range.
        #[allow(unsafe_code)]
        Ok(unsafe { data.add(offset as usize) })
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.staging.give_back(buffer);
        }
    }
}

impl Staging {
    /// The smallest free buffer that is large enough.
    fn take(&self, memory: Memory, bytes: u64) -> Option<Buffer> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |buffer: &mut Buffer| {
            buffer.memory() == memory && buffer.bytes() >= bytes && Arc::get_mut(&mut buffer.0).is_some()
        };
        let found = pool.iter_mut().enumerate().filter_map(|(at, buffer)| fits(buffer).then(|| (buffer.bytes(), at)));
        let (_, at) = found.min()?;
        Some(pool.swap_remove(at))
    }

    fn give_back(&self, buffer: Buffer) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.push(buffer);
        let mut total: u64 = pool.iter().map(Buffer::bytes).sum();
        pool.retain_mut(|buffer| {
            let drop = total > POOL && Arc::get_mut(&mut buffer.0).is_some();
            total -= if drop { buffer.bytes() } else { 0 };
            !drop
        });
    }
}

fn allocate(context: &Arc<Context>, memory: Memory, bytes: u64) -> Result<Buffer> {
    Buffer::new(context, "staging", bytes.max(4096).checked_next_power_of_two().unwrap_or(bytes), memory)
}

/// Copies bytes to the device; returns when the copies are submitted, and `bytes` may change at once.
pub(super) fn upload(queue: &Arc<Queue>, staging: &Arc<Staging>, to: Binding, bytes: &[u8]) -> Result<()> {
    for (index, chunk) in bytes.chunks(CHUNK as usize).enumerate() {
        // Whole words are copied. Places of tensors are 256 bytes apart, so the padding overwrites nothing.
        let size = (chunk.len() as u64).next_multiple_of(4);
        let mut host = HostBuffer::new(queue, staging, Memory::Upload, size)?;
        host.write(0, chunk)?;
        host.write(chunk.len() as u64, &[0; 3][..size as usize - chunk.len()])?;
        let to = Binding { buffer: to.buffer, offset: to.offset + index as u64 * CHUNK };
        let mut recorder = Recorder::new(queue)?;
        recorder.transfer([Transfer::Copy { from: host.buffer().at(0), to, bytes: size }])?;
        recorder.submit()?;
    }
    Ok(())
}

/// Copies bytes from the device after all that was submitted, and waits for them.
pub(super) fn download(queue: &Arc<Queue>, staging: &Arc<Staging>, from: Binding, into: &mut [u8]) -> Result<()> {
    for (index, chunk) in into.chunks_mut(CHUNK as usize).enumerate() {
        let size = (chunk.len() as u64).next_multiple_of(4);
        let host = HostBuffer::new(queue, staging, Memory::Download, size)?;
        let from = Binding { buffer: from.buffer, offset: from.offset + index as u64 * CHUNK };
        let mut recorder = Recorder::new(queue)?;
        recorder.transfer([Transfer::Copy { from, to: host.buffer().at(0), bytes: size }])?;
        recorder.submit()?.wait()?;
        host.read(0, chunk)?;
    }
    Ok(())
}
