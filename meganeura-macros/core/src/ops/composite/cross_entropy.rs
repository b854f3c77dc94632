//! Cross-entropy of a row of logits against the index of the right class.

use meganeura_shaders::dim::product;
use meganeura_shaders::pointwise::{Bin, Un};

use crate::ir::{Graph, ValueId};

/// The mean over rows of `ln Σ e^(x - max) - (x[label] - max)`, of shape `[]`, for logits `[.., n]` and u32 labels
/// `[..]`. The label is found by comparing indices, so nothing is gathered; distances from the maximum keep large
/// logits exact. Its derivative is `(p - onehot) · g / rows`. Inner values: the maximum and the sum, `[.., 1]`.
pub fn cross_entropy(graph: &mut Graph, logits: ValueId, labels: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let max = graph.row_max(x[0]);
        let shifted = graph.sub(x[0], max);
        let exp = graph.un(Un::Exp, shifted);
        let sum = graph.row_sum(exp);
        let log = graph.un(Un::Log, sum);
        let (hit, zero) = (is_label(graph, x), graph.constant(0.0));
        let picked = graph.select(hit, shifted, zero);
        let picked = graph.row_sum(picked);
        let each = graph.sub(log, picked);
        let total = graph.sum_all(each);
        let rows = rows(graph, x);
        vec![graph.div(total, rows), max, sum]
    };
    let derivative = |graph: &mut Graph, x: &[ValueId], y: &[ValueId], g: ValueId| {
        let shifted = graph.sub(x[0], y[1]);
        let exp = graph.un(Un::Exp, shifted);
        let p = graph.div(exp, y[2]);
        let (hit, zero, one) = (is_label(graph, x), graph.constant(0.0), graph.constant(1.0));
        let hit = graph.select(hit, one, zero);
        let slope = graph.sub(p, hit);
        let rows = rows(graph, x);
        let each = graph.div(g, rows);
        vec![graph.mul(slope, each)]
    };
    graph.call("cross_entropy", &[logits, labels], body, Some((vec![0], &derivative)))
}

/// Whether an element of the logits stands at its row's label.
fn is_label(graph: &mut Graph, x: &[ValueId]) -> ValueId {
    let index = graph.index(0, x[0]);
    let column = [&graph.shape(x[1])[..], &[1.into()]].concat();
    let label = graph.reshape(x[1], column);
    graph.bin(Bin::Eq, index, label)
}

fn rows(graph: &mut Graph, x: &[ValueId]) -> ValueId {
    let rows = product(graph.shape(x[1]));
    graph.size(&rows)
}
