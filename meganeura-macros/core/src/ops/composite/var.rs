//! The variance over axes.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::Bin;

use super::mean::{count, mean_of};
use crate::ir::{Graph, ValueId};

/// `Σ (x - mean)² / (n - correction)` over axes (ascending), which become 1, in two passes; a correction of 0 is the
/// population's variance. Its derivative is `2 g (x - mean) / (n - correction)`. Inner value: the mean.
pub fn var(graph: &mut Graph, x: ValueId, axes: &[u8], correction: i64) -> ValueId {
    let divisor = &count(graph, x, axes) - &Dim::from(correction);
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let mean = mean_of(graph, x[0], axes);
        let centred = graph.sub(x[0], mean);
        let square = graph.mul(centred, centred);
        let (sum, divisor) = (graph.sum(square, axes), graph.size(&divisor));
        vec![graph.div(sum, divisor), mean]
    };
    let derivative = |graph: &mut Graph, x: &[ValueId], y: &[ValueId], g: ValueId| {
        let centred = graph.sub(x[0], y[1]);
        let twice = graph.with_const(Bin::Mul, centred, 2.0);
        let divisor = graph.size(&divisor);
        let each = graph.div(g, divisor);
        vec![graph.mul(twice, each)]
    };
    graph.call("var", &[x], body, Some((vec![0], &derivative)))
}
