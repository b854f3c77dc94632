//! The CPU as a device: its threads, its name and its memory.

use super::{DeviceInfo, DeviceKind};
use crate::{Error, Result};
use meganeura_host::level::Level;
use meganeura_host::{Memory, Threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that one buffer may have: a whole number of lines that a signed offset reaches.
pub const SEGMENT: u64 = 1 << 46;
/// Requests below this many bytes are not compared with what the system has left, which takes longer than they do.
const UNCHECKED: u64 = 1 << 20;

/// The CPU; cloning gives another handle of the same device.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

struct Shared {
    threads: Threads,
    info: DeviceInfo,
    allocated: Arc<AtomicU64>,
}

/// A shared handle of some memory of the CPU.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    memory: Memory,
    allocated: Arc<AtomicU64>,
}

impl Host {
    /// The CPU with this number of threads, or as many as this process has cores.
    pub(super) fn new(threads: Option<usize>) -> Host {
        let threads = Threads::new(threads.unwrap_or_else(cores).max(1));
        let info = describe(threads.count());
        Host { shared: Arc::new(Shared { threads, info, allocated: Arc::default() }) }
    }

    /// What [`Host::new`] would open.
    pub(super) fn here() -> DeviceInfo {
        describe(cores())
    }

    /// Its name, instructions and kind.
    pub fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    /// Its threads.
    pub fn threads(&self) -> &Threads {
        &self.shared.threads
    }

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.shared.allocated.load(Ordering::Relaxed)
    }

    pub(super) fn is_same(&self, other: &Host) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(super) fn buffer(&self, what: &str, bytes: u64) -> Result<Buffer> {
        let bytes = bytes.max(1).next_multiple_of(16);
        check_memory(what, bytes)?;
        let missing =
            || Error::OutOfMemory { what: what.to_string(), needed: bytes, available: available().unwrap_or(0) };
        let memory = Memory::new(bytes).ok_or_else(missing)?;
        let allocated = self.shared.allocated.clone();
        allocated.fetch_add(bytes, Ordering::Relaxed);
        Ok(Buffer(Arc::new(Counted { memory, allocated })))
    }
}

impl Buffer {
    /// Its memory.
    pub fn memory(&self) -> &Memory {
        &self.0.memory
    }

    pub(super) fn is_unshared(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Copies bytes into it.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let range = self.range(offset, bytes.len())?;
        self.memory().change(|words| bytemuck::cast_slice_mut::<u32, u8>(words)[range].copy_from_slice(bytes));
        Ok(())
    }

    /// Copies bytes out of it.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let range = self.range(offset, into.len())?;
        into.copy_from_slice(&bytemuck::cast_slice::<u32, u8>(&self.memory().read())[range]);
        Ok(())
    }

    fn range(&self, offset: u64, bytes: usize) -> Result<std::ops::Range<usize>> {
        let size = self.memory().bytes();
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= size => Ok(offset as usize..end as usize),
            _ => Err(Error::Kernel {
                kernel: "copy".to_string(),
                problem: format!("expected a range within {size} bytes, found {bytes} bytes at {offset}"),
            }),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.allocated.fetch_sub(self.memory.bytes(), Ordering::Relaxed);
    }
}

/// Fails if the system says that it has less memory left.
pub(super) fn check_memory(what: &str, bytes: u64) -> Result<()> {
    if bytes < UNCHECKED {
        return Ok(());
    }
    match available() {
        Some(available) if bytes > available => {
            Err(Error::OutOfMemory { what: what.to_string(), needed: bytes, available })
        }
        _ => Ok(()),
    }
}

/// Bytes that the system can give without swapping, where it says so.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

fn describe(threads: usize) -> DeviceInfo {
    let model = std::fs::read_to_string("/proc/cpuinfo").ok();
    let name = model.as_deref().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_string())
    });
    let name = name.unwrap_or_else(|| format!("{} CPU", std::env::consts::ARCH));
    let s = if threads == 1 { "" } else { "s" };
    DeviceInfo { name, driver: format!("{}, {threads} thread{s}", Level::here()), kind: DeviceKind::Host }
}
