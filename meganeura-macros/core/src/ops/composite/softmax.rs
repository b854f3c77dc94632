//! Softmax over the last axis.

use super::exponentials;
use crate::ir::{Graph, ValueId};

/// `p = e^(x - max) / Σ e^(x - max)` (Bridle, 1990); a masked row (every score at most [`super::MASKED`]) is 0.
/// Its derivative is `p · (g - Σ g p)`, which vanishes in a masked row.
pub fn softmax(graph: &mut Graph, x: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let row = exponentials(graph, x[0]);
        vec![graph.div(row.exp, row.sum)]
    };
    let derivative = |graph: &mut Graph, _: &[ValueId], y: &[ValueId], g: ValueId| {
        let weighted = graph.mul(g, y[0]);
        let mean = graph.row_sum(weighted);
        let centred = graph.sub(g, mean);
        vec![graph.mul(y[0], centred)]
    };
    graph.call("softmax", &[x], body, Some((vec![0], &derivative)))
}
