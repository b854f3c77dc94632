//! Where elements stand in the order of their axis, and totals of what comes before them.

use meganeura_shaders::kernel::Scan;
use meganeura_shaders::prog::DType;

use super::reductions::drop_axes;
use super::shape::{complain, tensor};
use super::{Call, Kind, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::ops::composite;
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "argmax",
        parameters: &[needs("x", Kind::Any), takes("axis", Kind::Axis)],
        build: |cx, call| argmax(cx, call, false),
    },
    Row {
        name: "argmin",
        parameters: &[needs("x", Kind::Any), takes("axis", Kind::Axis)],
        build: |cx, call| argmax(cx, call, true),
    },
    Row { name: "topk", parameters: &[needs("x", Kind::Any), needs("k", Kind::Number)], build: topk },
    Row { name: "cumsum", parameters: &[needs("x", Kind::Any), needs("axis", Kind::Axis)], build: cumsum },
];

/// A tensor of numbers with at least one axis.
fn numbers<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<ValueId> {
    let x = tensor(cx, call)?;
    if cx.graph.ty(x).dtype == DType::Bool {
        cx.report(call.place(0), diag::argument_type(call.name, "x", "numbers", "bool"));
        return None;
    }
    if cx.graph.shape(x).is_empty() {
        cx.report(call.place(0), diag::rows_of_scalar(call.name));
        return None;
    }
    Some(x)
}

/// Without an axis the index counts all elements in the order of memory.
fn argmax<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, least: bool) -> Option<Value<'a>> {
    let mut x = numbers(cx, call)?;
    let axis = match call.axes(1) {
        Some(axes) => *axes.first()?,
        None => {
            let all = meganeura_shaders::dim::product(cx.graph.shape(x));
            x = cx.graph.reshape(x, vec![all]);
            0
        }
    };
    let graph = &mut cx.graph;
    let turned = if least { composite::reversed_order(graph, x) } else { x };
    let index = graph.along_last(turned, axis, |graph, x| composite::argmax(graph, x, None));
    Some(Value::Tensor(drop_axes(graph, index, &[axis as u8])))
}

fn topk<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, k) = (numbers(cx, call)?, call.number(1, 1.0));
    if k.fract() != 0.0 || !(1.0..4096.0).contains(&k) {
        cx.report(call.place(1), diag::positive_count(call.name, "k", &format!("{k:?}")));
        return None;
    }
    let shape = cx.graph.shape(x).clone();
    let size = &shape[shape.len() - 1];
    if cx.graph.symbols.bounds(size).0 < k as i64 {
        let size = cx.show_size(size);
        complain(cx, call, 1, diag::most_of_axis(call.name, k as i64, &size));
        return None;
    }
    let ids = composite::largest_indices(&mut cx.graph, x, k as u32);
    let values = cx.graph.take_along(x, ids, shape.len() - 1);
    Some(Value::Tuple(vec![Value::Tensor(values), Value::Tensor(ids)]))
}

fn cumsum<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, axis) = (numbers(cx, call)?, *call.axes(1)?.first()?);
    let scan = Scan { product: false, exclusive: false, reverse: false };
    Some(Value::Tensor(cx.graph.along_last(x, axis, |graph, x| graph.running_total(x, scan))))
}
