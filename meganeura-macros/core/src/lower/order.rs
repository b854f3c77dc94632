//! The order of nodes within a block: what does not depend on each other stands side by side, so that few barriers are
//! needed.
//!
//! Between two loops a node goes as early as its inputs allow; one that reads only what lies around the stretch goes as
//! late as its readers allow, since what it makes would only take memory before.

use std::collections::BTreeMap;

use super::place::is_view;
use crate::ir::{Graph, NodeId};
use crate::ops::Op;

/// The same graph with the nodes of every block in that order.
pub(super) fn ordered(graph: &Graph) -> Graph {
    let mut ordered = graph.clone();
    for block in &mut ordered.blocks {
        let is_loop = |id: &NodeId| matches!(graph.node(*id).op, Op::Repeat(_));
        block.nodes.split_mut(is_loop).for_each(|stretch| sort(graph, stretch));
    }
    ordered
}

fn sort(graph: &Graph, stretch: &mut [NodeId]) {
    let is_step = |id: NodeId| {
        let node = graph.node(id);
        !is_view(graph, node) && !matches!(node.op, Op::Read(_))
    };
    let sources = |id: NodeId| graph.node(id).inputs.iter().filter_map(|v| graph.value(*v).def).map(|(node, _)| node);
    let mut levels: BTreeMap<NodeId, usize> = BTreeMap::new();
    let level = |id: NodeId, levels: &BTreeMap<NodeId, usize>| {
        let before = sources(id).filter_map(|source| levels.get(&source)).max().copied().unwrap_or(0);
        before + usize::from(is_step(id))
    };
    for id in stretch.iter() {
        levels.insert(*id, level(*id, &levels));
    }
    // The last level at which no reader has to wait.
    let mut due: BTreeMap<NodeId, usize> = BTreeMap::new();
    for id in stretch.iter().rev() {
        let own = if is_step(*id) { Some(levels[id] - 1) } else { due.get(id).copied() };
        for source in sources(*id) {
            if let Some(own) = own {
                let least = due.entry(source).or_insert(own);
                *least = own.min(*least);
            }
        }
    }
    for id in stretch.iter() {
        match (is_step(*id), due.get(id)) {
            (true, Some(due)) if levels[id] == 1 => levels.insert(*id, *due),
            (true, _) => None,
            (false, _) => levels.insert(*id, level(*id, &levels)),
        };
    }
    stretch.sort_by_key(|id| levels[id]);
}
