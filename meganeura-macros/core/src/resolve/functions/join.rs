//! Several tensors as one, one as several, and what is put around one.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::DType;

use super::shape::{complain, tensor};
use super::{Call, Kind, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ir::{Type, ValueId};
use crate::ops::{Op, Pad, Slice};
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row { name: "concat", parameters: &[needs("parts", Kind::Value), needs("axis", Kind::Axis)], build: concat },
    Row { name: "stack", parameters: &[needs("parts", Kind::Value), needs("axis", Kind::Number)], build: stack },
    Row {
        name: "split",
        parameters: &[needs("x", Kind::Any), needs("parts", Kind::Value), needs("axis", Kind::Axis)],
        build: split,
    },
    Row {
        name: "pad",
        parameters: &[needs("x", Kind::Any), needs("around", Kind::Value), takes("value", Kind::Any)],
        build: pad,
    },
];

/// The tensors of a list, all of one element type.
fn parts<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Vec<ValueId>> {
    let value = call.value(0)?;
    let tensor = |value: &Value<'a>| if let Value::Tensor(id) = value { Some(*id) } else { None };
    let parts: Option<Vec<ValueId>> = match value {
        Value::List(list) => list.iter().map(tensor).collect(),
        _ => None,
    };
    let fits = parts.filter(|parts| {
        let dtype = |id: &ValueId| cx.graph.ty(*id).dtype;
        !parts.is_empty() && parts.iter().all(|part| dtype(part) == dtype(&parts[0]))
    });
    if fits.is_none() {
        let found = cx.show(value);
        cx.report(call.place(0), diag::tensors_to_join(call.name, &found));
    }
    fits
}

fn concat<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (parts, axis) = (parts(cx, call)?, *call.axes(1)?.first()?);
    let others = |ty: &Type| {
        let mut shape = ty.shape.clone();
        if axis < shape.len() {
            shape.remove(axis);
        }
        (ty.shape.len(), shape)
    };
    let first = cx.graph.ty(parts[0]).clone();
    for part in &parts[1..] {
        let own = cx.graph.ty(*part);
        if others(own) != others(&first) {
            let (first, other) = (cx.show_type(&first), cx.show_type(own));
            cx.report(call.place(0), diag::joined_shapes(call.name, axis, &first, &other));
            return None;
        }
    }
    let joined = cx.graph.concat(&parts, axis);
    let shape = cx.graph.shape(joined).clone();
    cx.check_size(call.span, &shape)?;
    Some(Value::Tensor(joined))
}

fn stack<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (parts, axis) = (parts(cx, call)?, call.number(1, 0.0));
    let first = cx.graph.ty(parts[0]).clone();
    let rank = first.shape.len() as i64;
    if axis.fract() != 0.0 || !(-(rank as f64) - 1.0..=rank as f64).contains(&axis) {
        cx.report(call.place(1), diag::axis_outside(call.name, axis as i64, rank as usize + 1));
        return None;
    }
    let axis = if axis < 0.0 { axis as i64 + rank + 1 } else { axis as i64 } as usize;
    let mut shape = first.shape.clone();
    shape.insert(axis, Dim::from(1));
    let mut rows = vec![];
    for part in parts {
        if *cx.graph.ty(part) != first {
            let (first, other) = (cx.show_type(&first), cx.show_type(cx.graph.ty(part)));
            cx.report(call.place(0), diag::stacked_shapes(&first, &other));
            return None;
        }
        rows.push(cx.graph.reshape(part, shape.clone()));
    }
    Some(Value::Tensor(cx.graph.concat(&rows, axis)))
}

