//! What the bodies of built-in layers call.

use super::{Call, Kind, Row, needs};
use crate::ops::composite;
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row { name: "rms_norm", parameters: &[needs("x", Kind::Float), needs("eps", Kind::Number)], build: rms_norm },
    Row { name: "layer_norm", parameters: &[needs("x", Kind::Float), needs("eps", Kind::Number)], build: layer_norm },
];

fn rms_norm<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let x = cx.float(call, 0)?;
    Some(Value::Tensor(composite::rms_norm(&mut cx.graph, x, call.number(1, 0.0))))
}

fn layer_norm<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let x = cx.float(call, 0)?;
    Some(Value::Tensor(composite::layer_norm(&mut cx.graph, x, call.number(1, 0.0))))
}
