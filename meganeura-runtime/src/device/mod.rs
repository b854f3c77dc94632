//! Devices: a GPU, or the CPU itself.
//!
//! [`gpu`] replays schedules as shaders, [`host`] as kernels of this CPU; everything above asks a [`Device`] for memory
//! and copies and does not care which it is. What runs a schedule on each is a `Replayer`.

mod buffer;
pub mod gpu;
pub mod host;
mod info;
mod options;
mod times;

pub use buffer::{Binding, Buffer};
pub use info::{DeviceInfo, DeviceKind};
pub use options::DeviceOptions;
pub use times::Times;

use crate::watch::{Profile, Watch};
use crate::{Error, Result};
use gpu::Gpu;
use host::Host;
use std::fmt;
use std::sync::Arc;

/// A device that models run on; cloning gives another handle of the same one.
///
/// Handles, models and tensors may be sent to other threads and used there at the same time: calls of one model need
/// `&mut`, calls of different models on one device run side by side, and a tensor may be an argument of several.
#[derive(Clone)]
pub struct Device {
    backend: Backend,
    /// None where nothing was asked for.
    watch: Option<Arc<Watch>>,
}

/// What a device is.
#[doc(hidden)]
#[derive(Clone)]
pub enum Backend {
    /// A device with shaders.
    Gpu(Gpu),
    /// The CPU.
    Host(Host),
}

impl Device {
    /// Opens a hardware GPU if there is one, else the CPU. Printing the device says which one it is.
    ///
    /// A Vulkan driver in software is opened only by its name: it is far slower than the CPU's own kernels.
    pub fn open() -> Result<Self> {
        Self::options().open()
    }

    /// Opens a hardware GPU; fails with [`Error::NoDevice`] if there is none.
    pub fn gpu() -> Result<Self> {
        Self::options().gpu()
    }

    /// The CPU, with as many threads as it has cores for this process.
    pub fn host() -> Self {
        Self::options().host()
    }

    /// The CPU with this number of threads; results have the same bits with any. 0 counts as 1.
    pub fn host_with_threads(threads: usize) -> Self {
        Self::options().host_with_threads(threads)
    }

    /// Opens the first device whose name contains `part`, in any case: `Device::named("radeon")`.
    pub fn named(part: &str) -> Result<Self> {
        Self::options().named(part)
    }

    /// Opens a device that also measures times or checks values: `Device::options().profile(true).open()`.
    pub fn options() -> DeviceOptions {
        DeviceOptions::default()
    }

    /// The devices that can be opened: GPUs, the CPU, software Vulkan devices.
    pub fn list() -> Vec<DeviceInfo> {
        choices().0.into_iter().map(|(info, _)| info).collect()
    }

    /// Runs on a context that the program also uses for other things.
    pub fn from_blade(context: Arc<blade_graphics::Context>) -> Self {
        Self::options().from_blade(context)
    }

    /// Waits for all calls and gives the times of their steps: of what ran since the device was opened, or since this
    /// was last asked for. Fails with [`Error::Mismatch`] if the device was opened without
    /// [`profile`](DeviceOptions::profile).
    pub fn take_profile(&self) -> Result<Profile> {
        if let Backend::Gpu(gpu) = &self.backend {
            gpu.settle()?;
        }
        let taken = self.watch.as_ref().and_then(|watch| watch.take_profile(self));
        taken.ok_or_else(|| Error::Mismatch {
            name: "take_profile".into(),
            expected: "a device opened with `profile(true)`".into(),
            found: "one without".into(),
        })
    }

    /// Its name, driver and kind.
    pub fn info(&self) -> &DeviceInfo {
        match &self.backend {
            Backend::Gpu(gpu) => gpu.info(),
            Backend::Host(host) => host.info(),
        }
    }

    /// Bytes of device and staging memory that this device's handles, tensors and models hold at the moment.
    pub fn allocated_bytes(&self) -> u64 {
        match &self.backend {
            Backend::Gpu(gpu) => gpu.allocated_bytes(),
            Backend::Host(host) => host.allocated_bytes(),
        }
    }

    /// Whether it was lost; every call but this one then fails with [`Error::DeviceLost`]. The CPU never is.
    pub fn is_lost(&self) -> bool {
        match &self.backend {
            Backend::Gpu(gpu) => gpu.is_lost(),
            Backend::Host(_) => false,
        }
    }

    fn open_as(options: DeviceOptions) -> Result<Self> {
        Self::gpu_as(options).or_else(|error| {
            log::info!("the CPU runs models: {error}");
            Ok(Self::host_as(options, None))
        })
    }

    fn gpu_as(options: DeviceOptions) -> Result<Self> {
        Self::open_where(options, "a hardware GPU", |info| info.kind == DeviceKind::Gpu)
    }

    fn named_as(options: DeviceOptions, part: &str) -> Result<Self> {
        let wanted = part.to_lowercase();
        Self::open_where(options, &format!("named like `{part}`"), |info| info.name.to_lowercase().contains(&wanted))
    }

    fn host_as(options: DeviceOptions, threads: Option<usize>) -> Self {
        Self::with(options, Backend::Host(Host::new(threads)))
    }

