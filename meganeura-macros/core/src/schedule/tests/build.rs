//! Short ways to write graphs.

use std::sync::Arc;

use crate::ir::{Graph, Output, Type, ValueId};
use crate::ops::composite;
use crate::ops::{Broadcast, Contract, Op, Pad, Slice, Sum};
use meganeura_shaders::dim::{Dim, Shape};
use meganeura_shaders::kernel::{Kernel, Spec};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{DType, Instr, Leaf, Linker, Prog, finish_one};
use meganeura_shaders::schedule::Role;

pub(super) fn size(n: i64) -> Dim {
    Dim::from(n)
}

fn program(build: impl FnOnce(&mut Linker, &dyn Fn(&mut Linker, u32) -> u8) -> u8) -> Prog {
    let mut link = Linker::default();
    let root = build(&mut link, &|link, k| link.leaf(Leaf::Arg(k)));
    finish_one(link, root).0
}

/// A decoder's layers without attention, 6 wide, over `batch`, `seq` and perhaps `depth`, and its loss.
pub(super) fn decoder(depth: Option<i64>) -> (Graph, ValueId) {
    decoder_with(depth, [64, 2048])
}

/// The same with other bounds of `batch` and `seq`.
pub(super) fn decoder_with(depth: Option<i64>, most: [i64; 2]) -> (Graph, ValueId) {
    let mut g = Graph::new(Default::default());
    let (batch, seq) = (g.symbols.declare("batch", 1, most[0], 1), g.symbols.declare("seq", 1, most[1], 1));
    let depth = depth.map_or_else(|| g.symbols.declare("depth", 1, 200, 1), size);
    let (rows, dim, ffn, each) = (&batch * &seq, size(6), size(10), [depth.clone()]);
    let given = g.input("given", vec![rows.clone(), dim.clone()]);
    let table = g.param("table", &[], &[dim.clone(), dim.clone()]);
    let x = g.linear(given, table);
    let mut weights = ["input_norm", "post_norm"].map(|name| g.param(name, &each, std::slice::from_ref(&dim))).to_vec();
    weights.extend(["q", "k", "v", "o"].map(|name| g.param(name, &each, &[dim.clone(), dim.clone()])));
    weights.extend(["gate", "up"].map(|name| g.param(name, &each, &[ffn.clone(), dim.clone()])));
    weights.push(g.param("down", &each, &[dim.clone(), ffn]));
    let finals = g.repeat(&depth, false, &[x], &weights, |g, _, carried, w| {
        let h = composite::rms_norm(g, carried[0], 1e-5);
        let h = g.mul(h, w[0]);
        let [q, k, v] = [2, 3, 4].map(|p| g.linear(h, w[p]));
        let q = composite::silu(g, q);
        let qk = g.mul(q, k);
        let mixed = g.add(qk, v);
        let o = g.linear(mixed, w[5]);
        let x = g.add(carried[0], o);
        let h = composite::rms_norm(g, x, 1e-5);
        let h = g.mul(h, w[1]);
        let [gate, up] = [6, 7].map(|p| g.linear(h, w[p]));
        let gate = composite::silu(g, gate);
        let inner = g.mul(gate, up);
        let down = g.linear(inner, w[8]);
        (vec![g.add(x, down)], vec![])
    });
    let logits = g.linear(finals[0], table);
    let labels = g.argument(1, "labels", Type { shape: vec![rows], dtype: DType::U32 });
    if let Some(store) = g.stores.last_mut() {
        store.below = Some(dim);
    }
    let loss = composite::cross_entropy(&mut g, logits, labels);
    g.result("loss", loss);
    (g, loss)
}

pub(super) trait Build {
    fn graph(&mut self) -> &mut Graph;

    fn input(&mut self, name: &str, shape: Shape) -> ValueId {
        let index = self.graph().stores.iter().filter(|s| matches!(s.kind, crate::ir::StoreKind::Argument(_)));
        let index = index.count();
        self.graph().argument(index, name, Type::float(shape))
    }

    /// A parameter; `each` are the counts of the loops that have one for each iteration.
    fn param(&mut self, name: &str, each: &[Dim], shape: &[Dim]) -> ValueId {
        let index = self.graph().stores.iter().filter(|s| matches!(s.kind, crate::ir::StoreKind::Tensor { .. }));
        let index = index.count();
        self.graph().tensor(index, name, [each, shape].concat(), each.len(), true)
    }

