//! Functions that move elements and compute nothing.

use meganeura_shaders::dim::{Dim, product};
use meganeura_shaders::prog::DType;

use super::{Call, Kind, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::ops::{Broadcast, Op};
use crate::resolve::value::Value;
use crate::resolve::{Resolver, with_value};

pub(super) const ROWS: &[Row] = &[
    Row { name: "reshape", parameters: &[needs("x", Kind::Any), needs("shape", Kind::Sizes)], build: reshape },
    Row {
        name: "flatten",
        parameters: &[needs("x", Kind::Any), takes("from", Kind::Axis), takes("to", Kind::Axis)],
        build: flatten,
    },
    Row {
        name: "transpose",
        parameters: &[needs("x", Kind::Any), needs("a", Kind::Axis), needs("b", Kind::Axis)],
        build: transpose,
    },
    Row { name: "permute", parameters: &[needs("x", Kind::Any), needs("axes", Kind::Axes)], build: permute },
    Row { name: "broadcast", parameters: &[needs("x", Kind::Any), needs("shape", Kind::Sizes)], build: broadcast },
    Row { name: "t", parameters: &[needs("x", Kind::Any)], build: swap_last },
    Row {
        name: "zeros",
        parameters: &[needs("shape", Kind::Sizes)],
        build: |cx, call| filled(cx, call, Value::Float(0.0)),
    },
    Row {
        name: "ones",
        parameters: &[needs("shape", Kind::Sizes)],
        build: |cx, call| filled(cx, call, Value::Float(1.0)),
    },
    Row {
        name: "full",
        parameters: &[needs("shape", Kind::Sizes), needs("value", Kind::Any)],
        build: |cx, call| {
            let value = call.value(1)?.clone();
            filled(cx, call, value)
        },
    },
];

/// The tensor that a shape function works on.
pub(super) fn tensor<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<ValueId> {
    match call.value(0)? {
        Value::Tensor(id) => Some(*id),
        value => {
            let found = cx.show(value);
            cx.report(call.place(0), diag::argument_type(call.name, "x", "a tensor", &found));
            None
        }
    }
}

/// A message about the first argument, with its shape.
pub(super) fn complain<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, at: usize, message: String) {
    let message = match call.operand(0) {
        Some((value, source)) => with_value(message, &source.text("x"), &cx.show(&value)),
        None => message,
    };
    cx.report(call.place(at), message);
}

fn reshape<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, sizes) = (tensor(cx, call)?, call.sizes(1)?);
    let given: Vec<Dim> = sizes.iter().flatten().filter(|size| **size != Dim::from(0)).cloned().collect();
    cx.check_size(call.place(1), &given)?;
    let total = product(cx.graph.shape(x));
    let known = product(sizes.iter().flatten());
    let (elements, wanted) = (cx.show_size(&total), cx.show_size(&known));
    let holes = sizes.iter().filter(|size| size.is_none()).count();
    let rest = match holes {
        0 if known == total => None,
        0 => {
            complain(cx, call, 1, diag::reshape_count(&wanted, &elements));
            return None;
        }
        1 if known == Dim::from(0) => {
            complain(cx, call, 1, diag::reshape_count(&wanted, &elements));
            return None;
        }
        1 => match total.div(&known) {
            Some(rest) => Some(rest),
            None => {
                complain(cx, call, 1, diag::reshape_rest(&elements, &wanted));
                return None;
            }
        },
        _ => {
            cx.report(call.place(1), diag::two_holes());
            return None;
        }
    };
    let shape = sizes.iter().map(|size| size.clone().or_else(|| rest.clone())).collect::<Option<Vec<Dim>>>()?;
    cx.check_size(call.place(1), &shape)?;
    Some(Value::Tensor(cx.graph.reshape(x, shape)))
}

