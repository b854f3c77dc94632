//! Cutting a block into regions at its loops.
//!
//! The leaves of a region are arguments of its block, memory that is read, results of loops, and values of earlier
//! regions. Its roots are what a loop, the block's results, an output of the graph or a later region reads. Constants and
//! views are no work, so they belong to every region that reads through them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use egg::Id;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::Instr;

use super::dag::{Dag, Note, Operand};
use super::lang::{Op, Stored};
use crate::ir::{BlockId, Graph, Node, NodeId, ROOT, StoreKind, ValueId};
use crate::ops;

/// A region and the values of the graph that it stands for.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) dag: Dag,
    /// Leaf k of the language.
    pub(super) leaves: Vec<ValueId>,
    /// The roots, in the order of the block.
    pub(super) roots: Vec<ValueId>,
    /// The value of each node of `dag`.
    pub(super) sources: Vec<ValueId>,
}

/// A region, and the node that ends it; none ends the last one, and one that would have grown too large.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) region: Region,
    pub(super) barrier: Option<NodeId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Memory from outside.
    Read,
    /// A loop, or something else that no region holds.
    Barrier,
    /// A constant or a view.
    Light,
    /// What takes time.
    Work,
}

fn kind(node: &Node) -> Kind {
    match &node.op {
        ops::Op::Read(_) => Kind::Read,
        ops::Op::Repeat(_) => Kind::Barrier,
        _ if node.outputs.len() != 1 => Kind::Barrier,
        ops::Op::Instr(Instr::Const(_) | Instr::Extent(_)) | ops::Op::Transpose(_) => Kind::Light,
        op if op.is_view() => Kind::Light,
        _ => Kind::Work,
    }
}

struct Cut<'g> {
    graph: &'g Graph,
    nodes: &'g [NodeId],
    position: BTreeMap<NodeId, usize>,
    /// The stretch that each node lies in.
    stretch: Vec<usize>,
    /// The positions of what each stretch must give.
    wanted: Vec<BTreeSet<usize>>,
}

/// The regions of a block, in order; none has more nodes than `most` that take time.
pub(super) fn regions(graph: &Graph, block: BlockId, tensors: &BTreeSet<ValueId>, most: usize) -> Vec<Stretch> {
    let nodes = &graph.block(block).nodes;
    let (mut barriers, mut stretch, mut work) = (vec![], vec![], 0);
    for id in nodes {
        let kind = kind(graph.node(*id));
        if kind == Kind::Work && work == most {
            barriers.push(None);
            work = 0;
        }
        work += usize::from(kind == Kind::Work);
        stretch.push(barriers.len());
        if kind == Kind::Barrier {
            barriers.push(Some(*id));
            work = 0;
        }
    }
    let position = nodes.iter().enumerate().map(|(k, id)| (*id, k)).collect();
    let wanted = vec![BTreeSet::new(); barriers.len() + 1];
    let mut cut = Cut { graph, nodes, position, stretch, wanted };
    for barrier in barriers.iter().flatten() {
        graph.node(*barrier).inputs.iter().for_each(|v| cut.want(*v));
    }
    graph.block(block).results.iter().for_each(|v| cut.want(*v));
    if block == ROOT {
        graph.outputs.iter().for_each(|output| cut.want(output.value));
    }
    // Backwards, since a region learns from the later ones what they read.
    let mut needed: Vec<BTreeSet<usize>> = (0..=barriers.len()).rev().map(|s| cut.needed(s)).collect();
    needed.reverse();
    let stretch = |(s, needed): (usize, BTreeSet<usize>)| Stretch {
        region: cut.region(s, &needed, tensors),
        barrier: barriers.get(s).copied().flatten(),
    };
    needed.into_iter().enumerate().map(stretch).collect()
}

impl Cut<'_> {
    /// Where the value is computed, if a region does that.
    fn computed(&self, value: ValueId) -> Option<(usize, Kind)> {
        let (node, _) = self.graph.value(value).def?;
        let position = *self.position.get(&node)?;
        let kind = kind(self.graph.node(node));
        matches!(kind, Kind::Light | Kind::Work).then_some((position, kind))
    }

    fn want(&mut self, value: ValueId) {
        if let Some((position, _)) = self.computed(value) {
            self.wanted[self.stretch[position]].insert(position);
        }
    }

    /// Whether stretch `s` computes the value itself.
    fn is_inside(&self, value: ValueId, s: usize) -> Option<usize> {
        let (position, kind) = self.computed(value)?;
        (kind == Kind::Light || self.stretch[position] == s).then_some(position)
    }

    fn needed(&mut self, s: usize) -> BTreeSet<usize> {
        let (mut todo, mut needed) = (self.wanted[s].clone(), BTreeSet::new());
        while let Some(position) = todo.pop_last() {
            needed.insert(position);
            for input in &self.graph.node(self.nodes[position]).inputs {
                match self.is_inside(*input, s) {
                    Some(inside) => {
                        todo.insert(inside);
                    }
                    None => self.want(*input),
                }
            }
        }
        needed
    }

    fn region(&self, s: usize, needed: &BTreeSet<usize>, tensors: &BTreeSet<ValueId>) -> Region {
        let region = Region { dag: Dag::default(), leaves: vec![], roots: vec![], sources: vec![] };
        let mut fill = Fill { graph: self.graph, region, operands: BTreeMap::new(), tensors };
        for position in needed {
            let node = self.graph.node(self.nodes[*position]);
            for input in node.inputs.iter().filter(|v| self.is_inside(**v, s).is_none()) {
                fill.leaf(*input);
            }
            fill.node(node);
        }
        for position in &self.wanted[s] {
            let value = self.graph.node(self.nodes[*position]).outputs[0];
            let id = fill.full(value);
            fill.region.dag.roots.push(id);
            fill.region.roots.push(value);
        }
        fill.region
    }
}

