//! The mean squared error.

use meganeura_shaders::dim::product;

use crate::ir::{Graph, ValueId};

/// The mean of `(x - y)²` over all elements, of shape `[]`.
pub fn mse(graph: &mut Graph, x: ValueId, y: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let error = graph.sub(x[0], x[1]);
        let square = graph.mul(error, error);
        let count = product(graph.shape(square));
        let (sum, count) = (graph.sum_all(square), graph.size(&count));
        vec![graph.div(sum, count)]
    };
    graph.call("mse", &[x, y], body, None)
}
