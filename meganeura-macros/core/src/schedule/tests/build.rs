//! Short ways to write graphs.

use std::sync::Arc;

use crate::ir::{Graph, Output, Type, ValueId};
use crate::ops::{Broadcast, Contract, Op, Pad, Slice, Sum};
use meganeura_shaders::dim::{Dim, Shape};
use meganeura_shaders::kernel::{Kernel, Spec};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Instr, Leaf, Linker, Prog, finish_one};
use meganeura_shaders::schedule::Role;

pub(super) fn size(n: i64) -> Dim {
    Dim::from(n)
}

fn program(build: impl FnOnce(&mut Linker, &dyn Fn(&mut Linker, u32) -> u8) -> u8) -> Prog {
    let mut link = Linker::default();
    let root = build(&mut link, &|link, k| link.leaf(Leaf::Arg(k)));
    finish_one(link, root).0
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
        self.graph().cast(meganeura_shaders::prog::DType::F32, index)
    }
}

impl Build for Graph {
    fn graph(&mut self) -> &mut Graph {
        self
    }
}
