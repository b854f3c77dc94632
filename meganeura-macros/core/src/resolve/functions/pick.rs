//! Elements picked by ids along an axis, and sums sent there.

use meganeura_shaders::dim::Dim;

use super::shape::{complain, tensor};
use super::{Call, Kind, Row, needs};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "gather",
        parameters: &[needs("x", Kind::Any), needs("ids", Kind::Labels), needs("axis", Kind::Axis)],
        build: gather,
    },
    Row {
        name: "scatter_add",
        parameters: &[
            needs("x", Kind::Any),
            needs("ids", Kind::Labels),
            needs("values", Kind::Any),
            needs("axis", Kind::Axis),
        ],
        build: scatter_add,
    },
];

/// Ids with the axes of `x`, each but the one in work of its size or 1.
fn ids<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, x: ValueId, axis: usize) -> Option<ValueId> {
    let Value::Tensor(ids) = call.value(1)? else { return None };
    let (own, shape) = (cx.graph.shape(*ids).clone(), cx.graph.shape(x).clone());
    let fits = |k: usize| k == axis || own[k] == shape[k] || own[k].is_one();
    if own.len() != shape.len() || !(0..own.len()).all(fits) {
        let message = cx.with_operands(diag::ids_of_axes(call.name, axis), &[call.operand(0)?, call.operand(1)?]);
        cx.report(call.place(1), message);
        return None;
    }
    cx.limit_argument(*ids, &shape[axis]);
    Some(*ids)
}

fn gather<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, axis) = (tensor(cx, call)?, *call.axes(2)?.first()?);
    let ids = ids(cx, call, x, axis)?;
    Some(Value::Tensor(cx.graph.take_along(x, ids, axis)))
}

fn scatter_add<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, axis) = (tensor(cx, call)?, *call.axes(3)?.first()?);
    let ids = ids(cx, call, x, axis)?;
    let (Value::Tensor(values), ty) = (call.value(2)?.clone(), cx.graph.ty(x).clone()) else {
        let found = cx.show(call.value(2)?);
        cx.report(call.place(2), diag::argument_type(call.name, "values", "a tensor", &found));
        return None;
    };
    let count = cx.graph.shape(ids)[axis].clone();
    let mut expected = ty.clone();
    expected.shape[axis] = count.clone();
    if *cx.graph.ty(values) != expected || ty.dtype == meganeura_shaders::prog::DType::Bool {
        let (found, size) = (cx.show_type(cx.graph.ty(values)), cx.show_size(&count));
        complain(cx, call, 2, diag::scattered_values(axis, &found, &size));
        return None;
    }
    let size: Dim = ty.shape[axis].clone();
    let sums = cx.graph.scatter_along(values, ids, axis, &size);
    Some(Value::Tensor(cx.graph.add(x, sums)))
}
