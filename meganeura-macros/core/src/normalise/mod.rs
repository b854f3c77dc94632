//! The plain rewriting before any search: whatever is never worse, on the whole graph at once.
//!
//! In comes a graph as differentiation left it, out comes one without composites, without sums over axes in the middle,
//! and without repetitions that a reader does by itself; constants stand where they are read, in whatever block. A
//! formula written by hand and a built-in composite leave this stage alike. Loops, stores and outputs stay as they are.

mod instr;
mod lazy;
mod sum;

use std::collections::BTreeMap;

use meganeura_shaders::dim::Dim;
use meganeura_shaders::prog::Instr;

use crate::ir::{BlockId, Graph, Node, NodeId, Origin, ROOT, Repeat, ValueId};
use crate::ops::{Op, Slice, Transpose};
use lazy::{Core, Lazy};

/// The normal form of a graph.
pub fn normalise(graph: &Graph) -> Graph {
    let mut to = Graph::new(graph.symbols.clone());
    to.stores = graph.stores.clone();
    to.checks = graph.checks.clone();
    let mut normaliser = Normaliser { from: graph, to, lazy: BTreeMap::new(), call: None };
    normaliser.nodes(ROOT);
    for output in &graph.outputs {
        normaliser.to.origin = graph.def(output.value).map(|(node, _)| node.origin.clone()).unwrap_or_default();
        let value = normaliser.forced(output.value);
        normaliser.to.outputs.push(crate::ir::Output { value, ..output.clone() });
    }
    normaliser.to.origin = Origin::default();
    normaliser.to
}

struct Normaliser<'g> {
    from: &'g Graph,
    to: Graph,
    lazy: BTreeMap<ValueId, Lazy>,
    /// The call whose body is being copied: what its nodes belong to.
    call: Option<Origin>,
}

