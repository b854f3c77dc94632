//! A rectifier that lets some of the negative side through.

use meganeura_shaders::pointwise::Bin;

use crate::ir::{Graph, ValueId};

/// `x` where positive, else `slope · x` (Maas, Hannun and Ng, 2013).
pub fn leaky_relu(graph: &mut Graph, x: ValueId, slope: f64) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let zero = graph.constant(0.0);
        let positive = graph.bin(Bin::Lt, zero, x[0]);
        let scaled = graph.with_const(Bin::Mul, x[0], slope);
        vec![graph.select(positive, x[0], scaled)]
    };
    graph.call("leaky_relu", &[x], body, None)
}
