//! Elements in the other order.

use meganeura_shaders::dim::Dim;

use crate::ir::{Graph, ValueId};

/// The elements along an axis from the last to the first. The derivative is the same once more.
pub fn flip(graph: &mut Graph, x: ValueId, axis: usize) -> ValueId {
    let turned = |graph: &mut Graph, x: ValueId| {
        let size = graph.shape(x)[axis].clone();
        let (ids, last) = (graph.arange(&size), graph.count(&(&size - &Dim::from(1))));
        let ids = graph.sub(last, ids);
        graph.take(x, ids, axis)
    };
    let derivative = |graph: &mut Graph, _: &[ValueId], _: &[ValueId], g: ValueId| vec![turned(graph, g)];
    graph.call("flip", &[x], |graph, x| vec![turned(graph, x[0])], Some((vec![0], &derivative)))
}
