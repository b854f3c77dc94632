//! Which values a gradient flows through: those that change with a trained tensor and that the loss depends on.

use meganeura_shaders::prog::DType;

use crate::ir::{BlockId, Graph, Node, ROOT, ValueId};
use crate::ops::Op;
use crate::prune::needed_by;

/// For each value, whether it has a cotangent that someone needs.
pub(super) fn active(graph: &Graph, loss: ValueId) -> Vec<bool> {
    let mut active = vec![false; graph.values.len()];
    graph.trained().iter().for_each(|(value, _)| active[value.index()] = true);
    spread(graph, ROOT, &mut active);
    let needed = needed_by(graph, ROOT, &[loss]);
    active.iter_mut().zip(needed).for_each(|(active, needed)| *active &= needed);
    active
}

/// Marks what changes with an active value. Through a loop: until the carried values no longer change.
fn spread(graph: &Graph, block: BlockId, active: &mut [bool]) {
    for id in &graph.block(block).nodes {
        let Node { op, inputs, outputs, .. } = graph.node(*id);
        let Op::Repeat(repeat) = op else {
            if inputs.iter().enumerate().any(|(k, v)| active[v.index()] && !op.is_flat(k)) {
                let floats = outputs.iter().filter(|v| graph.ty(**v).dtype == DType::F32);
                floats.for_each(|v| active[v.index()] = true);
            }
            continue;
        };
        let body = graph.block(repeat.body);
        let args = inputs.iter().zip(&body.args[1..]);
        args.for_each(|(input, arg)| active[arg.index()] |= active[input.index()]);
        let mut grows = true;
        while grows {
            spread(graph, repeat.body, active);
            grows = false;
            for (result, arg) in body.results[..repeat.carried].iter().zip(&body.args[1..]) {
                grows |= active[result.index()] && !active[arg.index()];
                active[arg.index()] |= active[result.index()];
            }
        }
        let results = outputs.iter().zip(&body.results);
        results.for_each(|(output, result)| active[output.index()] |= active[result.index()]);
    }
}