fn flatten<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let x = tensor(cx, call)?;
    let shape = cx.graph.shape(x).clone();
    let one = |at: usize| call.axes(at).and_then(|axes| axes.first().copied());
    let (from, to) = (one(1).unwrap_or(0), one(2).unwrap_or(shape.len().saturating_sub(1)));
    if shape.is_empty() {
        return Some(Value::Tensor(cx.graph.reshape(x, vec![1.into()])));
    }
    if from > to {
        complain(cx, call, if call.get(2).is_some() { 2 } else { 1 }, diag::flatten_order(from, to));
        return None;
    }
    let together = product(&shape[from..=to]);
    let shape = [&shape[..from], &[together], &shape[to + 1..]].concat();
    Some(Value::Tensor(cx.graph.reshape(x, shape)))
}

fn transpose<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let x = tensor(cx, call)?;
    let (a, b) = (call.axes(1)?, call.axes(2)?);
    let mut perm: Vec<u8> = (0..cx.graph.shape(x).len() as u8).collect();
    perm.swap(*a.first()?, *b.first()?);
    Some(Value::Tensor(ordered(cx, x, &perm)))
}

/// The axes in another order; in their own order nothing.
fn ordered(cx: &mut Resolver<'_, '_>, x: ValueId, perm: &[u8]) -> ValueId {
    if perm.iter().copied().eq(0..perm.len() as u8) { x } else { cx.graph.transpose(x, perm) }
}

fn permute<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, axes) = (tensor(cx, call)?, call.axes(1)?);
    let rank = cx.graph.shape(x).len();
    if axes.len() != rank {
        complain(cx, call, 1, diag::permutation_length(rank, axes.len()));
        return None;
    }
    let perm: Vec<u8> = axes.into_iter().map(|axis| axis as u8).collect();
    Some(Value::Tensor(ordered(cx, x, &perm)))
}

fn swap_last<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let x = tensor(cx, call)?;
    let rank = cx.graph.shape(x).len();
    if rank < 2 {
        complain(cx, call, 0, diag::transpose_rank(rank));
        return None;
    }
    let mut perm: Vec<u8> = (0..rank as u8).collect();
    perm.swap(rank - 2, rank - 1);
    Some(Value::Tensor(cx.graph.transpose(x, &perm)))
}

pub(super) fn whole_shape<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, at: usize) -> Option<Vec<Dim>> {
    let sizes: Option<Vec<Dim>> = call.sizes(at)?.iter().cloned().collect();
    match sizes {
        Some(sizes) => cx.check_size(call.place(at), &sizes).map(|()| sizes),
        None => {
            cx.report(call.place(at), diag::hole_outside_reshape(call.name));
            None
        }
    }
}

fn broadcast<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (value, source) = call.operand(0)?;
    let x = cx.constant_as(DType::F32, &value, call.name, source.span())?;
    let shape = whole_shape(cx, call, 1)?;
    match cx.graph.try_emit(Op::Broadcast(Broadcast { shape: shape.clone() }), &[x]) {
        Ok(value) => Some(Value::Tensor(value)),
        Err(_) => {
            let (from, to) = (cx.graph.symbols.show_shape(cx.graph.shape(x)), cx.graph.symbols.show_shape(&shape));
            complain(cx, call, 1, diag::broadcast_shape(&from, &to));
            None
        }
    }
}

fn filled<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, value: Value<'a>) -> Option<Value<'a>> {
    let shape = whole_shape(cx, call, 0)?;
    let dtype = if matches!(value, Value::Bool(_)) { DType::Bool } else { DType::F32 };
    let value = cx.constant_as(dtype, &value, call.name, call.place(1))?;
    if !cx.graph.shape(value).is_empty() {
        let found = cx.show_type(cx.graph.ty(value));
        cx.report(call.place(1), diag::argument_type(call.name, "value", "a scalar", &found));
        return None;
    }
    Some(Value::Tensor(cx.graph.emit(Op::Broadcast(Broadcast { shape }), &[value])))
}
