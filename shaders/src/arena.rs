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
        let (offsets, bytes) = lowest(&self.orders, &sizes(buffers, &self.lives, env));
        Arena { offsets: self.lives.iter().map(|life| life.buffer).zip(offsets).collect(), bytes }
    }
}

/// Bytes of the buffer of each life.
pub fn sizes(buffers: &[Buffer], lives: &[Life], env: &Env) -> Vec<i64> {
    lives.iter().map(|life| buffers[life.buffer].bytes.eval(env)).collect()
}

/// Offsets and height of the order that is lowest at these sizes; all zero without orders.
pub fn lowest(orders: &[Order], sizes: &[i64]) -> (Vec<i64>, i64) {
    let piles = orders.iter().map(|order| pile(order, sizes));
    piles.min_by_key(|(_, bytes)| *bytes).unwrap_or_else(|| (vec![0; sizes.len()], 0))
}

/// Offsets and height of one order: each buffer as low as the ends of those below it allow.
pub fn pile(order: &Order, sizes: &[i64]) -> (Vec<i64>, i64) {
    let mut offsets = vec![0; sizes.len()];
    for (life, below) in order {
        offsets[*life] = below.iter().map(|b| offsets[*b] + sizes[*b]).max().unwrap_or(0);
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
        assert_eq!(lowest(&orders, &[256, 512, 1024]), (vec![0, 1024, 0], 1536));
        assert_eq!(lowest(&orders[..1], &[256, 512, 1024]), (vec![0, 256, 768], 1792));
        assert_eq!(lowest(&[], &[]), (vec![], 0));
    }
}
