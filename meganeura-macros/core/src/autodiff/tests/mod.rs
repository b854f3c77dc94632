//! Derivatives through loops and composites: cases, counts, random graphs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod counts;
mod random;

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::kernel::Spec;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::DType;

use crate::ir::{Graph, Type, ValueId};
use crate::ops::{Contract, Op, Slice, Sum};
use crate::testing::*;

fn size(n: i64) -> Dim {
    Dim::from(n)
}

/// A graph over `rows` with a value `[rows, 3]` that a trained tensor made.
struct Case {
    g: Graph,
    rows: Dim,
    x: ValueId,
}

fn case() -> Case {
    let mut symbols = Symbols::default();
    let rows = symbols.declare("rows", 1, 100, 1);
    let mut g = Graph::new(symbols);
    let given = g.argument(0, "given", Type::float(vec![rows.clone(), size(2)]));
    let table = trained(&mut g, "table", &[], &[size(2), size(3)]);
    let x = contract(&mut g, "mk,kn->mn", given, table);
    Case { g, rows, x }
}

fn contract(g: &mut Graph, spec: &str, a: ValueId, b: ValueId) -> ValueId {
    g.emit(Op::Contract(Contract { spec: Spec::parse(spec).unwrap() }), &[a, b])
}

/// `x @ w.t()`.
fn linear(g: &mut Graph, x: ValueId, w: ValueId) -> ValueId {
    contract(g, "mk,nk->mn", x, w)
}

fn scale(g: &mut Graph, x: ValueId, by: f64) -> ValueId {
    g.with_const(Bin::Mul, x, by)
}

/// `x · σ(x)` as nodes.
fn silu(g: &mut Graph, x: ValueId) -> ValueId {
    let sigmoid = g.un(Un::Sigmoid, x);
    g.mul(x, sigmoid)
}

fn layer(g: &mut Graph, x: ValueId, w: ValueId) -> ValueId {
    let y = linear(g, x, w);
    let y = silu(g, y);
    g.add(x, y)
}

/// The sum over axis 0, without it.
fn sum_axis(g: &mut Graph, x: ValueId) -> ValueId {
    let sum = g.emit(Op::Sum(Sum { axes: vec![0] }), &[x]);
    let shape = g.shape(sum)[1..].to_vec();
    g.reshape(sum, shape)
}

fn row(g: &mut Graph, x: ValueId, at: i64) -> ValueId {
    let row = g.emit(Op::Slice(Slice { axis: 0, from: size(at), to: size(at + 1) }), &[x]);
    let shape = g.shape(row)[1..].to_vec();
    g.reshape(row, shape)
}

/// The index of a loop as a float.
fn number(g: &mut Graph, index: ValueId) -> ValueId {
    g.cast(DType::F32, index)
}

/// `0.7 Σ y²`.
fn square_loss(g: &mut Graph, y: ValueId) -> ValueId {
    let squared = g.mul(y, y);
    let sum = g.sum_all(squared);
    let loss = scale(g, sum, 0.7);
    result(g, "loss", loss);
    loss
}

fn check_loss(g: &Graph, loss: ValueId) {
    let dims = vec![7; g.symbols.declared().len()];
    for policy in POLICIES {
        check_gradients(g, loss, &dims, 2, policy);
    }
}

fn check(mut g: Graph, y: ValueId) {
    result(&mut g, "y", y);
    let loss = square_loss(&mut g, y);
    check_loss(&g, loss);
}
