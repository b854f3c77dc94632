//! A rectifier whose slope on the negative side is learned.

use meganeura_shaders::pointwise::Bin;

use crate::ir::{Graph, ValueId};

/// `x` where positive, else `slope · x` (He et al., Delving deep into rectifiers, 2015); both broadcast.
pub fn prelu(graph: &mut Graph, x: ValueId, slope: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let zero = graph.constant(0.0);
        let positive = graph.bin(Bin::Lt, zero, x[0]);
        let scaled = graph.mul(x[0], x[1]);
        vec![graph.select(positive, x[0], scaled)]
    };
    graph.call("prelu", &[x, slope], body, None)
}
