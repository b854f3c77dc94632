//! Reductions over one axis, several, or all; softmax and its kin over one.

use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::DType;

use super::elementwise::of_two;
use super::{Call, Kind, Parameter, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ir::{Graph, ValueId};
use crate::ops::{Op, Sum, composite};
use crate::resolve::Resolver;
use crate::resolve::value::Value;

const PARAMETERS: &[Parameter] = &[needs("x", Kind::Any), takes("axis", Kind::Axes), takes("keep", Kind::Flag)];
const OF_TWO: &[Parameter] =
    &[needs("x", Kind::Any), takes("y", Kind::Value), takes("axis", Kind::Axes), takes("keep", Kind::Flag)];
const ROWWISE: &[Parameter] = &[needs("x", Kind::Float), takes("axis", Kind::Axis)];

pub(super) const ROWS: &[Row] = &[
    Row { name: "sum", parameters: PARAMETERS, build: |cx, call| reduce(cx, call, 1, sum) },
    Row { name: "mean", parameters: PARAMETERS, build: |cx, call| reduce(cx, call, 1, composite::mean) },
    Row { name: "prod", parameters: PARAMETERS, build: |cx, call| reduce(cx, call, 1, prod) },
    Row { name: "max", parameters: OF_TWO, build: |cx, call| extreme(cx, call, Bin::Max) },
    Row { name: "min", parameters: OF_TWO, build: |cx, call| extreme(cx, call, Bin::Min) },
    Row {
        name: "var",
        parameters: &[
            needs("x", Kind::Any),
            takes("axis", Kind::Axes),
            takes("keep", Kind::Flag),
            takes("correction", Kind::Number),
        ],
        build: var,
    },
    Row {
        name: "norm",
        parameters: &[
            needs("x", Kind::Any),
            takes("axis", Kind::Axes),
            takes("keep", Kind::Flag),
            takes("p", Kind::Number),
        ],
        build: norm,
    },
    Row { name: "softmax", parameters: ROWWISE, build: |cx, call| rowwise(cx, call, composite::softmax) },
    Row { name: "log_softmax", parameters: ROWWISE, build: |cx, call| rowwise(cx, call, composite::log_softmax) },
    Row { name: "logsumexp", parameters: ROWWISE, build: logsumexp },
];

/// Reductions that have a meaning for integers.
const WHOLE: [&str; 3] = ["sum", "max", "min"];

fn sum(graph: &mut Graph, x: ValueId, axes: &[u8]) -> ValueId {
    if axes.iter().map(|axis| usize::from(*axis) + 1).eq([graph.shape(x).len()]) {
        return graph.row_sum(x);
    }
    graph.emit(Op::Sum(Sum { axes: axes.to_vec() }), &[x])
}

/// The largest over axes, which become 1.
fn largest(graph: &mut Graph, x: ValueId, axes: &[u8]) -> ValueId {
    as_one_row(graph, x, axes, Graph::row_max)
}

fn prod(graph: &mut Graph, x: ValueId, axes: &[u8]) -> ValueId {
    as_one_row(graph, x, axes, composite::prod)
}

/// A reduction of rows over axes, which become 1: they are moved to the end and taken as one.
fn as_one_row(graph: &mut Graph, x: ValueId, axes: &[u8], build: fn(&mut Graph, ValueId) -> ValueId) -> ValueId {
    let shape = graph.shape(x).clone();
    let (kept, perm) = moved_to_end(shape.len(), axes);
    let moved = if perm.iter().copied().eq(0..shape.len() as u8) { x } else { graph.transpose(x, &perm) };
    let together = meganeura_shaders::dim::product(axes.iter().map(|axis| &shape[usize::from(*axis)]));
    let rows = kept.iter().map(|axis| shape[usize::from(*axis)].clone()).chain([together]).collect();
    let rows = graph.reshape(moved, rows);
    let result = build(graph, rows);
    let ones =
        shape.iter().enumerate().map(|(axis, size)| if axes.contains(&(axis as u8)) { 1.into() } else { size.clone() });
    let ones = ones.collect();
    graph.reshape(result, ones)
}

/// The other axes in order, and all with the given ones behind them.
fn moved_to_end(rank: usize, axes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let kept: Vec<u8> = (0..rank as u8).filter(|axis| !axes.contains(axis)).collect();
    let perm = kept.iter().chain(axes).copied().collect();
    (kept, perm)
}

/// `build` gets ascending axes, which become 1 and go unless they are kept.
fn reduce<'a>(
    cx: &mut Resolver<'a, '_>,
    call: &Call<'a>,
    axis: usize,
    build: impl FnOnce(&mut Graph, ValueId, &[u8]) -> ValueId,
) -> Option<Value<'a>> {
    let value = call.value(0)?;
    let x = match value {
        Value::Tensor(id) if cx.graph.ty(*id).dtype == DType::F32 => *id,
        Value::Tensor(id) if WHOLE.contains(&call.name) && cx.graph.ty(*id).dtype != DType::Bool => *id,
        _ => {
            let found = cx.show(value);
            cx.report(call.place(0), diag::argument_type(call.name, "x", "a tensor of f32", &found));
            return None;
        }
    };
    let rank = cx.graph.shape(x).len();
    let mut axes: Vec<u8> = match call.axes(axis) {
        Some(axes) => axes.into_iter().map(|axis| axis as u8).collect(),
        None => (0..rank as u8).collect(),
    };
    axes.sort_unstable();
    if axes.is_empty() {
        if rank > 0 {
            cx.report(call.place(axis), diag::no_axes(call.name));
            return None;
        }
        let row = cx.graph.reshape(x, vec![1.into()]);
        let result = build(&mut cx.graph, row, &[0]);
        return Some(Value::Tensor(cx.graph.reshape(result, vec![])));
    }
    let result = build(&mut cx.graph, x, &axes);
    if call.flag(axis + 1, false) {
        return Some(Value::Tensor(result));
    }
    Some(Value::Tensor(drop_axes(&mut cx.graph, result, &axes)))
}

