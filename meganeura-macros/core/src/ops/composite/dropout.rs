//! Dropout (Srivastava et al., 2014). No mask is stored: the backward pass makes the same numbers again.

use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::Const;

use crate::ir::{Graph, ValueId};

/// Each element is 0 with probability `p`, the others are divided by `1 - p`; outside of training steps it is `x`.
/// The word `state` says which elements, with their coordinates. Words are compared as integers, so that every device
/// drops the same.
pub fn dropout(graph: &mut Graph, x: ValueId, state: ValueId, p: f64) -> ValueId {
    let dropped = |graph: &mut Graph, x: ValueId, state: ValueId| {
        let rank = graph.shape(x).len();
        let coordinates: Vec<ValueId> = (0..rank).rev().map(|axis| graph.index(axis as u8, x)).collect();
        let words = graph.hashed(state, &coordinates);
        let words = graph.upper_bits(words);
        let least = graph.integer(Const::Uint((p * 16_777_216.0).ceil() as u32));
        let kept = graph.bin(Bin::Le, least, words);
        let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
        let (scaled, zero) = (graph.with_const(Bin::Mul, x, scale), graph.constant(0.0));
        graph.select(kept, scaled, zero)
    };
    // The cotangent has the coordinates of `x`, so that `x` itself need not live.
    let derivative = |graph: &mut Graph, x: &[ValueId], _: &[ValueId], g: ValueId| vec![dropped(graph, g, x[1])];
    let value =
        graph.call("dropout", &[x, state], |graph, x| vec![dropped(graph, x[0], x[1])], Some((vec![0], &derivative)));
    graph.set_evaluation(value, |_, x| x[0]);
    value
}
