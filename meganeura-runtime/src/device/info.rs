//! Which devices there are, and opening one.

use super::context::panic_message;
use blade_graphics as gpu;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What runs the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A hardware GPU.
    Gpu,
    /// A Vulkan driver that runs on the CPU.
    Software,
}

/// One device of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its name, as the driver gives it.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// What runs the work.
    pub kind: DeviceKind,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gpu => "GPU",
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

impl From<&gpu::DeviceInformation> for DeviceInfo {
    fn from(information: &gpu::DeviceInformation) -> Self {
        Self {
            name: information.device_name.clone(),
            driver: format!("{} {}", information.driver_name, information.driver_info).trim().to_string(),
            kind: if information.is_software_emulated { DeviceKind::Software } else { DeviceKind::Gpu },
        }
    }
}

/// A device that can be opened.
pub(super) struct Candidate {
    pub(super) info: DeviceInfo,
    id: u32,
}

/// Devices that can be opened, hardware first, and the reasons why others cannot.
pub(super) fn candidates() -> (Vec<Candidate>, Vec<String>) {
    let reports = match caught(gpu::Context::enumerate) {
        Ok(reports) => reports,
        Err(reason) => return (Vec::new(), vec![reason]),
    };
    let mut found = Vec::new();
    let mut rejected = Vec::new();
    for report in &reports {
        let info = DeviceInfo::from(&report.information);
        match &report.status {
            gpu::DeviceReportStatus::Available { .. } => found.push(Candidate { info, id: report.device_id }),
            gpu::DeviceReportStatus::Rejected(reason) => rejected.push(format!("{info}: {reason}")),
        }
    }
    found.sort_by_key(|candidate| candidate.info.kind);
    (found, rejected)
}

impl Candidate {
    pub(super) fn open(&self) -> Result<gpu::Context, String> {
        let desc = gpu::ContextDesc { device_id: Some(self.id), ..Default::default() };
        // SAFETY: the call asks that no other code changes the process environment or the driver's state at the same
        // time; nothing of this crate does.
        #[allow(unsafe_code)]
        let context = caught(|| unsafe { gpu::Context::init(desc) })?;
        let opened = DeviceInfo::from(context.device_information());
        // Metal opens its default device whatever is asked for.
        if opened.name != self.info.name { Err(format!("{opened} was opened instead")) } else { Ok(context) }
    }
}

fn caught<R>(run: impl FnOnce() -> Result<R, gpu::NotSupportedError>) -> Result<R, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(panic_message(&*panic)),
    }
}
