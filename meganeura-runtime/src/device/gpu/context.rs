//! The driver's context, and the one place where its panics become errors.
//!
//! The driver library unwraps failed allocations and failed submissions, some of them while it holds its own locks.
//! Every call into it goes through [`Context::call`]; after a caught panic the device counts as lost, each later
//! call says so, and nothing of it is destroyed any more, since destroying takes the same locks.

use super::limits::Limits;
use crate::{Error, Result};
use blade_graphics as gpu;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(super) struct Context {
    gpu: ManuallyDrop<Arc<gpu::Context>>,
    name: String,
    limits: Limits,
    /// Bytes of all device-local heaps, 0 if unknown.
    heap: u64,
    lost: OnceLock<String>,
    allocated: AtomicU64,
}

/// Held while instances and devices are made or destroyed: NVIDIA's driver (580, 595) crashes now and then if that happens
/// on several threads at once (github.com/kvark/blade, issue 336).
pub(super) fn exclusive() -> MutexGuard<'static, ()> {
    static DRIVER: Mutex<()> = Mutex::new(());
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A point in the queue that can be waited for.
pub(super) struct SyncPoint(pub(super) gpu::SyncPoint);

// SAFETY: a sync point is a number (Vulkan) or a reference to a command buffer that is only asked for its status
// (Metal, where command buffers may be used from any thread).
#[allow(unsafe_code)]
unsafe impl Send for SyncPoint {}
// SAFETY: as above; waiting does not change it.
#[allow(unsafe_code)]
unsafe impl Sync for SyncPoint {}

impl Clone for SyncPoint {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Context {
    pub(super) fn new(gpu: Arc<gpu::Context>, name: String, limits: Limits, heap: u64) -> Self {
        let (lost, allocated) = Default::default();
        Self { gpu: ManuallyDrop::new(gpu), name, limits, heap, lost, allocated }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn heap(&self) -> u64 {
        self.heap
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(reason) => Err(Error::DeviceLost { device: self.name.clone(), reason: reason.clone() }),
        }
    }

    /// Marks the device as lost; the first reason stays.
    pub(super) fn lose(&self, reason: String) -> Error {
        let reason = self.lost.get_or_init(|| {
            log::error!("device `{}` is lost: {reason}", self.name);
            reason
        });
        Error::DeviceLost { device: self.name.clone(), reason: reason.clone() }
    }

    /// Runs a call into the driver; a panic inside makes the device lost.
    pub(super) fn call<R>(&self, doing: &str, run: impl FnOnce(&gpu::Context) -> R) -> Result<R> {
        self.check()?;
        catch_unwind(AssertUnwindSafe(|| run(&self.gpu)))
            .map_err(|panic| self.lose(format!("{doing}: {}", panic_message(&*panic))))
    }

    /// Runs a call whose panics the caller turns into an error of its own: one that holds no lock of the driver.
    pub(super) fn call_unguarded<R>(&self, run: impl FnOnce(&gpu::Context) -> R) -> R {
        run(&self.gpu)
    }

    /// Destroys something, unless the device is lost.
    pub(super) fn destroy(&self, doing: &str, run: impl FnOnce(&gpu::Context)) {
        if let Err(error) = self.call(doing, run) {
            log::debug!("not destroyed: {error}");
        }
    }

    /// Waits at most `milliseconds` (`u32::MAX`: without end); true if the point was reached.
    pub(super) fn wait(&self, point: &SyncPoint, milliseconds: u32) -> Result<bool> {
        match self.call("waiting", |gpu| gpu.wait_for(&point.0, milliseconds))? {
            Ok(reached) => Ok(reached),
            Err(error) => Err(self.lose(format!("waiting: {error}"))),
        }
    }

    /// Bytes of all buffers that are alive.
    pub(super) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    pub(super) fn count_allocated(&self, bytes: u64) {
        self.allocated.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_freed(&self, bytes: u64) {
        self.allocated.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A lost device keeps objects that could not be destroyed, and a device must not be destroyed before them.
        if self.is_lost() {
            return;
        }
        let _exclusive = exclusive();
        // SAFETY: `gpu` is not used after this, since `self` is being dropped.
        #[allow(unsafe_code)]
        unsafe {
            ManuallyDrop::drop(&mut self.gpu);
        }
    }
}

pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the driver gave no reason").to_string()
}