    fn frozen(&mut self, name: &str, each: &[Dim], shape: &[Dim]) -> ValueId {
        let index = self.graph().stores.iter().filter(|s| matches!(s.kind, crate::ir::StoreKind::Tensor { .. }));
        let index = index.count();
        self.graph().tensor(index, name, [each, shape].concat(), each.len(), false)
    }

    fn result(&mut self, name: &str, value: ValueId) {
        let role = Role::Result(self.graph().outputs.len());
        self.graph().output(Output { role, name: name.into(), value, loops: 0 });
    }

    fn tanh(&mut self, x: ValueId) -> ValueId {
        self.graph().un(Un::Tanh, x)
    }

    /// One step.
    fn silu(&mut self, x: ValueId) -> ValueId {
        let prog = program(|link, leaf| {
            let x = leaf(link, 0);
            let y = link.un(Un::Sigmoid, x);
            link.mul(x, y)
        });
        self.graph().emit(Op::Rows(prog), &[x])
    }

    /// One step.
    fn scale(&mut self, x: ValueId, factor: f64) -> ValueId {
        let prog = program(|link, leaf| {
            let (x, factor) = (leaf(link, 0), link.constant(factor));
            link.mul(x, factor)
        });
        self.graph().emit(Op::Rows(prog), &[x])
    }

    fn contract(&mut self, spec: &str, a: ValueId, b: ValueId) -> ValueId {
        let spec = Spec::parse(spec).unwrap();
        self.graph().emit(Op::Contract(Contract { spec }), &[a, b])
    }

    /// `x @ w.t()`.
    fn linear(&mut self, x: ValueId, w: ValueId) -> ValueId {
        self.contract("mk,nk->mn", x, w)
    }

    fn sum_axis(&mut self, x: ValueId, axis: usize) -> ValueId {
        let mut shape = self.graph().shape(x).clone();
        let sum = self.graph().emit(Op::Sum(Sum { axes: vec![axis as u8] }), &[x]);
        shape.remove(axis);
        self.graph().reshape(sum, shape)
    }

    fn expand(&mut self, x: ValueId, axis: usize, count: &Dim) -> ValueId {
        let mut shape = self.graph().shape(x).clone();
        shape.insert(axis, size(1));
        let x = self.graph().reshape(x, shape.clone());
        shape[axis] = count.clone();
        self.graph().emit(Op::Broadcast(Broadcast { shape }), &[x])
    }

    fn slice(&mut self, x: ValueId, axis: u8, from: &Dim, length: &Dim) -> ValueId {
        self.graph().emit(Op::Slice(Slice { axis, from: from.clone(), to: from + length }), &[x])
    }

    fn pad(&mut self, x: ValueId, axis: u8, before: &Dim, total: &Dim) -> ValueId {
        self.graph().emit(Op::Pad(Pad { axis, before: before.clone(), total: total.clone() }), &[x])
    }

    /// Row `at` of `x`.
    fn row(&mut self, x: ValueId, at: &Dim) -> ValueId {
        let row = self.slice(x, 0, at, &size(1));
        let shape = self.graph().shape(x)[1..].to_vec();
        self.graph().reshape(row, shape)
    }

    /// One step: every element over the sum of the squares of its row.
    fn rms_norm_step(&mut self, x: ValueId) -> ValueId {
        let prog = program(|link, leaf| {
            let x = leaf(link, 0);
            let square = link.mul(x, x);
            let sum = link.push(Instr::RowSum(square));
            let one = link.constant(1.0);
            let sum = link.bin(Bin::Add, sum, one);
            link.bin(Bin::Div, x, sum)
        });
        self.graph().emit(Op::Rows(prog), &[x])
    }

    /// One step: `x @ w.t() + residual`.
    fn linear_plus(&mut self, x: ValueId, w: ValueId, residual: ValueId) -> ValueId {
        let mut link = Linker::default();
        let (acc, residual_leaf) = (link.leaf(Leaf::Acc(0)), link.leaf(Leaf::Arg(0)));
        let root = link.bin(Bin::Add, acc, residual_leaf);
        let epi = link.finish(&[root], &[Leaf::Acc(0)]).0.remove(0);
        let spec = Spec::parse("mk,nk->mn").unwrap();
        let contract = meganeura_shaders::kernel::Contract { epi, ..meganeura_shaders::kernel::Contract::plain(spec) };
        self.graph().emit(Op::Kernel(Kernel::Contract(Arc::new(contract))), &[x, w, residual])
    }

    /// The index of a loop as a float.
    fn float(&mut self, index: ValueId) -> ValueId {
        self.graph().cast(DType::F32, index)
    }
}

impl Build for Graph {
    fn graph(&mut self) -> &mut Graph {
        self
    }
}
