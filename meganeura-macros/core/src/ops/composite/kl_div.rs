//! The Kullback-Leibler divergence of rows.

use meganeura_shaders::dim::product;
use meganeura_shaders::pointwise::{Bin, Un};

use crate::ir::{Graph, ValueId};

/// `Σ q (ln q - log_p)` over the last axis, the mean over rows, of shape `[]` (Kullback and Leibler, 1951). Where `q` is
/// 0 the term is 0, whatever `log_p` is, and so are both gradients there.
pub fn kl_div(graph: &mut Graph, log_p: ValueId, q: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let (zero, one) = (graph.constant(0.0), graph.constant(1.0));
        let counts = graph.bin(Bin::Lt, zero, x[1]);
        let (q, log_p) = (graph.select(counts, x[1], one), graph.select(counts, x[0], zero));
        let log = graph.un(Un::Log, q);
        let distance = graph.sub(log, log_p);
        let each = graph.mul(q, distance);
        let each = graph.select(counts, each, zero);
        let total = graph.sum_all(each);
        let shape = graph.shape(x[0]);
        let rows = product(&shape[..shape.len().saturating_sub(1)]);
        let rows = graph.size(&rows);
        vec![graph.div(total, rows)]
    };
    graph.call("kl_div", &[log_p, q], body, None)
}
