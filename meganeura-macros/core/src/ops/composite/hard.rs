//! Piecewise linear stand-ins for sigmoid and SiLU. At a corner the gradient is 0, as in PyTorch.

use meganeura_shaders::pointwise::{Bin, Un};

use crate::ir::{Graph, ValueId};

/// `min(max(x, 0), 6)` (Krizhevsky, 2010).
pub fn relu6(graph: &mut Graph, x: ValueId) -> ValueId {
    graph.call("relu6", &[x], |graph, x| vec![clipped(graph, x[0], 0.0)], None)
}

/// `relu6(x + 3) / 6`.
pub fn hardsigmoid(graph: &mut Graph, x: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let clipped = clipped(graph, x[0], 3.0);
        vec![graph.with_const(Bin::Div, clipped, 6.0)]
    };
    graph.call("hardsigmoid", &[x], body, None)
}

/// `x · relu6(x + 3) / 6` (Howard et al., Searching for MobileNetV3, 2019).
pub fn hardswish(graph: &mut Graph, x: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let clipped = clipped(graph, x[0], 3.0);
        let product = graph.mul(x[0], clipped);
        vec![graph.with_const(Bin::Div, product, 6.0)]
    };
    graph.call("hardswish", &[x], body, None)
}

/// `min(6, relu(x + by))`; a tie at 6 goes to the constant, which has no slope.
fn clipped(graph: &mut Graph, x: ValueId, by: f64) -> ValueId {
    let shifted = if by == 0.0 { x } else { graph.with_const(Bin::Add, x, by) };
    let relu = graph.un(Un::Relu, shifted);
    let six = graph.constant(6.0);
    graph.bin(Bin::Min, six, relu)
}