impl Normaliser<'_> {
    fn nodes(&mut self, block: BlockId) {
        for id in &self.from.block(block).nodes {
            self.node(*id);
        }
    }

    fn lazy(&self, value: ValueId) -> Lazy {
        let known = self.lazy.get(&value);
        assert!(known.is_some(), "the verifier found every value after its definition");
        known.cloned().unwrap_or_else(|| Lazy::number(Instr::In(0)))
    }

    /// The value in its full shape.
    fn forced(&mut self, value: ValueId) -> ValueId {
        let lazy = self.lazy(value);
        self.force(&lazy)
    }

    fn node(&mut self, id: NodeId) {
        let from = self.from;
        let node = from.node(id);
        self.to.origin = self.call.clone().unwrap_or_else(|| node.origin.clone());
        if self.to.origin.what.is_empty() {
            self.to.origin.what = node.op.name().into();
        }
        if let Some(lazy) = self.rewritten(node) {
            self.lazy.insert(node.outputs[0], lazy);
            return;
        }
        match &node.op {
            Op::Call(call) => {
                let body = from.block(call.body);
                for (arg, input) in body.args.iter().zip(&node.inputs) {
                    self.lazy.insert(*arg, self.lazy(*input));
                }
                let outer = self.call.replace(self.to.origin.clone());
                self.nodes(call.body);
                self.call = outer;
                for (output, result) in node.outputs.iter().zip(&body.results) {
                    self.lazy.insert(*output, self.lazy(*result));
                }
            }
            Op::Repeat(repeat) => self.repeat(repeat, node),
            op => {
                let inputs: Vec<ValueId> = node.inputs.iter().map(|v| self.forced(*v)).collect();
                let types = node.outputs.iter().map(|v| from.ty(*v).clone()).collect();
                let op = op.kernel().map_or_else(|| op.clone(), Op::Kernel);
                let made = self.to.push(op, &inputs, types);
                let made = self.to.node(made).outputs.clone();
                for (output, value) in node.outputs.iter().zip(made) {
                    self.lazy.insert(*output, Lazy::of(value, from.ty(*output).clone()));
                }
            }
        }
    }

    /// What stands for the node's one result, if the node is not kept as it is.
    fn rewritten(&mut self, node: &Node) -> Option<Lazy> {
        let ty = node.outputs.first().map(|v| self.from.ty(*v).clone())?;
        let inputs: Vec<Lazy> = match node.op {
            Op::Call(_) | Op::Repeat(_) => return None,
            _ => node.inputs.iter().map(|v| self.lazy(*v)).collect(),
        };
        Some(match &node.op {
            Op::Instr(instr) => self.instr(instr, &inputs, ty),
            Op::Rows(prog) => self.program(prog, &inputs)?,
            Op::Sum(sum) => self.sum(&sum.axes, &inputs[0], ty),
            Op::Broadcast(_) => Lazy { ty, ..inputs[0].clone() },
            Op::Reshape(_) => self.reshaped(&inputs[0], ty),
            Op::Transpose(op) => self.transposed(op, &inputs[0], ty),
            Op::Slice(op) => self.sliced(op, &inputs[0], ty),
            Op::StopGradient(_) => inputs[0].clone(),
            _ => return None,
        })
    }

    fn reshaped(&mut self, x: &Lazy, ty: crate::ir::Type) -> Lazy {
        let core = match &x.core {
            Core::Number(_) => x.core.clone(),
            Core::Value(value) if self.to.shape(*value).iter().all(Dim::is_one) => {
                Core::Value(self.to.reshape(*value, vec![]))
            }
            Core::Value(_) => {
                let value = self.force(x);
                Core::Value(self.to.reshape(value, ty.shape.clone()))
            }
        };
        Lazy { core, ty }
    }

    fn transposed(&mut self, op: &Transpose, x: &Lazy, ty: crate::ir::Type) -> Lazy {
        let is_identity = op.perm.iter().enumerate().all(|(k, axis)| k == usize::from(*axis));
        let core = match &x.core {
            Core::Value(value) if !is_identity && !self.to.shape(*value).iter().all(Dim::is_one) => {
                let value = self.with_rank(*value, ty.shape.len());
                Core::Value(self.to.emit(Op::Transpose(op.clone()), &[value]))
            }
            other => other.clone(),
        };
        Lazy { core, ty }
    }

    fn sliced(&mut self, op: &Slice, x: &Lazy, ty: crate::ir::Type) -> Lazy {
        let Core::Value(value) = x.core else { return Lazy { ty, ..x.clone() } };
        let shape = self.to.shape(value).clone();
        let missing = x.ty.shape.len() - shape.len();
        let axis = usize::from(op.axis);
        let is_repeated = axis < missing || shape[axis - missing] != x.ty.shape[axis];
        if is_repeated {
            return Lazy { ty, ..x.clone() };
        }
        let slice = Slice { axis: (axis - missing) as u8, ..op.clone() };
        Lazy { core: Core::Value(self.to.emit(Op::Slice(slice), &[value])), ty }
    }

    /// Constants and repetitions pass into the body unseen: what is captured there is what they were made from.
    fn repeat(&mut self, repeat: &Repeat, node: &Node) {
        let origin = self.to.origin.clone();
        let first_captured = repeat.carried + repeat.stacked;
        let outer: Vec<ValueId> = node.inputs[..first_captured].iter().map(|v| self.forced(*v)).collect();
        let body = self.from.block(repeat.body);
        let index = self.to.open_repeat(repeat.count.clone(), repeat.reversed);
        let mut inner = vec![index];
        inner.extend(outer[..repeat.carried].iter().map(|v| self.to.carry(*v)));
        inner.extend(outer[repeat.carried..].iter().map(|v| self.to.stack_in(*v)));
        for (arg, value) in body.args.iter().zip(inner) {
            self.lazy.insert(*arg, Lazy::of(value, self.from.ty(*arg).clone()));
        }
        for (arg, input) in body.args.iter().skip(1).zip(&node.inputs).skip(first_captured) {
            self.lazy.insert(*arg, self.lazy(*input));
        }
        self.nodes(repeat.body);
        self.to.origin = origin;
        let results: Vec<ValueId> = body.results.iter().map(|v| self.forced(*v)).collect();
        let (carried, stacks) = results.split_at(repeat.carried);
        let made = self.to.close_repeat(carried, stacks);
        for (output, value) in node.outputs.iter().zip(made) {
            self.lazy.insert(*output, Lazy::of(value, self.from.ty(*output).clone()));
        }
    }
}

#[cfg(test)]
mod tests;
