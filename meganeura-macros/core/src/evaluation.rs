//! A graph as it is outside of training steps: composites that say so become what they are there.

use std::collections::BTreeMap;

use crate::ir::{BlockId, Call, Graph, ROOT};
use crate::ops::Op;
use crate::prune::needed_by;

/// The graph of a call that trains nothing. Such composites no longer read what only training needs, and their inner
/// values, which only derivatives read, are gone.
pub fn evaluated(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let mut read: BTreeMap<BlockId, Vec<bool>> = BTreeMap::new();
    for node in &graph.nodes {
        if let Op::Call(Call { evaluation: Some(block), .. }) = node.op {
            let live = needed_by(&graph, block, &graph.block(block).results);
            read.insert(block, graph.block(block).args.iter().map(|arg| live[arg.index()]).collect());
        }
    }
    for (block, read) in &read {
        let mut read = read.iter();
        graph.blocks[block.index()].args.retain(|_| read.next() == Some(&true));
    }
    for node in &mut graph.nodes {
        if let Op::Call(Call { body, derivative, evaluation, .. }) = &mut node.op
            && let Some(block) = evaluation.take()
        {
            (*body, *derivative) = (block, None);
            let mut read = read[&block].iter();
            node.inputs.retain(|_| read.next() == Some(&true));
            node.outputs.truncate(1);
        }
    }
    debug_assert!(!read.contains_key(&ROOT), "a composite has a block of its own");
    graph
}
