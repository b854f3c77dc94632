//! What the backward pass gets of the forward pass: a stand-in for each forward value that a derivative asks for.
//!
//! | value of the forward body | in the backward body |
//! |---|---|
//! | index, row of a stacked input, captured value | the same again, from the same source |
//! | carried argument | saved: one more stack of the forward loop |
//! | result of a node | saved or computed again, as the policy says |
//!
//! A source is itself a value of the block around the loop, so nesting needs nothing more: the same table is asked one
//! level up. At the root both passes lie in one block, and a forward value is used as it is.

use std::collections::BTreeMap;

use meganeura_shaders::prog::Instr;

use super::Policy;
use super::reverse::Reverse;
use crate::ir::{BlockId, Graph, Node, NodeId, Origin, ValueId};
use crate::ops::Op;

/// A forward block and the block that its backward nodes go to; at the root both are the same.
pub(super) struct Level {
    /// The forward block.
    pub(super) forward: BlockId,
    /// The forward loop; none at the root.
    pub(super) node: Option<NodeId>,
    /// Where backward nodes go.
    pub(super) backward: BlockId,
    /// Forward value → its stand-in in the backward block.
    pub(super) primal: BTreeMap<ValueId, ValueId>,
    /// Argument of the open backward loop → its source, still named as a value of the outer forward block.
    pub(super) sources: BTreeMap<ValueId, ValueId>,
}

impl Reverse<'_> {
    /// The stand-in of a forward value in the backward block of a level.
    pub(super) fn primal(&mut self, level: usize, value: ValueId) -> ValueId {
        let Level { forward, backward, primal, node, .. } = &self.levels[level];
        if self.graph.value(value).block == *backward {
            return value;
        }
        if let Some(known) = primal.get(&value) {
            return *known;
        }
        let (forward, node) = (*forward, *node);
        let stand_in = match self.graph.value(value).def {
            None => self.argument(level, forward, node, value),
            Some((def, _)) if self.runs_again(def) => return self.compute(level, def, value),
            Some(_) => self.save(level, value),
        };
        self.levels[level].primal.insert(value, stand_in);
        stand_in
    }

    fn argument(&mut self, level: usize, forward: BlockId, node: Option<NodeId>, value: ValueId) -> ValueId {
        let Some(Node { op: Op::Repeat(repeat), inputs, .. }) = node.map(|id| self.graph.node(id)) else {
            unreachable!("levels inside are loops")
        };
        let args = &self.graph.block(forward).args;
        let Some(k) = args[1..].iter().position(|arg| *arg == value) else { unreachable!("an argument of the body") };
        let (source, stacked) = (inputs[k], k < repeat.carried + repeat.stacked);
        if k < repeat.carried { self.save(level, value) } else { self.read_again(level, source, value, stacked) }
    }

    /// Whether the policy has a node computed again.
    fn runs_again(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let is_free = match &node.op {
            Op::Broadcast(_) | Op::Transpose(_) | Op::Slice(_) => true,
            Op::Instr(instr) => matches!(instr, Instr::Const(_) | Instr::Extent(_) | Instr::Index(..)),
            op => op.is_view(),
        };
        is_free || self.policy == Policy::Contractions && is_row_work(self.graph, node)
    }

    /// The node once more in the backward block, with all that it makes.
    fn compute(&mut self, level: usize, id: NodeId, value: ValueId) -> ValueId {
        let Node { op, inputs, outputs, origin, .. } = self.graph.node(id).clone();
        let inputs: Vec<ValueId> = inputs.iter().map(|v| self.primal(level, *v)).collect();
        let types = outputs.iter().map(|v| self.graph.ty(*v).clone()).collect();
        let around = std::mem::replace(&mut self.graph.origin, Origin { backward: true, ..origin });
        let copy = self.graph.push(op, &inputs, types);
        self.graph.origin = around;
        let copies = self.graph.node(copy).outputs.clone();
        self.levels[level].primal.extend(outputs.into_iter().zip(copies));
        self.levels[level].primal[&value]
    }

    /// One more stack of the forward loop, read at the index of the backward loop.
    fn save(&mut self, level: usize, value: ValueId) -> ValueId {
        let Some(node) = self.levels[level].node else { unreachable!("at the root nothing is saved") };
        let stack = self.graph.add_stack(node, value);
        self.read_again(level, stack, value, true)
    }

    /// A new argument of the backward loop; its source, a value of the outer forward block, is looked up when the
    /// loop is closed.
    fn read_again(&mut self, level: usize, source: ValueId, value: ValueId, stacked: bool) -> ValueId {
        let ty = self.graph.ty(value).clone();
        let arg = self.graph.new_value(ty, self.levels[level].backward, None);
        let open = self.graph.innermost();
        if stacked { &mut open.stacked } else { &mut open.captured }.push((source, arg));
        self.levels[level].sources.insert(arg, source);
        arg
    }

    /// Copies a forward body into the backward one, which is then differentiated in place.
    pub(super) fn compute_again(
        &mut self,
        nodes: &[NodeId],
        args: &[ValueId],
    ) -> (Vec<NodeId>, BTreeMap<ValueId, ValueId>) {
        let level = self.levels.len() - 1;
        let mut map: BTreeMap<ValueId, ValueId> = args.iter().map(|arg| (*arg, self.primal(level, *arg))).collect();
        let around = self.graph.origin.clone();
        let mut copies = vec![];
        for id in nodes {
            let Node { inputs, origin, .. } = self.graph.node(*id).clone();
            let inputs: Vec<ValueId> = inputs.iter().map(|v| map[v]).collect();
            self.graph.origin = Origin { backward: true, ..origin };
            copies.push(self.graph.copy_node(*id, &inputs, &mut map));
        }
        self.graph.origin = around;
        self.active.resize(self.graph.values.len(), false);
        map.iter().for_each(|(from, to)| self.active[to.index()] = self.active[from.index()]);
        (copies, map)
    }
}

/// Whether a row program can do it: cheap to run again, and fused into whoever reads it.
fn is_row_work(graph: &Graph, node: &Node) -> bool {
    match &node.op {
        Op::Instr(_) | Op::Rows(_) | Op::Pad(_) | Op::Broadcast(_) | Op::Transpose(_) | Op::Slice(_) => true,
        Op::Sum(sum) => matches!(sum.axes[..], [axis] if usize::from(axis) + 1 == graph.shape(node.inputs[0]).len()),
        Op::Call(call) => graph.block(call.body).nodes.iter().all(|id| is_row_work(graph, graph.node(*id))),
        op => op.is_view(),
    }
}
