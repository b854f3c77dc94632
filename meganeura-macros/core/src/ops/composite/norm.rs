//! The Euclidean norm over axes.

use meganeura_shaders::pointwise::{Bin, Un};

use crate::ir::{Graph, ValueId};

/// `(Σ |x|^p)^(1/p)` over axes (ascending), which become 1, for p of at least 1. Its derivative is
/// `g sign(x) (|x| / result)^(p - 1)`, and 0 where the result is.
pub fn norm_of(graph: &mut Graph, x: ValueId, axes: &[u8], p: f64) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let size = graph.un(Un::Abs, x[0]);
        let power = graph.with_const(Bin::Pow, size, p);
        let sum = graph.sum(power, axes);
        vec![graph.with_const(Bin::Pow, sum, 1.0 / p)]
    };
    let derivative = |graph: &mut Graph, x: &[ValueId], y: &[ValueId], g: ValueId| {
        let (zero, one) = (graph.constant(0.0), graph.constant(1.0));
        let positive = graph.bin(Bin::Lt, zero, y[0]);
        let length = graph.select(positive, y[0], one);
        let size = graph.un(Un::Abs, x[0]);
        let share = graph.div(size, length);
        let power = graph.with_const(Bin::Pow, share, p - 1.0);
        let sign = graph.un(Un::Sign, x[0]);
        let slope = graph.mul(sign, power);
        vec![graph.mul(slope, g)]
    };
    graph.call("norm", &[x], body, Some((vec![0], &derivative)))
}

/// `√(Σ x²)` over axes (ascending), which become 1. Its derivative is `g x / result`, and 0 where the result is.
pub fn norm(graph: &mut Graph, x: ValueId, axes: &[u8]) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let square = graph.mul(x[0], x[0]);
        let sum = graph.sum(square, axes);
        vec![graph.un(Un::Sqrt, sum)]
    };
    let derivative = |graph: &mut Graph, x: &[ValueId], y: &[ValueId], g: ValueId| {
        let (zero, one) = (graph.constant(0.0), graph.constant(1.0));
        let positive = graph.bin(Bin::Lt, zero, y[0]);
        let length = graph.select(positive, y[0], one);
        let unit = graph.div(x[0], length);
        vec![graph.mul(unit, g)]
    };
    graph.call("norm", &[x], body, Some((vec![0], &derivative)))
}
