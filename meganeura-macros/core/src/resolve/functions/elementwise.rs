//! Elementwise functions. Those of numbers that are known now are evaluated now.

use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::{DType, Instr};

use super::{Call, Kind, Row, needs, pointwise, takes};
use crate::diag::resolve as diag;
use crate::ir::{Graph, ValueId};
use crate::ops::{Op, StopGradient, composite};
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row { name: "silu", parameters: super::UNARY, build: |cx, call| composite_of(cx, call, composite::silu) },
    Row { name: "gelu", parameters: super::UNARY, build: |cx, call| composite_of(cx, call, composite::gelu) },
    Row { name: "gelu_tanh", parameters: super::UNARY, build: |cx, call| composite_of(cx, call, composite::gelu_tanh) },
    Row { name: "relu6", parameters: super::UNARY, build: |cx, call| composite_of(cx, call, composite::relu6) },
    Row { name: "hardswish", parameters: super::UNARY, build: |cx, call| composite_of(cx, call, composite::hardswish) },
    Row {
        name: "hardsigmoid",
        parameters: super::UNARY,
        build: |cx, call| composite_of(cx, call, composite::hardsigmoid),
    },
    Row {
        name: "neg",
        parameters: &[needs("x", Kind::Any)],
        build: |cx, call| {
            let value = call.value(0)?.clone();
            Some(cx.unary(crate::syntax::UnaryOp::Negate, call.span, value))
        },
    },
    Row {
        name: "leaky_relu",
        parameters: &[needs("x", Kind::Float), takes("slope", Kind::Number)],
        build: |cx, call| {
            let slope = call.number(1, 0.01);
            composite_of(cx, call, |graph, x| composite::leaky_relu(graph, x, slope))
        },
    },
    Row {
        name: "elu",
        parameters: &[needs("x", Kind::Float), takes("alpha", Kind::Number)],
        build: |cx, call| {
            let alpha = call.number(1, 1.0);
            composite_of(cx, call, |graph, x| composite::elu(graph, x, alpha))
        },
    },
    Row { name: "pow", parameters: &[needs("x", Kind::Float), needs("y", Kind::Float)], build: pow },
    Row { name: "prelu", parameters: &[needs("x", Kind::Float), needs("slope", Kind::Float)], build: prelu },
    Row {
        name: "clamp",
        parameters: &[needs("x", Kind::Any), needs("low", Kind::Any), needs("high", Kind::Any)],
        build: clamp,
    },
    Row {
        name: "where",
        parameters: &[needs("mask", Kind::Value), needs("a", Kind::Any), needs("b", Kind::Any)],
        build: |cx, call| select(cx, call, [0, 1, 2]),
    },
    Row {
        name: "masked_fill",
        parameters: &[needs("x", Kind::Any), needs("mask", Kind::Value), needs("value", Kind::Any)],
        build: |cx, call| select(cx, call, [1, 2, 0]),
    },
    Row { name: "abs", parameters: &[needs("x", Kind::Any)], build: signed },
    Row { name: "sign", parameters: &[needs("x", Kind::Any)], build: signed },
    Row {
        name: "stop_gradient",
        parameters: &[needs("x", Kind::Any)],
        build: |cx, call| match call.value(0)? {
            Value::Tensor(id) => Some(Value::Tensor(cx.graph.emit(Op::StopGradient(StopGradient), &[*id]))),
            known => Some(known.clone()),
        },
    },
    Row { name: "f32", parameters: &[needs("x", Kind::Any)], build: |cx, call| cast(cx, call, DType::F32) },
    Row { name: "u32", parameters: &[needs("x", Kind::Any)], build: |cx, call| cast(cx, call, DType::U32) },
];

/// A row of the registry.
pub(super) fn registered<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let un = pointwise(call.name)?;
    match call.value(0)? {
        Value::Tensor(id) => Some(Value::Tensor(cx.graph.un(un, *id))),
        value => {
            let result = un.eval(value.number()?);
            if result.is_finite() {
                return Some(Value::Float(result));
            }
            cx.report(call.place(0), diag::no_finite_result(call.name));
            None
        }
    }
}

/// Of floats, and of integers that have a sign.
fn signed<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let value = call.value(0)?;
    let fits = match value {
        Value::Tensor(id) => matches!(cx.graph.ty(*id).dtype, DType::F32 | DType::I32),
        value => value.number().is_some(),
    };
    if fits {
        return registered(cx, call);
    }
    let found = cx.show(value);
    cx.report(call.place(0), diag::argument_type(call.name, "x", "f32 or i32", &found));
    None
}

/// The slope broadcasts like any operand: one, or one an element of the last axes.
fn prelu<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let operands = [call.operand(0)?, call.operand(1)?];
    let sides = cx.same_type(call.name, call.span, &operands)?;
    Some(Value::Tensor(composite::prelu(&mut cx.graph, sides[0], sides[1])))
}

