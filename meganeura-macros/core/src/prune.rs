//! Removes what no output needs: nodes, and carried values, stacks and inputs of loops.
//!
//! Need travels through loops until nothing changes: a carried value that some iteration reads is needed from the
//! iteration before. Arenas keep what is removed; blocks no longer name it.

use crate::ir::{BlockId, Graph, Node, ROOT, Repeat, ValueId};
use crate::ops::Op;

/// Removes what no output needs.
pub fn prune(graph: &mut Graph) {
    let roots: Vec<ValueId> = graph.outputs.iter().map(|output| output.value).collect();
    let live = needed_by(graph, ROOT, &roots);
    sweep(graph, ROOT, &live);
}

/// For each value of a block and of the loops in it, whether one of the roots depends on it.
pub fn needed_by(graph: &Graph, block: BlockId, roots: &[ValueId]) -> Vec<bool> {
    let mut live = vec![false; graph.values.len()];
    roots.iter().for_each(|value| live[value.index()] = true);
    mark(graph, block, &mut live);
    live
}

fn mark(graph: &Graph, block: BlockId, live: &mut [bool]) {
    for id in graph.block(block).nodes.iter().rev() {
        let Node { op, inputs, outputs, .. } = graph.node(*id);
        let Op::Repeat(Repeat { carried, body, .. }) = op else {
            if outputs.iter().any(|v| live[v.index()]) {
                inputs.iter().for_each(|v| live[v.index()] = true);
            }
            continue;
        };
        let loop_body = graph.block(*body);
        let mut grows = true;
        while grows {
            let results = outputs.iter().zip(&loop_body.results);
            results.for_each(|(output, result)| live[result.index()] |= live[output.index()]);
            mark(graph, *body, live);
            grows = false;
            for (output, arg) in outputs[..*carried].iter().zip(&loop_body.args[1..]) {
                grows |= live[arg.index()] && !live[output.index()];
                let either = live[arg.index()] || live[output.index()];
                (live[arg.index()], live[output.index()]) = (either, either);
            }
        }
        let args = inputs.iter().zip(&loop_body.args[1..]);
        args.for_each(|(input, arg)| live[input.index()] |= live[arg.index()]);
    }
}

fn sweep(graph: &mut Graph, block: BlockId, live: &[bool]) {
    let is_live = |v: &ValueId| live[v.index()];
    let mut nodes = graph.block(block).nodes.clone();
    nodes.retain(|id| graph.node(*id).outputs.iter().any(is_live));
    for id in &nodes {
        let node = &mut graph.nodes[id.index()];
        let Op::Repeat(repeat) = &mut node.op else { continue };
        let body = &mut graph.blocks[repeat.body.index()];
        let args = body.args.split_off(1);
        let keep = |range: std::ops::Range<usize>| args[range].iter().filter(|v| is_live(v)).count();
        let stacked = repeat.carried..repeat.carried + repeat.stacked;
        (repeat.carried, repeat.stacked) = (keep(0..repeat.carried), keep(stacked));
        let pick = |of: &[ValueId], by: &[ValueId]| -> Vec<ValueId> {
            of.iter().zip(by).filter(|(_, v)| is_live(v)).map(|(v, _)| *v).collect()
        };
        node.inputs = pick(&node.inputs, &args);
        body.args.extend(pick(&args, &args));
        body.results = pick(&body.results, &node.outputs);
        node.outputs = pick(&node.outputs, &node.outputs);
        let (body, outputs) = (repeat.body, node.outputs.clone());
        outputs.iter().enumerate().for_each(|(k, v)| graph.values[v.index()].def = Some((*id, k)));
        sweep(graph, body, live);
    }
    graph.blocks[block.index()].nodes = nodes;
}
