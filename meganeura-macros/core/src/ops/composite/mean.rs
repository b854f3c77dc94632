//! The mean over axes.

use meganeura_shaders::dim::{Dim, product};

use crate::ir::{Graph, ValueId};

/// `Σ x / n` over axes (ascending), which become 1; n may be a runtime dimension.
pub fn mean(graph: &mut Graph, x: ValueId, axes: &[u8]) -> ValueId {
    graph.call("mean", &[x], |graph, x| vec![mean_of(graph, x[0], axes)], None)
}

/// The same as nodes.
pub(super) fn mean_of(graph: &mut Graph, x: ValueId, axes: &[u8]) -> ValueId {
    let (sum, count) = (graph.sum(x, axes), count(graph, x, axes));
    let count = graph.size(&count);
    graph.div(sum, count)
}

/// How many elements the axes have together.
pub(super) fn count(graph: &Graph, x: ValueId, axes: &[u8]) -> Dim {
    product(axes.iter().map(|axis| &graph.shape(x)[usize::from(*axis)]))
}
