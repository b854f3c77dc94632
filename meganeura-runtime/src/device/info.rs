//! What a device is, for people.

use std::fmt;

/// What runs the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A hardware GPU.
    Gpu,
    /// The CPU, by kernels of its own.
    Host,
    /// A Vulkan driver that runs on the CPU.
    Software,
}

/// One device of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its name, as the driver or the system gives it.
    pub name: String,
    /// The driver and its version; of the CPU, its vector instructions and how many threads work.
    pub driver: String,
    /// What runs the work.
    pub kind: DeviceKind,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "GPU",
            Self::Host => "CPU",
            Self::Software => "software Vulkan on the CPU",
        })
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.name, self.kind)?;
        if !self.driver.is_empty() {
            write!(f, ", {}", self.driver)?;
        }
        f.write_str(")")
    }
}
