//! The logarithm of softmax over the last axis.

use meganeura_shaders::pointwise::Un;

use super::{exponentials, is_alive};
use crate::ir::{Graph, ValueId};

/// `l = (x - max) - ln Σ e^(x - max)`; of a masked row the scores themselves, whose softmax is 0 as well.
/// Its derivative is `g - e^l Σ g`, and 0 in a masked row. Inner value: the row's maximum.
pub fn log_softmax(graph: &mut Graph, x: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let row = exponentials(graph, x[0]);
        let log = graph.un(Un::Log, row.sum);
        vec![graph.sub(row.shifted, log), row.max]
    };
    let derivative = |graph: &mut Graph, _: &[ValueId], y: &[ValueId], g: ValueId| {
        let p = graph.un(Un::Exp, y[0]);
        let sum = graph.row_sum(g);
        let part = graph.mul(p, sum);
        let cotangent = graph.sub(g, part);
        let (alive, zero) = (is_alive(graph, y[1]), graph.constant(0.0));
        vec![graph.select(alive, cotangent, zero)]
    };
    graph.call("log_softmax", &[x], body, Some((vec![0], &derivative)))
}
