//! The limits that a device is trusted with, and the checks against them.
//!
//! The driver library reports none. Where the driver itself can be asked, these are its values; else the guaranteed
//! ones of Vulkan Roadmap 2022, with the range of a storage binding as every implementation of it has it.

use crate::{Error, Result};

/// Buffers that one kernel may bind: `b0 … b14`.
pub const MAX_BUFFERS: usize = 15;
/// `u32` words of the uniform struct `p`.
pub const MAX_WORDS: usize = 60;
/// Every binding's offset is a multiple of this many bytes.
pub const BINDING_ALIGNMENT: u64 = 256;

/// What a device guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes that one storage binding covers, counted from its offset to the end of its buffer.
    pub binding_bytes: u64,
    /// Workgroups along each axis of a dispatch.
    pub workgroups: u32,
    /// Invocations in one workgroup.
    pub invocations: u32,
    /// Invocations along each axis of a workgroup.
    pub workgroup: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
}

impl Limits {
    /// The baseline device.
    pub const BASELINE: Self = Self {
        binding_bytes: 128 << 20,
        workgroups: 65_535,
        invocations: 256,
        workgroup: [256, 256, 64],
        workgroup_bytes: 16 << 10,
    };

    /// A grid of at least `groups` workgroups over x and y, with fewer than y to spare; workgroup
    /// `x + y · (grid of x)` of it is the one that `groups` counts.
    pub fn grid(&self, what: &str, groups: u64) -> Result<[u32; 3]> {
        let most = u64::from(self.workgroups);
        check(|| what.to_string(), "workgroups of a grid", most * most, groups)?;
        let y = groups.div_ceil(most).max(1);
        Ok([groups.div_ceil(y) as u32, y as u32, 1])
    }
}

/// Fails with the limit's name and both values if `found` is more than `allowed`.
pub(super) fn check(what: impl FnOnce() -> String, limit: &'static str, allowed: u64, found: u64) -> Result<()> {
    if found <= allowed {
        return Ok(());
    }
    Err(Error::Limit { what: what(), limit, allowed, found })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn grids_cover_all_groups_within_the_limit() {
        let most = 65_535;
        for groups in [1, 2, most - 1, most, most + 1, 2 * most, 2 * most + 1, 1_000_003, most * most - 1, most * most]
        {
            let [x, y, z] = Limits::BASELINE.grid("k", groups).unwrap().map(u64::from);
            assert!(x <= most && y <= most && z == 1 && (groups..groups + y).contains(&(x * y)), "{groups}: {x} {y}");
        }
        assert_eq!(Limits::BASELINE.grid("k", 0).unwrap(), [0, 1, 1]);
        let error = Limits::BASELINE.grid("kernel `k`", most * most + 1).unwrap_err().to_string();
        assert!(error.contains("kernel `k`") && error.contains("at most 4294836225, found 4294836226"), "{error}");
    }
}
