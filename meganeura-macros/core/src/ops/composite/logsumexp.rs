//! The logarithm of the sum of exponentials of a row.

use meganeura_shaders::pointwise::Un;

use super::{exponentials, is_alive};
use crate::ir::{Graph, ValueId};

/// `max + ln Σ e^(x - max)`, `[.., 1]`; of a masked row its maximum. Its derivative is `g · e^(x - result)`, the
/// softmax, and 0 in a masked row.
pub fn logsumexp(graph: &mut Graph, x: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let row = exponentials(graph, x[0]);
        let log = graph.un(Un::Log, row.sum);
        vec![graph.add(row.max, log)]
    };
    let derivative = |graph: &mut Graph, x: &[ValueId], y: &[ValueId], g: ValueId| {
        let log = graph.sub(x[0], y[0]);
        let p = graph.un(Un::Exp, log);
        let cotangent = graph.mul(g, p);
        let (alive, zero) = (is_alive(graph, y[0]), graph.constant(0.0));
        vec![graph.select(alive, cotangent, zero)]
    };
    graph.call("logsumexp", &[x], body, Some((vec![0], &derivative)))
}
