//! Normalisation by the root of the mean square of a row.

use meganeura_shaders::pointwise::{Bin, Un};

use super::row_mean;
use crate::ir::{Graph, ValueId};

/// `x̂ = x / √(mean(x²) + eps)` over the last axis, without weights (Zhang and Sennrich, 2019).
/// Its derivative is `r (g - x̂ mean(g x̂))`. Inner value: `r = 1 / √(mean(x²) + eps)`, `[.., 1]`.
pub fn rms_norm(graph: &mut Graph, x: ValueId, eps: f64) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let square = graph.mul(x[0], x[0]);
        let mean = row_mean(graph, square);
        let shifted = graph.with_const(Bin::Add, mean, eps);
        let r = graph.un(Un::Rsqrt, shifted);
        vec![graph.mul(x[0], r), r]
    };
    let derivative = |graph: &mut Graph, _: &[ValueId], y: &[ValueId], g: ValueId| {
        let weighted = graph.mul(g, y[0]);
        let mean = row_mean(graph, weighted);
        let part = graph.mul(y[0], mean);
        let rest = graph.sub(g, part);
        vec![graph.mul(y[1], rest)]
    };
    graph.call("rms_norm", &[x], body, Some((vec![0], &derivative)))
}
