//! Normalisation of a row to mean 0 and variance 1.

use meganeura_shaders::pointwise::{Bin, Un};

use super::row_mean;
use crate::ir::{Graph, ValueId};

/// `x̂ = (x - mean) / √(var + eps)` over the last axis with the population variance in two passes, without weights (Ba,
/// Kiros and Hinton, 2016). Its derivative is `r (g - mean(g) - x̂ mean(g x̂))`. Inner value: `r = 1 / √(var + eps)`,
/// `[.., 1]`.
pub fn layer_norm(graph: &mut Graph, x: ValueId, eps: f64) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let mean = row_mean(graph, x[0]);
        let centred = graph.sub(x[0], mean);
        let square = graph.mul(centred, centred);
        let variance = row_mean(graph, square);
        let shifted = graph.with_const(Bin::Add, variance, eps);
        let r = graph.un(Un::Rsqrt, shifted);
        vec![graph.mul(centred, r), r]
    };
    let derivative = |graph: &mut Graph, _: &[ValueId], y: &[ValueId], g: ValueId| {
        let weighted = graph.mul(g, y[0]);
        let (mean, slope) = (row_mean(graph, g), row_mean(graph, weighted));
        let part = graph.mul(y[0], slope);
        let rest = graph.sub(g, mean);
        let rest = graph.sub(rest, part);
        vec![graph.mul(y[1], rest)]
    };
    graph.call("layer_norm", &[x], body, Some((vec![0], &derivative)))
}
