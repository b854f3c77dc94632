//! Elements over again, in another order, or not at all; and tensors that are made of nothing but sizes.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::{Const, DType};

use super::shape::{complain, tensor};
use super::{Call, Kind, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ops::composite;
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "repeat",
        parameters: &[needs("x", Kind::Any), needs("n", Kind::Value), needs("axis", Kind::Axis)],
        build: |cx, call| repeat(cx, call, true),
    },
    Row {
        name: "tile",
        parameters: &[needs("x", Kind::Any), needs("n", Kind::Value), needs("axis", Kind::Axis)],
        build: |cx, call| repeat(cx, call, false),
    },
    Row { name: "flip", parameters: &[needs("x", Kind::Any), needs("axis", Kind::Axes)], build: flip },
    Row {
        name: "tril",
        parameters: &[needs("x", Kind::Any), takes("k", Kind::Number)],
        build: |cx, call| triangle(cx, call, true),
    },
    Row {
        name: "triu",
        parameters: &[needs("x", Kind::Any), takes("k", Kind::Number)],
        build: |cx, call| triangle(cx, call, false),
    },
    Row {
        name: "arange",
        parameters: &[needs("n", Kind::Value)],
        build: |cx, call| {
            let n = size(cx, call, 0, "n")?;
            Some(Value::Tensor(cx.graph.arange(&n)))
        },
    },
    Row {
        name: "linspace",
        parameters: &[needs("a", Kind::Float), needs("b", Kind::Float), needs("n", Kind::Value)],
        build: linspace,
    },
    Row { name: "one_hot", parameters: &[needs("ids", Kind::Labels), needs("n", Kind::Value)], build: one_hot },
];

/// A size that can be at least 1.
fn size<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, at: usize, name: &str) -> Option<Dim> {
    let value = call.value(at)?;
    match value {
        Value::Size(dim) if cx.graph.symbols.bounds(dim).1 >= 1 => {
            cx.check_size(call.place(at), std::slice::from_ref(dim)).map(|()| dim.clone())
        }
        other => {
            let found = cx.show(other);
            cx.report(call.place(at), diag::positive_count(call.name, name, &found));
            None
        }
    }
}

fn repeat<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, each: bool) -> Option<Value<'a>> {
    let (x, times, axis) = (tensor(cx, call)?, size(cx, call, 1, "n")?, *call.axes(2)?.first()?);
    let mut shape = cx.graph.shape(x).clone();
    shape[axis] = &shape[axis] * &times;
    cx.check_size(call.place(1), &shape)?;
    Some(Value::Tensor(cx.graph.repeated(x, &times, axis, each)))
}

fn flip<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, axes) = (tensor(cx, call)?, call.axes(1)?);
    Some(Value::Tensor(axes.into_iter().fold(x, |x, axis| composite::flip(&mut cx.graph, x, axis))))
}

/// What lies on or below the k-th diagonal above the main one, or on and above it.
fn triangle<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, lower: bool) -> Option<Value<'a>> {
    let (x, k) = (tensor(cx, call)?, call.number(1, 0.0));
    let rank = cx.graph.shape(x).len();
    if rank < 2 {
        complain(cx, call, 0, diag::matrix_rank(call.name, rank));
        return None;
    }
    if k.fract() != 0.0 || k.abs() > f64::from(i32::MAX) {
        cx.report(call.place(1), diag::whole_number(call.name, "k", &format!("{k:?}")));
        return None;
    }
    let graph = &mut cx.graph;
    let (mut row, mut column) = (graph.index(1, x), graph.index(0, x));
    // Indices are u32: what is negative on one side is added on the other.
    let distance = graph.integer(Const::Uint(k.abs() as u32));
    match k > 0.0 {
        _ if k == 0.0 => {}
        true => row = graph.add(row, distance),
        false => column = graph.add(column, distance),
    }
    let kept = if lower { graph.bin(Bin::Le, column, row) } else { graph.bin(Bin::Le, row, column) };
    let none = match graph.ty(x).dtype {
        DType::F32 => Const::float(0.0),
        DType::U32 => Const::Uint(0),
        DType::I32 => Const::Int(0),
        DType::Bool => Const::Bool(false),
    };
    let none = graph.integer(none);
    Some(Value::Tensor(graph.select(kept, x, none)))
}

/// `a (1 - t) + b t` with t in n even steps, so that both ends are exact; of one element `a`.
fn linspace<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (a, b, n) = (cx.float(call, 0)?, cx.float(call, 1)?, size(cx, call, 2, "n")?);
    for (at, value) in [a, b].into_iter().enumerate() {
        if !cx.graph.shape(value).is_empty() {
            let found = cx.show_type(cx.graph.ty(value));
            cx.report(call.place(at), diag::argument_type(call.name, ["a", "b"][at], "a number", &found));
            return None;
        }
    }
    let graph = &mut cx.graph;
    let index = graph.arange(&n);
    let index = graph.cast(DType::F32, index);
    let (last, one) = (graph.size(&(&n - &Dim::from(1))), graph.constant(1.0));
    let last = graph.bin(Bin::Max, last, one);
    let t = graph.div(index, last);
    let rest = graph.sub(one, t);
    let (first, second) = (graph.mul(a, rest), graph.mul(b, t));
    Some(Value::Tensor(graph.add(first, second)))
}

/// A row of zeros with a 1 where the id points; of an id that is no index zeros.
fn one_hot<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (ids, n) = (tensor(cx, call)?, size(cx, call, 1, "n")?);
    cx.limit_argument(ids, &n);
    let column = [&cx.graph.shape(ids)[..], &[Dim::from(1)]].concat();
    let graph = &mut cx.graph;
    let (ids, index) = (graph.reshape(ids, column), graph.arange(&n));
    let hit = graph.bin(Bin::Eq, ids, index);
    Some(Value::Tensor(graph.cast(DType::F32, hit)))
}
