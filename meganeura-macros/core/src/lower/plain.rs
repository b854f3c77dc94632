//! The schedule without a search: every node becomes a kernel of its own, composites are inlined first.
//!
//! In comes any verified graph, out comes one that [`super::lower`] takes. It is the reference of the fused graph, and
//! the count of its steps is what fusion is measured against.

use std::collections::BTreeMap;
use std::sync::Arc;

use meganeura_shaders::dim::{Dim, product};
use meganeura_shaders::kernel::{Contract, Kernel};
use meganeura_shaders::prog::{Instr, Prog};
use meganeura_shaders::table::count_steps;

use crate::ir::{BlockId, Graph, Node, NodeId, Output, ROOT, Repeat, Type, ValueId};
use crate::ops::{Op, Reshape, Transpose};

/// The graph with one kernel for each operation.
pub fn plain(graph: &Graph) -> Graph {
    let mut out = Graph::new(graph.symbols.clone());
    out.stores = graph.stores.clone();
    out.checks = graph.checks.clone();
    let mut plain = Plain { graph, out, map: BTreeMap::new() };
    plain.block(ROOT);
    let Plain { mut out, map, .. } = plain;
    out.outputs = graph.outputs.iter().map(|o| Output { value: map[&o.value], ..o.clone() }).collect();
    out
}

/// Launches that a call takes without fusion.
pub fn steps(graph: &Graph) -> Dim {
    // A plain graph has nothing that lowering refuses.
    match super::placed(&plain(graph), "") {
        Ok((schedule, items)) => count_steps(&items, &schedule, &|_| true),
        Err(_) => Dim::default(),
    }
}

struct Plain<'g> {
    graph: &'g Graph,
    out: Graph,
    map: BTreeMap<ValueId, ValueId>,
}

impl Plain<'_> {
    fn block(&mut self, id: BlockId) {
        let graph = self.graph;
        graph.block(id).nodes.iter().for_each(|node| self.node(*node));
    }

    fn node(&mut self, id: NodeId) {
        let graph = self.graph;
        let node = graph.node(id);
        self.out.origin = node.origin.clone();
        if self.out.origin.what.is_empty() {
            self.out.origin.what = node.op.name().into();
        }
        let inputs: Vec<ValueId> = node.inputs.iter().map(|v| self.map[v]).collect();
        match &node.op {
            Op::Instr(instr) => self.rows(node, Prog::of(instr), &inputs),
            Op::Rows(prog) => self.rows(node, prog.clone(), &inputs),
            Op::Contract(contract) => {
                let kernel = Kernel::Contract(Arc::new(Contract::plain(contract.spec.clone())));
                self.keep(node, Op::Kernel(kernel), &inputs);
            }
            Op::Sum(sum) => {
                let result = self.sum(inputs[0], &sum.axes);
                self.map.insert(node.outputs[0], result);
            }
            Op::Call(call) => {
                let body = graph.block(call.body);
                self.map.extend(body.args.iter().copied().zip(inputs));
                self.block(call.body);
                let results: Vec<ValueId> = body.results.iter().map(|v| self.map[v]).collect();
                self.map.extend(node.outputs.iter().copied().zip(results));
            }
            Op::Repeat(repeat) => self.repeat(node, repeat, &inputs),
            Op::StopGradient(_) => {
                self.map.insert(node.outputs[0], inputs[0]);
            }
            op => {
                let op = op.kernel().map_or_else(|| op.clone(), Op::Kernel);
                self.keep(node, op, &inputs);
            }
        }
    }

    fn keep(&mut self, node: &Node, op: Op, inputs: &[ValueId]) {
        let types = node.outputs.iter().map(|v| self.graph.ty(*v).clone()).collect();
        let made = self.out.push(op, inputs, types);
        self.map.extend(node.outputs.iter().copied().zip(self.out.node(made).outputs.clone()));
    }

    fn rows(&mut self, node: &Node, prog: Prog, inputs: &[ValueId]) {
        let inputs = &inputs[..usize::from(prog.inputs)];
        self.keep(node, Op::Kernel(Kernel::Rows(prog)), inputs);
    }

    fn repeat(&mut self, node: &Node, repeat: &Repeat, inputs: &[ValueId]) {
        let graph = self.graph;
        let Repeat { count, reversed, carried, stacked, body } = repeat;
        let origin = self.out.origin.clone();
        let block = graph.block(*body);
        let index = self.out.open_repeat(count.clone(), *reversed);
        self.map.insert(block.args[0], index);
        for (k, (input, arg)) in inputs.iter().zip(&block.args[1..]).enumerate() {
            let inner = if k < *carried {
                self.out.carry(*input)
            } else if k < carried + stacked {
                self.out.stack_in(*input)
            } else {
                // Captured again where it is used.
                *input
            };
            self.map.insert(*arg, inner);
        }
        self.block(*body);
        let results: Vec<ValueId> = block.results.iter().map(|v| self.map[v]).collect();
        self.out.origin = origin;
        let outputs = self.out.close_repeat(&results[..*carried], &results[*carried..]);
        self.map.extend(node.outputs.iter().copied().zip(outputs));
    }

    fn kernel(&mut self, kernel: Kernel, input: ValueId) -> ValueId {
        self.out.emit(Op::Kernel(kernel), &[input])
    }

    fn reshape(&mut self, value: ValueId, shape: Vec<Dim>) -> ValueId {
        if *self.out.shape(value) == shape { value } else { self.out.emit(Op::Reshape(Reshape { shape }), &[value]) }
    }

    /// Sums over trailing axes are row sums, over leading ones column sums; what lies between is moved to the front.
    fn sum(&mut self, x: ValueId, axes: &[u8]) -> ValueId {
        let Type { shape, .. } = self.out.ty(x).clone();
        let is_summed = |axis: &usize| axes.contains(&(*axis as u8)) && !shape[*axis].is_one();
        let mut result = shape.clone();
        axes.iter().for_each(|axis| result[usize::from(*axis)] = Dim::from(1));
        let (summed, kept): (Vec<usize>, Vec<usize>) =
            (0..shape.len()).filter(|axis| !shape[*axis].is_one()).partition(is_summed);
        // Trailing axes first: the rest is smaller then.
        let trailing = summed.iter().filter(|axis| kept.iter().all(|k| k < axis)).count();
        let (others, rows) = summed.split_at(summed.len() - trailing);
        let sizes = |axes: &[usize]| axes.iter().map(|axis| shape[*axis].clone()).collect::<Vec<_>>();
        let mut value = x;
        if !rows.is_empty() {
            let before: Vec<usize> = (0..rows[0]).collect();
            value = self.reshape(value, [sizes(&before), vec![product(&sizes(rows))]].concat());
            value = self.kernel(Kernel::Rows(Prog::of(&Instr::RowSum(0))), value);
        }
        if !others.is_empty() {
            let all: Vec<usize> =
                (0..shape.len()).filter(|axis| !rows.contains(axis) && !shape[*axis].is_one()).collect();
            value = self.reshape(value, sizes(&all));
            let order: Vec<usize> = others.iter().chain(&kept).copied().collect();
            let place = |axis: &usize| all.iter().position(|a| a == axis).unwrap_or_default() as u8;
            let perm: Vec<u8> = order.iter().map(place).collect();
            if !perm.is_sorted() {
                value = self.out.emit(Op::Transpose(Transpose { perm }), &[value]);
            }
            value = self.reshape(value, vec![product(&sizes(others)), product(&sizes(&kept))]);
            value = self.kernel(Kernel::ColumnSum(Prog::identity()), value);
        }
        self.reshape(value, result)
    }
}