fn composite_of<'a>(
    cx: &mut Resolver<'a, '_>,
    call: &Call<'a>,
    build: impl FnOnce(&mut Graph, ValueId) -> ValueId,
) -> Option<Value<'a>> {
    let x = cx.float(call, 0)?;
    Some(Value::Tensor(build(&mut cx.graph, x)))
}

fn pow<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    if let (Some(x), Some(y)) = (call.value(0)?.number(), call.value(1)?.number()) {
        let result = Bin::Pow.eval(x, y);
        if !result.is_finite() {
            cx.report(call.span, diag::no_finite_result(call.name));
            return None;
        }
        return Some(Value::Float(result));
    }
    // Of these the general form has no slope at 0, or costs more.
    if let (Value::Tensor(x), Some(power)) = (call.value(0)?, call.value(1)?.number()) {
        let x = *x;
        if power == 0.0 {
            let shape = cx.graph.shape(x).clone();
            return Some(Value::Tensor(cx.graph.fill(1.0, &shape)));
        }
        if power == 1.0 {
            return Some(Value::Tensor(x));
        }
        if power == 2.0 {
            return Some(Value::Tensor(cx.graph.mul(x, x)));
        }
    }
    cx.broadcast_bin(Bin::Pow, call.name, call.span, call.operand(0)?, call.operand(1)?, false).map(Value::Tensor)
}

fn clamp<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let [x, low, high] = [call.operand(0)?, call.operand(1)?, call.operand(2)?];
    let source = x.1;
    let lifted = cx.broadcast_bin(Bin::Max, call.name, call.span, x, low, false)?;
    let lifted = (Value::Tensor(lifted), source);
    cx.broadcast_bin(Bin::Min, call.name, call.span, lifted, high, false).map(Value::Tensor)
}

/// The larger or the smaller of two; `max` and `min` with one operand are reductions.
pub(super) fn of_two<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, bin: Bin) -> Option<Value<'a>> {
    let (x, y) = (call.operand(0)?, call.operand(1)?);
    if let (Value::Size(a), Value::Size(b)) = (&x.0, &y.0)
        && let (Some(a), Some(b)) = (a.constant(), b.constant())
    {
        return Some(Value::int(bin.eval(a as f64, b as f64) as i64));
    }
    if let (Some(a), Some(b)) = (x.0.number(), y.0.number()) {
        return Some(Value::Float(bin.eval(a, b)));
    }
    cx.broadcast_bin(bin, call.name, call.span, x, y, false).map(Value::Tensor)
}

/// Positions of the mask, of what is taken where it is true, and of the rest.
fn select<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, [mask, yes, no]: [usize; 3]) -> Option<Value<'a>> {
    let (condition, source) = call.operand(mask)?;
    let fits = match &condition {
        Value::Tensor(id) => cx.graph.ty(*id).dtype == DType::Bool,
        Value::Bool(_) => true,
        _ => false,
    };
    if !fits {
        let found = cx.show(&condition);
        cx.report(call.place(mask), diag::argument_type(call.name, "mask", "bool", &found));
        return None;
    }
    let condition = cx.constant_as(DType::Bool, &condition, call.name, source.span())?;
    let sides = [call.operand(yes)?, call.operand(no)?];
    let sides = cx.same_type(call.name, call.span, &sides)?;
    let shape = cx.graph.shape(sides[0]).clone();
    let both = meganeura_shaders::dim::broadcast(&shape, cx.graph.shape(sides[1])).unwrap_or(shape);
    if meganeura_shaders::dim::broadcast(&both, cx.graph.shape(condition)).is_none() {
        let operands = [call.operand(mask)?, call.operand(yes)?, call.operand(no)?];
        let message = cx.with_operands(diag::mask_shape(call.name), &operands);
        cx.report(call.place(mask), message);
        return None;
    }
    let select = Op::Instr(Instr::Select(0, 1, 2));
    Some(Value::Tensor(cx.graph.emit(select, &[condition, sides[0], sides[1]])))
}

fn cast<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, dtype: DType) -> Option<Value<'a>> {
    match call.value(0)? {
        Value::Tensor(id) if cx.graph.ty(*id).dtype == dtype => Some(Value::Tensor(*id)),
        Value::Tensor(id) => Some(Value::Tensor(cx.graph.cast(dtype, *id))),
        Value::Size(dim) => match (dim.constant(), dtype) {
            (Some(value), DType::F32) => Some(Value::Float(value as f64)),
            (Some(_), _) => cx.constant_as(dtype, call.value(0)?, call.name, call.place(0)).map(Value::Tensor),
            (None, _) => {
                let value = cx.graph.extent(dim);
                Some(Value::Tensor(if dtype == DType::F32 { value } else { cx.graph.cast(dtype, value) }))
            }
        },
        Value::Float(value) if dtype == DType::F32 => Some(Value::Float(*value)),
        other => {
            let found = cx.show(other);
            cx.report(call.place(0), diag::conversion(call.name, &found));
            None
        }
    }
}