/// Without axes of size 1.
pub(super) fn drop_axes(graph: &mut Graph, x: ValueId, axes: &[u8]) -> ValueId {
    let shape = graph.shape(x).iter().enumerate();
    let kept = shape.filter(|(axis, _)| !axes.contains(&(*axis as u8))).map(|(_, size)| size.clone());
    let kept = kept.collect();
    graph.reshape(x, kept)
}

/// `max(x, y)` of two, `max(x, axis = ..)` over axes. A whole number in second place could be either.
fn extreme<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, bin: Bin) -> Option<Value<'a>> {
    if let Some(second) = call.value(1) {
        if matches!(second, Value::Size(_) | Value::List(_)) && matches!(call.value(0)?, Value::Tensor(_)) {
            let (found, is_list) = (cx.show(second), matches!(second, Value::List(_)));
            cx.report(call.place(1), diag::axis_or_operand(call.name, &found, is_list));
            return None;
        }
        if call.get(2).is_some() || call.get(3).is_some() {
            let at = if call.get(2).is_some() { 2 } else { 3 };
            cx.report(call.place(at), diag::axis_and_operand(call.name));
            return None;
        }
        return of_two(cx, call, bin);
    }
    reduce(cx, call, 2, |graph, x, axes| match bin {
        Bin::Max => largest(graph, x, axes),
        _ => {
            let turned = composite::reversed_order(graph, x);
            let most = largest(graph, turned, axes);
            composite::reversed_order(graph, most)
        }
    })
}

fn var<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let correction = call.number(3, 0.0);
    if correction.fract() != 0.0 || !(0.0..1e9).contains(&correction) {
        cx.report(call.place(3), diag::correction(correction));
        return None;
    }
    reduce(cx, call, 1, |graph, x, axes| composite::var(graph, x, axes, correction as i64))
}

fn norm<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let p = call.number(3, 2.0);
    if p == 2.0 {
        return reduce(cx, call, 1, composite::norm);
    }
    if p == 1.0 {
        return reduce(cx, call, 1, |graph, x, axes| {
            let x = graph.un(Un::Abs, x);
            sum(graph, x, axes)
        });
    }
    if p < 1.0 {
        cx.report(call.place(3), diag::norm(p));
        return None;
    }
    reduce(cx, call, 1, |graph, x, axes| composite::norm_of(graph, x, axes, p))
}

/// `build` works along the last axis: another one is moved there and back.
fn rowwise<'a>(
    cx: &mut Resolver<'a, '_>,
    call: &Call<'a>,
    build: impl FnOnce(&mut Graph, ValueId) -> ValueId,
) -> Option<Value<'a>> {
    let (x, axis) = row_axis(cx, call)?;
    Some(Value::Tensor(cx.graph.along_last(x, axis, build)))
}

fn logsumexp<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let axis = row_axis(cx, call)?.1;
    let Value::Tensor(result) = rowwise(cx, call, composite::logsumexp)? else { return None };
    Some(Value::Tensor(drop_axes(&mut cx.graph, result, &[axis as u8])))
}

fn row_axis<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<(ValueId, usize)> {
    let x = cx.float(call, 0)?;
    let rank = cx.graph.shape(x).len();
    match call.axes(1).map_or(rank.checked_sub(1), |axes| axes.first().copied()) {
        Some(axis) => Some((x, axis)),
        None => {
            cx.report(call.place(0), diag::rows_of_scalar(call.name));
            None
        }
    }
}
