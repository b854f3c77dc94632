//! Where arena buffers lie at known sizes: one pass over each order of the plan, the lowest arena wins.
//!
//! Segments bound what a device can bind. A buffer that would cross the end of a segment starts at the next one,
//! which only raises offsets, so an order stays valid; a buffer larger than a segment is a named error.

use std::collections::BTreeMap;

use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule::{ALIGN, BufferId, Order, Plan, Schedule};

use crate::{Error, Result};

/// Offsets of arena buffers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arena {
    /// Bytes from the start of the arena, for each buffer of the schedule that lies there.
    pub offsets: BTreeMap<BufferId, u64>,
    /// Bytes of the whole.
    pub bytes: u64,
}

/// Lays out the arena of a plan.
pub fn lay_out(schedule: &Schedule, plan: &Plan, env: &Env, segment: u64) -> Result<Arena> {
    let mut sizes = Vec::with_capacity(plan.lives.len());
    for life in &plan.lives {
        let buffer = &schedule.buffers[life.buffer];
        let bytes = buffer.bytes.eval(env).unsigned_abs().next_multiple_of(ALIGN.unsigned_abs());
        if bytes > segment {
            return Err(Error::Limit {
                what: format!("value `{}` of `{}`", buffer.name, schedule.name),
                limit: "bytes of a storage binding",
                allowed: segment,
                found: bytes,
            });
        }
        sizes.push(bytes);
    }
    let piles = plan.orders.iter().map(|order| pile(order, &sizes, segment));
    let (offsets, bytes) = piles.min_by_key(|(_, bytes)| *bytes).unwrap_or_default();
    Ok(Arena { offsets: plan.lives.iter().map(|life| life.buffer).zip(offsets).collect(), bytes })
}

fn pile(order: &Order, sizes: &[u64], segment: u64) -> (Vec<u64>, u64) {
    let mut offsets = vec![0; sizes.len()];
    let mut height = 0;
    for (life, below) in order {
        let start = below.iter().map(|b| offsets[*b] + sizes[*b]).max().unwrap_or(0);
        let crosses = sizes[*life] > 0 && start / segment != (start + sizes[*life] - 1) / segment;
        offsets[*life] = if crosses { start.next_multiple_of(segment) } else { start };
        height = height.max(offsets[*life] + sizes[*life]);
    }
    (offsets, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_conflict_stay_apart_and_inside_segments() {
        let order: Order = vec![(0, vec![]), (1, vec![0]), (2, vec![1]), (3, vec![0])];
        let sizes = [512, 768, 256, 1024];
        let (offsets, height) = pile(&order, &sizes, 1024);
        assert_eq!(offsets, [0, 1024, 1792, 1024]);
        assert_eq!(height, 2048);
        for (life, below) in &order {
            let inside = offsets[*life] / 1024 == (offsets[*life] + sizes[*life] - 1) / 1024;
            assert!(inside && below.iter().all(|b| offsets[*b] + sizes[*b] <= offsets[*life]));
        }
    }
}
