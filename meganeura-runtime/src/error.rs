//! One error type for everything that can go wrong while a program runs.
//!
//! Each variant names the thing, what was expected and what was found. None of them is a reason to panic: after
//! any of them but [`Error::DeviceLost`] the same device and model can be used again.

/// What can go wrong at run time.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No device of this machine fits the request.
    #[error("no device that is {wanted}; found {found}")]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// The devices that exist, or why they cannot be listed.
        found: String,
    },
    /// The device stopped working: a driver crash, a reset or a failed allocation. Open it again.
    #[error("device `{device}` is lost: {reason}")]
    DeviceLost {
        /// The device's name.
        device: String,
        /// What it was doing, and the driver's words.
        reason: String,
    },
    /// An allocation would not fit; nothing was allocated.
    #[error("out of device memory: {what} needs {needed} bytes, {available} are available")]
    OutOfMemory {
        /// What was to be allocated.
        what: String,
        /// Its size in bytes.
        needed: u64,
        /// What the driver says is left, in bytes.
        available: u64,
    },
    /// Something is larger than the device, or the baseline device, allows.
    #[error("{what} exceeds the device limit `{limit}`: at most {allowed}, found {found}")]
    Limit {
        /// What is too large.
        what: String,
        /// The limit's name and unit.
        limit: &'static str,
        /// Its value.
        allowed: u64,
        /// The value that exceeds it.
        found: u64,
    },
    /// A kernel's text was refused, or a dispatch does not fit the kernel. This is a fault of the compiler.
    #[error("kernel `{kernel}`: {problem}")]
    Kernel {
        /// The kernel's name.
        kernel: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Two things that must live on one device do not.
    #[error("{what} lives on device `{found}`, expected `{expected}`")]
    OtherDevice {
        /// The thing.
        what: String,
        /// The device that the call runs on.
        expected: String,
        /// The device that the thing lives on.
        found: String,
    },
}
