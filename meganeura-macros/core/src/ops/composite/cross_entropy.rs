//! Cross-entropy of a row of logits against the index of the right class.

use meganeura_shaders::dim::{Dim, product};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::Const;

use crate::ir::{Graph, ValueId};

/// What a cross-entropy takes beside logits and labels.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counting {
    /// Rows with this label do not count, nor do those whose label is no class.
    pub ignored: Option<u32>,
    /// This share of every label is spread evenly over all classes.
    pub smoothing: f64,
}

/// The mean over the rows that count of `ln Σ e^(x - max) - (x[label] - max)`, of shape `[]`, for logits `[.., n]` and u32
/// labels `[..]`; 0 if no row counts. The label is found by comparing indices, so nothing is gathered; distances from the
/// maximum keep large logits exact. Its derivative is `(p - onehot) · g / rows`. With smoothing (Szegedy et al., 2016)
/// the label is `(1 - ε) onehot + ε / n`. Inner values: the maximum and the sum, `[.., 1]`, and the number of rows.
pub fn cross_entropy(graph: &mut Graph, logits: ValueId, labels: ValueId) -> ValueId {
    cross_entropy_of(graph, logits, labels, Counting::default())
}

/// The same with rows that do not count, or labels that are spread.
pub fn cross_entropy_of(graph: &mut Graph, logits: ValueId, labels: ValueId, counting: Counting) -> ValueId {
    let Counting { ignored, smoothing } = counting;
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let max = graph.row_max(x[0]);
        let shifted = graph.sub(x[0], max);
        let exp = graph.un(Un::Exp, shifted);
        let sum = graph.row_sum(exp);
        let log = graph.un(Un::Log, sum);
        let (hit, zero) = (is_label(graph, x), graph.constant(0.0));
        let picked = graph.select(hit, shifted, zero);
        let mut picked = graph.row_sum(picked);
        if smoothing != 0.0 {
            let (all, classes) = (graph.row_sum(shifted), classes(graph, x));
            let mean = graph.div(all, classes);
            let (own, rest) =
                (graph.with_const(Bin::Mul, picked, 1.0 - smoothing), graph.with_const(Bin::Mul, mean, smoothing));
            picked = graph.add(own, rest);
        }
        let mut each = graph.sub(log, picked);
        let rows = match ignored {
            None => {
                let rows = product(graph.shape(x[1]));
                graph.size(&rows)
            }
            Some(ignored) => {
                let (counts, one) = (counts(graph, x, ignored), graph.constant(1.0));
                each = graph.select(counts, each, zero);
                let number = graph.select(counts, one, zero);
                let number = graph.sum_all(number);
                graph.bin(Bin::Max, number, one)
            }
        };
        let total = graph.sum_all(each);
        let loss = graph.div(total, rows);
        if ignored.is_some() { vec![loss, max, sum, rows] } else { vec![loss, max, sum] }
    };
    let derivative = |graph: &mut Graph, x: &[ValueId], y: &[ValueId], g: ValueId| {
        let shifted = graph.sub(x[0], y[1]);
        let exp = graph.un(Un::Exp, shifted);
        let p = graph.div(exp, y[2]);
        let (hit, zero, own) = (is_label(graph, x), graph.constant(0.0), graph.constant(1.0 - smoothing));
        let mut target = graph.select(hit, own, zero);
        if smoothing != 0.0 {
            let (share, classes) = (graph.constant(smoothing), classes(graph, x));
            let share = graph.div(share, classes);
            target = graph.add(target, share);
        }
        let slope = graph.sub(p, target);
        let rows = match y.get(3) {
            Some(rows) => *rows,
            None => {
                let rows = product(graph.shape(x[1]));
                graph.size(&rows)
            }
        };
        let each = graph.div(g, rows);
        let cotangent = graph.mul(slope, each);
        vec![match ignored {
            None => cotangent,
            Some(ignored) => {
                let counts = counts(graph, x, ignored);
                graph.select(counts, cotangent, zero)
            }
        }]
    };
    graph.call("cross_entropy", &[logits, labels], body, Some((vec![0], &derivative)))
}

/// The labels as a column beside the logits.
fn column(graph: &mut Graph, x: &[ValueId]) -> ValueId {
    let column = [&graph.shape(x[1])[..], &[1.into()]].concat();
    graph.reshape(x[1], column)
}

/// Whether an element of the logits stands at its row's label.
fn is_label(graph: &mut Graph, x: &[ValueId]) -> ValueId {
    let index = graph.index(0, x[0]);
    let label = column(graph, x);
    graph.bin(Bin::Eq, index, label)
}

/// Whether a row counts, `[.., 1]`.
fn counts(graph: &mut Graph, x: &[ValueId], ignored: u32) -> ValueId {
    let label = column(graph, x);
    let ignored = graph.integer(Const::Uint(ignored));
    let same = graph.bin(Bin::Eq, label, ignored);
    let other = graph.un(Un::Not, same);
    let classes = graph.shape(x[0]).last().cloned().unwrap_or_else(|| Dim::from(1));
    let classes = graph.count(&classes);
    let inside = graph.bin(Bin::Lt, label, classes);
    graph.bin(Bin::And, other, inside)
}

fn classes(graph: &mut Graph, x: &[ValueId]) -> ValueId {
    let classes = graph.shape(x[0]).last().cloned().unwrap_or_else(|| Dim::from(1));
    graph.size(&classes)
}
