//! Replay: a schedule's bytes and shader texts become work for a device.
//!
//! [`Program`] decodes an entry once; at the dimensions of a call a [`Replayer`] makes [`Work`] of it, once a set of
//! sizes, and the work runs with the memory of each call. There are two: [`GpuReplayer`] dispatches shaders,
//! [`HostReplayer`] runs the kernel descriptions on the CPU. Nothing here knows a model or an operation.

mod commands;
mod facts;
mod gpu;
mod host;
mod program;
mod steps;
mod update;

pub(crate) use facts::start;
pub use facts::{Facts, bytes};
pub use gpu::GpuReplayer;
pub use host::HostReplayer;
pub use program::{Call, Place, Program, Recipe, Replayer, Stretch, Work};
pub(crate) use steps::Steps;
pub use update::{Launch, Updates};

use crate::Result;
use crate::device::{Backend, Device};
use meganeura_shaders::schedule::Schedule;

/// The replayer of a device, for an entry with these shader texts.
pub fn replayer(device: &Device, schedule: &Schedule, texts: &[&str]) -> Result<Box<dyn Replayer>> {
    Ok(match device.backend() {
        Backend::Gpu(gpu) => Box::new(GpuReplayer::new(gpu, schedule, texts)?),
        Backend::Host(host) => Box::new(HostReplayer::new(host)),
    })
}
