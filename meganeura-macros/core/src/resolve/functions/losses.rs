//! Losses: means over what they are given.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::{Bin, Un};

use super::{Call, Kind, Parameter, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ir::{Graph, ValueId};
use crate::ops::composite;
use crate::resolve::Resolver;
use crate::resolve::value::Value;

const PAIR: &[Parameter] = &[needs("x", Kind::Float), needs("y", Kind::Float)];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "cross_entropy",
        parameters: &[
            needs("logits", Kind::Float),
            needs("label", Kind::Labels),
            takes("ignore_index", Kind::Number),
            takes("label_smoothing", Kind::Number),
        ],
        build: cross_entropy,
    },
    Row { name: "mse", parameters: PAIR, build: |cx, call| of_pair(cx, call, composite::mse) },
    Row { name: "l1", parameters: PAIR, build: |cx, call| of_pair(cx, call, l1) },
    Row {
        name: "huber",
        parameters: &[needs("x", Kind::Float), needs("y", Kind::Float), takes("delta", Kind::Number)],
        build: |cx, call| {
            let delta = call.number(2, 1.0);
            of_pair(cx, call, |graph, x, y| huber(graph, x, y, delta))
        },
    },
    Row {
        name: "kl_div",
        parameters: &[needs("log_p", Kind::Float), needs("q", Kind::Float)],
        build: |cx, call| of_pair(cx, call, composite::kl_div),
    },
    Row {
        name: "bce_with_logits",
        parameters: &[needs("x", Kind::Float), needs("target", Kind::Float)],
        build: |cx, call| of_pair(cx, call, bce_with_logits),
    },
];

fn cross_entropy<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let smoothing = call.number(3, 0.0);
    if !(0.0..=1.0).contains(&smoothing) {
        cx.report(call.place(3), diag::share(call.name, "label_smoothing", smoothing));
        return None;
    }
    let ignored = match call.get(2).map(|_| call.number(2, -1.0)) {
        None => None,
        Some(index) if index.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&index) => Some(index as u32),
        Some(index) => {
            cx.report(call.place(2), diag::argument_type(call.name, "ignore_index", "a u32", &format!("{index}")));
            return None;
        }
    };
    let (logits, (label, _)) = (cx.float(call, 0)?, call.operand(1)?);
    let shape = cx.graph.shape(logits).clone();
    let Some((classes, rows)) = shape.split_last() else {
        cx.report(call.place(0), diag::rows_of_scalar(call.name));
        return None;
    };
    let found = cx.show(&label);
    let Value::Tensor(labels) = label else { return None };
    if cx.graph.shape(labels) != rows {
        let expected =
            format!("u32{}", if rows.is_empty() { String::new() } else { cx.graph.symbols.show_shape(rows) });
        let message = diag::label_shape(&expected, &found);
        let message = cx.with_operands(message, &[call.operand(0)?, call.operand(1)?]);
        cx.report(call.place(1), message);
        return None;
    }
    // An index that is ignored may be no class; whatever lies between is not counted either.
    match (ignored, classes.constant()) {
        (Some(ignored), Some(classes)) if i64::from(ignored) >= classes => {
            cx.limit_argument(labels, &Dim::from(i64::from(ignored) + 1));
        }
        (Some(_), None) => {}
        _ => cx.limit_argument(labels, classes),
    }
    let counting = composite::Counting { ignored, smoothing };
    Some(Value::Tensor(composite::cross_entropy_of(&mut cx.graph, logits, labels, counting)))
}

/// A loss over the elements of two tensors of one shape: a loss that broadcasts is nearly always a mistake.
fn of_pair<'a>(
    cx: &mut Resolver<'a, '_>,
    call: &Call<'a>,
    build: impl FnOnce(&mut Graph, ValueId, ValueId) -> ValueId,
) -> Option<Value<'a>> {
    let (x, y) = (cx.float(call, 0)?, cx.float(call, 1)?);
    let scalar = |id: ValueId| cx.graph.shape(id).is_empty();
    if cx.graph.shape(x) != cx.graph.shape(y) && !scalar(x) && !scalar(y) {
        let message = cx.with_operands(diag::loss_shapes(call.name), &[call.operand(0)?, call.operand(1)?]);
        cx.report(call.span, message);
        return None;
    }
    Some(Value::Tensor(build(&mut cx.graph, x, y)))
}

fn mean_of_all(graph: &mut Graph, x: ValueId) -> ValueId {
    let rank = graph.shape(x).len() as u8;
    if rank == 0 {
        return x;
    }
    let mean = composite::mean(graph, x, &(0..rank).collect::<Vec<_>>());
    graph.reshape(mean, vec![])
}

fn l1(graph: &mut Graph, x: ValueId, y: ValueId) -> ValueId {
    let difference = graph.sub(x, y);
    let distance = graph.un(Un::Abs, difference);
    mean_of_all(graph, distance)
}

/// `½ d²` up to `delta`, beyond it `delta (|d| - ½ delta)` (Huber, 1964).
fn huber(graph: &mut Graph, x: ValueId, y: ValueId, delta: f64) -> ValueId {
    let difference = graph.sub(x, y);
    let distance = graph.un(Un::Abs, difference);
    let square = graph.mul(difference, difference);
    let near = graph.with_const(Bin::Mul, square, 0.5);
    let far = graph.with_const(Bin::Sub, distance, 0.5 * delta);
    let far = graph.with_const(Bin::Mul, far, delta);
    let limit = graph.constant(delta);
    let is_near = graph.bin(Bin::Le, distance, limit);
    let loss = graph.select(is_near, near, far);
    mean_of_all(graph, loss)
}

/// `softplus(x) - x · target`, which is `-ln σ(x)` where the target is 1 and `-ln (1 - σ(x))` where it is 0.
fn bce_with_logits(graph: &mut Graph, x: ValueId, target: ValueId) -> ValueId {
    let all = graph.un(Un::Softplus, x);
    let product = graph.mul(x, target);
    let loss = graph.sub(all, product);
    mean_of_all(graph, loss)
}
