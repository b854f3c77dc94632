//! Opening a device that tells about what it runs.

use super::Device;
use crate::Result;
use std::sync::Arc;

/// What a device does beside running calls; all of it is off unless it is asked for, and costs nothing then.
///
/// ```no_run
/// use meganeura_runtime::Device;
///
/// let device = Device::options().profile(true).open()?;
/// // … calls of models on this device …
/// let profile = device.take_profile()?;
/// println!("{profile}");
/// profile.write_trace("trace.json")?;
/// # Ok::<(), meganeura_runtime::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    pub(super) profile: bool,
    pub(super) check_finite: bool,
}

impl DeviceOptions {
    /// Whether the time of every step is measured, for [`Device::take_profile`].
    ///
    /// On a GPU the device's own clock is read around every step. Steps then run one after the other, also those that
    /// would otherwise run side by side, so a call takes longer than without.
    pub fn profile(self, profile: bool) -> Self {
        Self { profile, ..self }
    }

    /// Whether every step is followed by a look at the floats that it made. The first that makes a NaN or an infinity
    /// ends the call with [`Error::NotFinite`](crate::Error::NotFinite), which names it.
    ///
    /// Every call then waits for the device after each step and reads all results: for finding a mistake, not for use.
    pub fn check_finite(self, check_finite: bool) -> Self {
        Self { check_finite, ..self }
    }

    /// As [`Device::open`].
    pub fn open(self) -> Result<Device> {
        Device::open_as(self)
    }

    /// As [`Device::gpu`].
    pub fn gpu(self) -> Result<Device> {
        Device::gpu_as(self)
    }

    /// As [`Device::host`].
    pub fn host(self) -> Device {
        Device::host_as(self, None)
    }

    /// As [`Device::host_with_threads`].
    pub fn host_with_threads(self, threads: usize) -> Device {
        Device::host_as(self, Some(threads))
    }

    /// As [`Device::named`].
    pub fn named(self, part: &str) -> Result<Device> {
        Device::named_as(self, part)
    }

    /// As [`Device::from_blade`]. The context tells times only if it was made with `timing`.
    pub fn from_blade(self, context: Arc<blade_graphics::Context>) -> Device {
        Device::from_blade_as(self, context)
    }
}