/// A number of parts, or their sizes.
fn split<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, axis) = (tensor(cx, call)?, *call.axes(2)?.first()?);
    let size = cx.graph.shape(x)[axis].clone();
    let given = call.value(1)?;
    let sizes: Option<Vec<Dim>> = match given {
        Value::List(list) => list
            .iter()
            .map(|value| if let Value::Size(size) = value { Some(size.clone()) } else { None })
            .collect::<Option<Vec<Dim>>>()
            .filter(|sizes| sizes.iter().fold(Dim::from(0), |sum, size| &sum + size) == size),
        value => value
            .integer()
            .filter(|count| (1..=1024).contains(count))
            .and_then(|count| Some(vec![size.div(&Dim::from(count))?; count as usize])),
    };
    let possible = |size: &Dim| cx.graph.symbols.bounds(size).1 >= 1;
    let Some(sizes) = sizes.filter(|sizes| !sizes.is_empty() && sizes.iter().all(possible)) else {
        let (size, found) = (cx.show_size(&size), cx.show(given));
        complain(cx, call, 1, diag::split_parts(&size, &found));
        return None;
    };
    let mut from = Dim::from(0);
    let mut parts = vec![];
    for size in sizes {
        let to = &from + &size;
        let slice = Slice { axis: axis as u8, from, to: to.clone() };
        parts.push(Value::Tensor(cx.graph.emit(Op::Slice(slice), &[x])));
        from = to;
    }
    Some(Value::Tuple(parts))
}

fn pad<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let x = tensor(cx, call)?;
    let (ty, given) = (cx.graph.ty(x).clone(), call.value(1)?);
    let rank = ty.shape.len();
    let pair = |value: &Value<'a>| match value {
        Value::List(pair) => match &pair[..] {
            [Value::Size(before), Value::Size(after)] => Some([before.clone(), after.clone()]),
            _ => None,
        },
        _ => None,
    };
    let around: Option<Vec<[Dim; 2]>> = match given {
        Value::List(list) => list.iter().map(pair).collect(),
        _ => None,
    };
    let possible = |size: &Dim| cx.graph.symbols.bounds(size).0 >= 0;
    let fits = |around: &Vec<[Dim; 2]>| around.len() <= rank && around.iter().flatten().all(possible);
    let Some(around) = around.filter(fits) else {
        let found = cx.show(given);
        complain(cx, call, 1, diag::padding(rank, &found));
        return None;
    };
    let mut shape = ty.shape.clone();
    let mut result = x;
    let first = rank - around.len();
    for (k, [before, after]) in around.iter().enumerate() {
        let axis = first + k;
        shape[axis] = &(&shape[axis] + before) + after;
        if shape[axis] != ty.shape[axis] {
            let pad = Pad { axis: axis as u8, before: before.clone(), total: shape[axis].clone() };
            result = cx.graph.emit(Op::Pad(pad), &[result]);
        }
    }
    cx.check_size(call.place(1), &shape)?;
    let Some((value, source)) = call.operand(2).filter(|(value, _)| value.number() != Some(0.0)) else {
        return Some(Value::Tensor(result));
    };
    let value = cx.constant_as(ty.dtype, &value, call.name, source.span())?;
    if !cx.graph.shape(value).is_empty() || cx.graph.ty(value).dtype != ty.dtype {
        let found = cx.show_type(cx.graph.ty(value));
        cx.report(call.place(2), diag::scalar_value(call.name, &found));
        return None;
    }
    for (k, [before, _]) in around.iter().enumerate() {
        let axis = first + k;
        if shape[axis] == ty.shape[axis] {
            continue;
        }
        let graph = &mut cx.graph;
        let index = graph.index((rank - 1 - axis) as u8, result);
        let (begin, end) = (graph.count(before), graph.count(&(before + &ty.shape[axis])));
        let (behind, ahead) = (graph.bin(Bin::Le, begin, index), graph.bin(Bin::Lt, index, end));
        let inside = graph.bin(Bin::And, behind, ahead);
        result = graph.select(inside, result, value);
    }
    debug_assert!(ty.dtype != DType::Bool || cx.graph.ty(result).dtype == DType::Bool);
    Some(Value::Tensor(result))
}
