//! What a device does beside running calls, where it was opened to: measure the times of steps, check their values.
//!
//! In come the calls of sessions; out come a [`Profile`], and [`Error::NotFinite`](crate::Error::NotFinite) for the first
//! step that makes a value which is not finite. A device that was opened without either has no [`Watch`].

mod finite;
mod profile;
mod record;
mod table;
mod trace;

pub use finite::NotFinite;
pub use profile::{Profile, StepTime};

use meganeura_shaders::schedule::Schedule;
use std::sync::Arc;

use crate::Result;
use crate::device::Device;
use crate::replay::{Call, Recipe};
use record::Recording;

/// What a device does beside running calls.
pub(crate) struct Watch {
    recording: Option<Recording>,
    check_finite: bool,
}

impl Watch {
    /// None if nothing is to be done. `lanes`: whether calls of several threads run at once on the device.
    pub(crate) fn new(profile: bool, check_finite: bool, lanes: bool) -> Option<Arc<Watch>> {
        let watch = || Watch { recording: profile.then(|| Recording::new(lanes)), check_finite };
        (profile || check_finite).then(watch).map(Arc::new)
    }

    /// What was recorded, and a new beginning; none where nothing is.
    pub(crate) fn take_profile(&self, device: &Device) -> Option<Profile> {
        Some(Profile::new(device.to_string(), self.recording.as_ref()?.take()))
    }

    /// Runs a call of a model's entry.
    pub(crate) fn replay(
        &self,
        device: &Device,
        model: &str,
        schedule: &Schedule,
        recipe: &Recipe,
        call: Call<'_>,
    ) -> Result<()> {
        let steps = recipe.steps(model, schedule)?;
        let times = self.recording.as_ref().map(|recording| recording.begin(steps));
        let call = Call { times, ..call };
        let count = steps.launched.len();
        if !self.check_finite || count == 0 {
            return recipe.replay(&call);
        }
        for step in 0..count {
            let uploads = if step == 0 { call.uploads } else { &[] };
            let part = Call { uploads, then: None, steps: step..step + 1, times: call.times.clone(), ..call };
            recipe.replay(&part)?;
            finite::check(device, schedule, recipe, steps, step, call.locate)?;
        }
        if call.then.is_none() {
            return Ok(());
        }
        recipe.replay(&Call { uploads: &[], steps: count..count, ..call })
    }
}
