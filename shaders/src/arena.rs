//! Where arena buffers lie at given sizes: the prefix sums of a plan's orders, run when dimensions change.

use std::collections::BTreeMap;

use crate::dim::Env;
use crate::schedule::{Buffer, BufferId, Life, Order, Plan};

/// Offsets of the arena buffers at some sizes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arena {
    /// Bytes from the start of the arena to each buffer.
    pub offsets: BTreeMap<BufferId, i64>,
    /// Bytes in all.
    pub bytes: i64,
}

impl Plan {
    /// The layout of the order that is lowest at these sizes.
    pub fn arena(&self, buffers: &[Buffer], env: &Env) -> Arena {
        self.arena_in_segments(buffers, env, i64::MAX)
    }

    /// The same in memory of segments that no buffer may cross: one that would starts at the next segment, which only
    /// raises what lies above, so every order stays valid. No buffer may be larger than a segment.
    pub fn arena_in_segments(&self, buffers: &[Buffer], env: &Env, segment: i64) -> Arena {
        let (offsets, bytes) = lowest(&self.orders, &sizes(buffers, &self.lives, env), segment);
        Arena { offsets: self.lives.iter().map(|life| life.buffer).zip(offsets).collect(), bytes }
    }
}

/// Bytes of the buffer of each life.
pub fn sizes(buffers: &[Buffer], lives: &[Life], env: &Env) -> Vec<i64> {
    lives.iter().map(|life| buffers[life.buffer].bytes.eval(env)).collect()
}

/// Offsets and height of the order that is lowest at these sizes; all zero without orders.
fn lowest(orders: &[Order], sizes: &[i64], segment: i64) -> (Vec<i64>, i64) {
    let piles = orders.iter().map(|order| pile(order, sizes, segment));
    piles.min_by_key(|(_, bytes)| *bytes).unwrap_or_else(|| (vec![0; sizes.len()], 0))
}

/// Offsets and height of one order: each buffer as low as the ends of those below it allow.
pub fn pile(order: &Order, sizes: &[i64], segment: i64) -> (Vec<i64>, i64) {
    let mut offsets = vec![0; sizes.len()];
    for (life, below) in order {
        let (start, size) = (below.iter().map(|b| offsets[*b] + sizes[*b]).max().unwrap_or(0), sizes[*life]);
        let crosses = size > 0 && start / segment != (start + size - 1) / segment;
        offsets[*life] = if crosses { (start / segment + 1) * segment } else { start };
    }
    let height = offsets.iter().zip(sizes).map(|(offset, size)| offset + size).max().unwrap_or(0);
    (offsets, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_order_is_taken_and_each_buffer_lies_above_those_below() {
        let orders: [Order; 2] =
            [vec![(0, vec![]), (1, vec![0]), (2, vec![1])], vec![(2, vec![]), (0, vec![]), (1, vec![0, 2])]];
        assert_eq!(lowest(&orders, &[256, 512, 1024], i64::MAX), (vec![0, 1024, 0], 1536));
        assert_eq!(lowest(&orders[..1], &[256, 512, 1024], i64::MAX), (vec![0, 256, 768], 1792));
        assert_eq!(lowest(&[], &[], i64::MAX), (vec![], 0));
    }

    #[test]
    fn buffers_that_conflict_stay_apart_and_inside_segments() {
        let order: Order = vec![(0, vec![]), (1, vec![0]), (2, vec![1]), (3, vec![0])];
        assert_eq!(pile(&order, &[512, 768, 256, 1024], 1024), (vec![0, 1024, 1792, 1024], 2048));
        assert_eq!(pile(&order, &[512, 512, 0, 0], 1024), (vec![0, 512, 1024, 512], 1024));
    }
}
