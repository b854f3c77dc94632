//! The Gaussian error linear unit, exact and approximate. Each has the gradient of its own form.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use meganeura_shaders::pointwise::{Bin, Un};

use crate::ir::{Graph, ValueId};

/// `x · Φ(x)` with `Φ(x) = ½ (1 + erf(x / √2))` (Hendrycks and Gimpel, 2016).
pub fn gelu(graph: &mut Graph, x: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let scaled = graph.with_const(Bin::Mul, x[0], FRAC_1_SQRT_2);
        let bell = graph.un(Un::Erf, scaled);
        vec![half_of_one_plus(graph, x[0], bell)]
    };
    graph.call("gelu", &[x], body, None)
}

/// `½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))`, the approximation given by the same authors.
pub fn gelu_tanh(graph: &mut Graph, x: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let square = graph.mul(x[0], x[0]);
        let square = graph.with_const(Bin::Mul, square, 0.044715);
        let factor = graph.with_const(Bin::Add, square, 1.0);
        let scaled = graph.with_const(Bin::Mul, x[0], FRAC_2_PI.sqrt());
        let inner = graph.mul(scaled, factor);
        let tanh = graph.un(Un::Tanh, inner);
        vec![half_of_one_plus(graph, x[0], tanh)]
    };
    graph.call("gelu_tanh", &[x], body, None)
}

fn half_of_one_plus(graph: &mut Graph, x: ValueId, y: ValueId) -> ValueId {
    let half = graph.with_const(Bin::Mul, x, 0.5);
    let sum = graph.with_const(Bin::Add, y, 1.0);
    graph.mul(half, sum)
}