    fn from_blade_as(options: DeviceOptions, context: Arc<blade_graphics::Context>) -> Self {
        Self::with(options, Backend::Gpu(Gpu::new(context)))
    }

    fn with(options: DeviceOptions, backend: Backend) -> Self {
        let lanes = matches!(backend, Backend::Host(_));
        Self { backend, watch: Watch::new(options.profile, options.check_finite, lanes) }
    }

    fn open_where(options: DeviceOptions, wanted: &str, fits: impl Fn(&DeviceInfo) -> bool) -> Result<Self> {
        let (choices, mut found) = choices();
        for (info, candidate) in choices {
            if !fits(&info) {
                found.push(info.to_string());
                continue;
            }
            match candidate.map(|candidate| candidate.open(options.profile)) {
                None => return Ok(Self::host_as(options, None)),
                Some(Ok(context)) => return Ok(Self::from_blade_as(options, Arc::new(context))),
                Some(Err(reason)) => found.push(format!("{info}: {reason}")),
            }
        }
        Err(Error::NoDevice { wanted: wanted.to_string(), found: found.join("; ") })
    }
}

/// A device to open, and how if it is not the CPU.
type Choice = (DeviceInfo, Option<gpu::Candidate>);

/// GPUs, the CPU, software Vulkan devices, and why others cannot be opened.
fn choices() -> (Vec<Choice>, Vec<String>) {
    let (candidates, rejected) = gpu::candidates();
    let drivers = candidates.into_iter().map(|candidate| (candidate.info.clone(), Some(candidate)));
    let mut all: Vec<Choice> = drivers.chain([(Host::here(), None)]).collect();
    all.sort_by_key(|(info, _)| info.kind);
    (all, rejected)
}

/// What the layers above are made of.
#[doc(hidden)]
impl Device {
    /// What it is.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// What it does beside running calls.
    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.watch.as_deref()
    }

    /// The device as one with shaders, if it is one.
    pub fn as_gpu(&self) -> Option<&Gpu> {
        match &self.backend {
            Backend::Gpu(gpu) => Some(gpu),
            Backend::Host(_) => None,
        }
    }

    /// Bytes that one buffer may have for kernels to reach all of it.
    pub fn segment_bytes(&self) -> u64 {
        match &self.backend {
            Backend::Gpu(gpu) => gpu.limits().binding_bytes,
            Backend::Host(_) => host::SEGMENT,
        }
    }

    /// Fails with [`Error::OutOfMemory`] if `bytes` are more than are left.
    pub fn check_memory(&self, what: &str, bytes: u64) -> Result<()> {
        match &self.backend {
            Backend::Gpu(gpu) => gpu.check_memory(what, bytes),
            Backend::Host(_) => host::check_memory(what, bytes),
        }
    }

    /// Memory of at least `bytes`, with undefined content; `what` names it in errors.
    pub fn buffer(&self, what: &str, bytes: u64) -> Result<Buffer> {
        match &self.backend {
            Backend::Gpu(gpu) => gpu.buffer(what, bytes).map(Buffer::Gpu),
            Backend::Host(host) => host.buffer(what, bytes).map(Buffer::Host),
        }
    }

    /// Sets every byte of buffers to zero, after all that was submitted before.
    pub fn clear(&self, buffers: &[Buffer]) -> Result<()> {
        for buffer in buffers.iter().filter_map(Buffer::host) {
            buffer.memory().change(|words| words.fill(0));
        }
        let Backend::Gpu(gpu) = &self.backend else { return Ok(()) };
        gpu.clear(buffers.iter().filter_map(Buffer::gpu))
    }

    /// Copies bytes to the device; they may change at once, and everything submitted later sees them.
    pub fn upload(&self, to: Binding<'_>, bytes: &[u8]) -> Result<()> {
        match (&self.backend, to.buffer) {
            (Backend::Gpu(gpu), Buffer::Gpu(buffer)) => gpu.upload(buffer.at(to.offset), bytes),
            (_, Buffer::Host(buffer)) => buffer.write(to.offset, bytes),
            (Backend::Host(_), Buffer::Gpu(_)) => Err(self.foreign()),
        }
    }

    /// Copies bytes from the device after everything submitted so far, and waits for them.
    pub fn download(&self, from: Binding<'_>, into: &mut [u8]) -> Result<()> {
        match (&self.backend, from.buffer) {
            (Backend::Gpu(gpu), Buffer::Gpu(buffer)) => gpu.download(buffer.at(from.offset), into),
            (_, Buffer::Host(buffer)) => buffer.read(from.offset, into),
            (Backend::Host(_), Buffer::Gpu(_)) => Err(self.foreign()),
        }
    }

    /// Whether both are handles of one device.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.backend, &other.backend) {
            (Backend::Gpu(a), Backend::Gpu(b)) => a.is_same(b),
            (Backend::Host(a), Backend::Host(b)) => a.is_same(b),
            _ => false,
        }
    }

    fn foreign(&self) -> Error {
        let (what, expected) = ("a buffer".to_string(), self.to_string());
        Error::OtherDevice { what, expected, found: "a GPU".to_string() }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info().fmt(f)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.info())
    }
}
