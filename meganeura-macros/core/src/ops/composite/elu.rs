//! The exponential linear unit.

use meganeura_shaders::pointwise::{Bin, Un};

use crate::ir::{Graph, ValueId};

/// `x` where positive, else `alpha · (e^x - 1)` (Clevert, Unterthiner and Hochreiter, 2015).
pub fn elu(graph: &mut Graph, x: ValueId, alpha: f64) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let zero = graph.constant(0.0);
        let positive = graph.bin(Bin::Lt, zero, x[0]);
        // The side that is not taken must stay finite: its cotangent is 0, and 0 · ∞ is not.
        let negative = graph.bin(Bin::Min, x[0], zero);
        let exp = graph.un(Un::Exp, negative);
        let below = graph.with_const(Bin::Sub, exp, 1.0);
        let below = graph.with_const(Bin::Mul, below, alpha);
        vec![graph.select(positive, x[0], below)]
    };
    graph.call("elu", &[x], body, None)
}
