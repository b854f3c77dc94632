//! Buffers of any device.

use super::{gpu, host};

/// A shared handle of one buffer.
#[derive(Clone, Debug)]
pub enum Buffer {
    /// Of a GPU.
    Gpu(gpu::Buffer),
    /// Of the CPU.
    Host(host::Buffer),
}

/// A buffer and a byte offset into it.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// The buffer.
    pub buffer: &'a Buffer,
    /// Bytes from its start.
    pub offset: u64,
}

impl Buffer {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Buffer::Gpu(buffer) => buffer.bytes(),
            Buffer::Host(buffer) => buffer.memory().bytes(),
        }
    }

    /// A binding from `offset` bytes to the buffer's end.
    pub fn at(&self, offset: u64) -> Binding<'_> {
        Binding { buffer: self, offset }
    }

    /// Whether this is the only handle: no other of the program, and none of a submission in flight.
    pub(crate) fn is_unshared(&self) -> bool {
        match self {
            Buffer::Gpu(buffer) => buffer.is_unshared(),
            Buffer::Host(buffer) => buffer.is_unshared(),
        }
    }

    /// The buffer, if it is a GPU's.
    pub fn gpu(&self) -> Option<&gpu::Buffer> {
        match self {
            Buffer::Gpu(buffer) => Some(buffer),
            Buffer::Host(_) => None,
        }
    }

    /// The buffer, if it is the CPU's.
    pub fn host(&self) -> Option<&host::Buffer> {
        match self {
            Buffer::Host(buffer) => Some(buffer),
            Buffer::Gpu(_) => None,
        }
    }
}
