//! Buffers: device memory that kernels bind, and host-visible memory that only copies touch.
//!
//! A buffer lives as long as anyone holds it; a recording and a submission in flight hold what they use, so dropping
//! the last handle of the program never frees memory that the device still reads.

use super::context::Context;
use super::limits;
use crate::{Error, Result};
use blade_graphics as gpu;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Device memory that kernels bind; the host cannot see it.
    Device,
    /// Host memory that is written by the host and copied from.
    Upload,
    /// Host memory that is copied to and read by the host.
    Download,
}

/// A shared handle of one buffer.
#[derive(Clone)]
pub struct Buffer(pub(super) Arc<BufferInner>);

pub(super) struct BufferInner {
    pub(super) context: Arc<Context>,
    pub(super) raw: gpu::Buffer,
    pub(super) bytes: u64,
    pub(super) memory: Memory,
    /// The last recording that holds this buffer, so that each holds it once.
    pub(super) mark: AtomicU64,
}

impl Buffer {
    /// `bytes` is rounded up to whole vectors of four words; the content is undefined.
    pub(super) fn new(context: &Arc<Context>, what: &str, bytes: u64, memory: Memory) -> Result<Self> {
        context.check()?;
        let bytes = bytes.max(1).next_multiple_of(16);
        if memory == Memory::Device {
            limits::check(|| what.to_string(), "bytes of one storage binding", context.limits().binding_bytes, bytes)?;
            check_budget(context, what, bytes)?;
        }
        let place = match memory {
            Memory::Device => gpu::Memory::Device,
            Memory::Upload => gpu::Memory::Upload,
            Memory::Download => gpu::Memory::Download,
        };
        let raw = context.call(&format!("allocating {bytes} bytes for {what}"), |gpu| {
            gpu.create_buffer(gpu::BufferDesc { name: "", size: bytes, memory: place })
        })?;
        context.count_allocated(bytes);
        Ok(Self(Arc::new(BufferInner { context: context.clone(), raw, bytes, memory, mark: AtomicU64::new(0) })))
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Where it lives.
    pub fn memory(&self) -> Memory {
        self.0.memory
    }

    /// A binding from `offset` bytes to the buffer's end.
    pub fn at(&self, offset: u64) -> Binding<'_> {
        Binding { buffer: self, offset }
    }

    /// Whether this is the only handle: no other of the program, and none of a submission in flight.
    pub(crate) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// True for the first call of each recording.
    pub(super) fn mark(&self, recording: u64) -> bool {
        self.0.mark.swap(recording, Ordering::Relaxed) != recording
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({:?}, {} bytes)", self.0.memory, self.0.bytes)
    }
}

/// A buffer and a byte offset into it.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// The buffer.
    pub buffer: &'a Buffer,
    /// Bytes from its start.
    pub offset: u64,
}

impl<'a> From<&'a Buffer> for Binding<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        buffer.at(0)
    }
}

impl Drop for BufferInner {
    fn drop(&mut self) {
        self.context.count_freed(self.bytes);
        let raw = self.raw;
        self.context.destroy("freeing a buffer", |gpu| gpu.destroy_buffer(raw));
    }
}

/// A failed allocation loses the device, so what cannot fit is refused before it is tried.
pub(super) fn check_budget(context: &Context, what: &str, bytes: u64) -> Result<()> {
    // The query takes longer than a small allocation, which comes from a block that is already there.
    if bytes < 1 << 20 {
        return context.check();
    }
    let stats = context.call("asking for the memory budget", |gpu| gpu.memory_stats())?;
    // Not every driver has a budget, and not every heap is known; zero means unknown.
    let available = match (stats.budget, context.heap()) {
        (0, 0) => return Ok(()),
        (0, heap) => heap.saturating_sub(context.allocated()),
        (budget, _) => budget.saturating_sub(stats.usage),
    };
    if bytes <= available {
        return Ok(());
    }
    Err(Error::OutOfMemory { what: what.to_string(), needed: bytes, available })
}
