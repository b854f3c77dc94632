//! Which devices the driver library finds, and opening one.

use super::super::{DeviceInfo, DeviceKind};
use super::context::{exclusive, panic_message};
use blade_graphics as gpu;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the driver says about a device.
pub(super) fn info(information: &gpu::DeviceInformation) -> DeviceInfo {
    DeviceInfo {
        name: information.device_name.clone(),
        driver: format!("{} {}", information.driver_name, information.driver_info).trim().to_string(),
        kind: if information.is_software_emulated { DeviceKind::Software } else { DeviceKind::Gpu },
    }
}

/// A device that can be opened.
pub(in super::super) struct Candidate {
    pub(in super::super) info: DeviceInfo,
    id: u32,
}

/// Devices that can be opened, hardware first, and the reasons why others cannot.
pub(in super::super) fn candidates() -> (Vec<Candidate>, Vec<String>) {
    let _exclusive = exclusive();
    let reports = match caught(gpu::Context::enumerate) {
        Ok(reports) => reports,
        Err(reason) => return (Vec::new(), vec![reason]),
    };
    let mut found = Vec::new();
    let mut rejected = Vec::new();
    for report in &reports {
        let info = info(&report.information);
        match &report.status {
            gpu::DeviceReportStatus::Available { .. } => found.push(Candidate { info, id: report.device_id }),
            gpu::DeviceReportStatus::Rejected(reason) => rejected.push(format!("{info}: {reason}")),
        }
    }
    found.sort_by_key(|candidate| candidate.info.kind);
    (found, rejected)
}

impl Candidate {
    /// `timing`: whether its clock will be asked.
    pub(in super::super) fn open(&self, timing: bool) -> Result<gpu::Context, String> {
        let _exclusive = exclusive();
        let desc = gpu::ContextDesc { device_id: Some(self.id), timing, ..Default::default() };
        // SAFETY: the call asks that no other code changes the process environment or the driver's state at the same
        // time; nothing of this crate does.
        #[allow(unsafe_code)]
        let context = caught(|| unsafe { gpu::Context::init(desc) })?;
        let opened = info(context.device_information());
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
