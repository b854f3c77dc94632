//! The optimizer's update of a call: one launch for each stretch of tensors that lie one behind the other.

use meganeura_shaders::update::Update;

use super::program::Stretch;
use crate::Result;
use crate::device::{Device, gpu};

/// An update, prepared for a device.
pub struct Updates {
    /// What is computed.
    pub update: Update,
    /// How a GPU does it.
    pub(super) pipeline: Option<gpu::Pipeline>,
    /// What it runs over, for one step.
    pub launches: Vec<Launch>,
}

/// The update of one stretch.
pub struct Launch {
    /// Parameters, gradients and moments, as the update binds them.
    pub places: Vec<Stretch>,
    /// The words of `p`.
    pub words: Vec<u32>,
    /// Workgroups.
    pub groups: u64,
}

impl Updates {
    /// No launches yet.
    pub fn new(device: &Device, update: &Update) -> Result<Updates> {
        let pipeline = device.as_gpu().map(|gpu| gpu.pipeline("optimizer", update.text)).transpose()?;
        Ok(Updates { update: *update, pipeline, launches: vec![] })
    }
}