struct Fill<'g> {
    graph: &'g Graph,
    region: Region,
    operands: BTreeMap<ValueId, Operand>,
    tensors: &'g BTreeSet<ValueId>,
}

impl Fill<'_> {
    fn note(&self) -> Note {
        Note { source: Some(self.region.dag.nodes.len()), rules: vec![] }
    }

    /// Remembers what a node of the region stands for, if it is new.
    fn source(&mut self, value: ValueId) {
        if self.region.sources.len() < self.region.dag.nodes.len() {
            self.region.sources.push(value);
        }
    }

    fn leaf(&mut self, value: ValueId) {
        if self.operands.contains_key(&value) {
            return;
        }
        let stored = if self.tensors.contains(&value) { Stored::Tensor } else { Stored::Value };
        let op = Op::Leaf(self.region.leaves.len() as u32, stored, self.graph.ty(value).clone());
        let note = self.note();
        let id = self.region.dag.add(op, &[], &note);
        self.source(value);
        self.region.leaves.push(value);
        self.operands.insert(value, Operand::Node(id));
    }

    /// The node of a value, also where it is a constant that someone wants stored.
    fn full(&mut self, value: ValueId) -> Id {
        match self.operands[&value].clone() {
            Operand::Node(id) => id,
            Operand::Number(number) => {
                let note = self.note();
                let id = self.region.dag.map(&[], &note, |link, _| link.push(number));
                self.source(value);
                id
            }
        }
    }

    fn node(&mut self, node: &Node) {
        let value = node.outputs[0];
        let operand = match &node.op {
            ops::Op::Instr(number @ (Instr::Const(_) | Instr::Extent(_))) => Operand::Number(number.clone()),
            ops::Op::Instr(instr) => {
                let operands: Vec<Operand> = node.inputs.iter().map(|v| self.operands[v].clone()).collect();
                let note = self.note();
                Operand::Node(self.region.dag.instr(instr, &operands, &note))
            }
            op => {
                let args: Vec<Id> = node.inputs.iter().map(|v| self.full(*v)).collect();
                let note = self.note();
                Operand::Node(self.region.dag.add(translated(op, self.graph.ty(value)), &args, &note))
            }
        };
        self.source(value);
        self.operands.insert(value, operand);
    }
}

fn translated(op: &ops::Op, ty: &crate::ir::Type) -> Op {
    match op {
        ops::Op::Reshape(op) => Op::Reshape(op.shape.clone()),
        ops::Op::Transpose(op) => Op::Transpose(op.perm.clone()),
        ops::Op::Contract(op) => {
            let plain = meganeura_shaders::kernel::Contract::plain(op.spec.clone());
            Op::Kernel(Kernel::Contract(Arc::new(plain)))
        }
        ops::Op::Rows(prog) => Op::Kernel(Kernel::Rows(prog.clone())),
        ops::Op::Kernel(kernel @ (Kernel::Rows(_) | Kernel::ColumnSum(_) | Kernel::Contract(_))) => {
            Op::Kernel(kernel.clone())
        }
        op => Op::Opaque(Arc::new(op.clone()), ty.clone()),
    }
}

/// The values that are tensors of the model, also inside loops.
pub(super) fn tensors(graph: &Graph) -> BTreeSet<ValueId> {
    let mut tensors = BTreeSet::new();
    collect_tensors(graph, ROOT, &mut tensors);
    tensors
}

fn collect_tensors(graph: &Graph, block: BlockId, tensors: &mut BTreeSet<ValueId>) {
    for node in graph.block(block).nodes.iter().map(|id| graph.node(*id)) {
        match &node.op {
            ops::Op::Read(store) if matches!(graph.store(*store).kind, StoreKind::Tensor { .. }) => {
                tensors.insert(node.outputs[0]);
            }
            ops::Op::Repeat(repeat) => {
                let args = graph.block(repeat.body).args.iter().skip(1).zip(&node.inputs).skip(repeat.carried);
                let given: Vec<ValueId> = args.filter(|(_, v)| tensors.contains(v)).map(|(arg, _)| *arg).collect();
                tensors.extend(given);
                collect_tensors(graph, repeat.body, tensors);
            }
            _ => {}
        }
    }
}
