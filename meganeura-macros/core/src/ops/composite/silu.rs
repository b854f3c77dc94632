//! The sigmoid linear unit.

use meganeura_shaders::pointwise::Un;

use crate::ir::{Graph, ValueId};

/// `x · σ(x)` (Elfwing, Uchibe and Doya, 2017).
pub fn silu(graph: &mut Graph, x: ValueId) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let sigmoid = graph.un(Un::Sigmoid, x[0]);
        vec![graph.mul(x[0], sigmoid)]
    };
    graph.call("silu", &[x], body, None)
}
