//! The devices that tests run on: one suite, all of them.

pub mod gguf;

use std::io::Write;
use std::sync::Once;

use crate::device::{Device, DeviceKind, DeviceOptions};

/// The CPU, a software Vulkan device, and a GPU if this machine has one. Where a Vulkan device is missing a line says
/// so; under `CI` that is a failure.
pub fn devices() -> Vec<Device> {
    devices_with(DeviceOptions::default())
}

/// The same, opened with these options.
#[allow(clippy::panic)]
pub fn devices_with(options: DeviceOptions) -> Vec<Device> {
    let mut devices = vec![options.host()];
    match vulkan(options) {
        Ok(all) => devices.extend(all),
        Err(found) if std::env::var_os("CI").is_none() => skipped(&found),
        Err(found) => panic!("{found}"),
    }
    devices
}

/// Says once in a program that its tests skip Vulkan. Written past the capture of test output, which hides what passes.
fn skipped(why: &str) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        let _ = writeln!(std::io::stderr(), "skipped on Vulkan: {why}");
    });
}

/// One Vulkan device of each kind, or why there is none.
fn vulkan(options: DeviceOptions) -> Result<Vec<Device>, String> {
    let (mut devices, mut problems) = (vec![], vec![]);
    for kind in [DeviceKind::Software, DeviceKind::Gpu] {
        let listed = Device::list().into_iter().find(|info| info.kind == kind);
        match listed.map(|info| options.named(&info.name)) {
            Some(Ok(device)) => devices.push(device),
            Some(Err(error)) => problems.push(error.to_string()),
            None => problems.push(format!("no {kind}")),
        }
    }
    if devices.is_empty() { Err(problems.join("; ")) } else { Ok(devices) }
}
