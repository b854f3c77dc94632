//! Rotary position embeddings: pairs of a head's elements turn by an angle that grows with the position.
//!
//! Pair i of `dims / 2` turns by `p · theta^(-2i / dims)` at position p (Su and others, 2021). At position 30,000 an f32
//! holds such an angle to two digits after the point, so frequencies come as a table of four parts, in turns: positions
//! times the first three are exact below 2^17, and whole turns are taken off before the parts are added.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{self, Init};

use super::{Call, Kind, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ir::{Graph, ValueId};
use crate::ops::{Op, Slice};
use crate::resolve::Resolver;
use crate::resolve::tensors::Tensor;
use crate::resolve::value::Value;
use crate::syntax::TensorRole;

pub(super) const ROWS: &[Row] = &[Row {
    name: "rope",
    parameters: &[
        needs("x", Kind::Float),
        needs("pos", Kind::Value),
        takes("theta", Kind::Number),
        takes("interleaved", Kind::Flag),
        takes("dims", Kind::Value),
    ],
    build: rope,
}];

fn rope<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, theta, interleaved) = (cx.float(call, 0)?, call.number(2, 10_000.0), call.flag(3, false));
    let shape = cx.graph.shape(x).clone();
    let rank = shape.len();
    if rank < 2 {
        let message = cx.with_operands(diag::rope_axes(), &[call.operand(0)?]);
        cx.report(call.place(0), message);
        return None;
    }
    if theta <= 0.0 {
        cx.report(call.place(2), diag::rope_theta(theta));
        return None;
    }
    let head = shape[rank - 1].clone();
    let dims = match call.value(4) {
        None => head.constant(),
        Some(value) => value.integer(),
    };
    let fits = |dims: &i64| *dims >= 2 && dims % 2 == 0 && head.constant().is_some_and(|head| *dims <= head);
    let Some(dims) = dims.filter(fits) else {
        let found = call.value(4).map_or_else(|| cx.show_size(&head), |value| cx.show(value));
        let at = if call.get(4).is_some() { 4 } else { 0 };
        cx.report(call.place(at), diag::rope_dims(&cx.show_size(&head), &found));
        return None;
    };
    let rows = if rank == 2 { 0 } else { rank - 3 };
    let positions = positions(cx, call, &shape[..=rows], rank)?;
    let table = cx.table(Init::Turns { base: theta }, &[4, dims / 2], &format!("rope({theta}, {dims})"));
    let graph = &mut cx.graph;
    let angle = angle(graph, positions, table);
    let (cos, sin) = (graph.un(Un::Cos, angle), graph.un(Un::Sin, angle));
    let part = |graph: &mut Graph, x: ValueId, axis: usize, from: i64, to: Dim| {
        graph.emit(Op::Slice(Slice { axis: axis as u8, from: Dim::from(from), to }), &[x])
    };
    let turned = match dims == head.constant().unwrap_or(dims) {
        true => x,
        false => part(graph, x, rank - 1, 0, dims.into()),
    };
    let mut pairs = [&shape[..rank - 1], &[Dim::from(dims / 2)]].concat();
    let halves = match interleaved {
        false => {
            [part(graph, turned, rank - 1, 0, (dims / 2).into()), part(graph, turned, rank - 1, dims / 2, dims.into())]
        }
        true => {
            pairs.push(2.into());
            let paired = graph.reshape(turned, pairs.clone());
            pairs.pop();
            [0, 1].map(|at| {
                let one = part(graph, paired, rank, at, (at + 1).into());
                graph.reshape(one, pairs.clone())
            })
        }
    };
    let turn = |graph: &mut Graph, plus: ValueId, minus: ValueId, op: Bin| {
        let (plus, minus) = (graph.mul(plus, cos), graph.mul(minus, sin));
        graph.bin(op, plus, minus)
    };
    let first = turn(graph, halves[0], halves[1], Bin::Sub);
    let second = turn(graph, halves[1], halves[0], Bin::Add);
    let mut whole = match interleaved {
        false => vec![first, second],
        true => {
            pairs.push(1.into());
            let columns = [first, second].map(|half| graph.reshape(half, pairs.clone()));
            let paired = graph.concat(&columns, rank);
            let flat = [&shape[..rank - 1], &[Dim::from(dims)]].concat();
            vec![graph.reshape(paired, flat)]
        }
    };
    if turned != x {
        whole.push(part(graph, x, rank - 1, dims, head));
    }
    Some(Value::Tensor(graph.concat(&whole, rank - 1)))
}

/// The positions of the rows as f32, `[.., rows, 1, 1]` or `[rows, 1]`: from the first of them, or each as it is given.
fn positions<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>, rows: &[Dim], rank: usize) -> Option<ValueId> {
    let count = rows.last()?;
    let given = match call.value(1)? {
        Value::Size(first) => {
            let (first, own) = (cx.graph.count(first), cx.graph.arange(count));
            cx.graph.add(own, first)
        }
        Value::Tensor(value) if cx.graph.ty(*value).dtype == DType::U32 => {
            let shape = cx.graph.shape(*value).clone();
            match shape.is_empty() {
                true => {
                    let own = cx.graph.arange(count);
                    cx.graph.add(own, *value)
                }
                false if rows.ends_with(&shape) => *value,
                false => {
                    let (rows, found) = (cx.graph.symbols.show_shape(rows), cx.show_type(cx.graph.ty(*value)));
                    cx.report(call.place(1), diag::rope_positions(&rows, &found));
                    return None;
                }
            }
        }
        other => {
            let found = cx.show(other);
            cx.report(call.place(1), diag::argument_type(call.name, "pos", "a u32 or a tensor of them", &found));
            return None;
        }
    };
    let behind = if rank == 2 { 1 } else { 2 };
    let shape = [&cx.graph.shape(given)[..], &vec![Dim::from(1); behind][..]].concat();
    let given = cx.graph.reshape(given, shape);
    Some(cx.graph.cast(DType::F32, given))
}

/// In radians, between -π and π.
fn angle(graph: &mut Graph, positions: ValueId, table: ValueId) -> ValueId {
    let width = graph.shape(table)[1].clone();
    let mut turns = None;
    for k in 0..4i64 {
        let row = graph.emit(Op::Slice(Slice { axis: 0, from: k.into(), to: (k + 1).into() }), &[table]);
        let row = graph.reshape(row, vec![width.clone()]);
        let mut part = graph.mul(positions, row);
        if k < 3 {
            part = off_whole(graph, part);
        }
        turns = Some(match turns {
            Some(sum) => graph.add(sum, part),
            None => part,
        });
    }
    let turns = turns.unwrap_or(positions);
    let turns = off_whole(graph, turns);
    graph.with_const(Bin::Mul, turns, std::f64::consts::TAU)
}

/// What is left of turns without the nearest whole number of them.
fn off_whole(graph: &mut Graph, turns: ValueId) -> ValueId {
    let whole = graph.un(Un::Round, turns);
    graph.sub(turns, whole)
}

impl Resolver<'_, '_> {
    /// A tensor that no file holds and nothing writes; entries that need the same one share it.
    fn table(&mut self, init: Init, shape: &[i64], name: &str) -> ValueId {
        let same = |other: &Tensor| other.tensor.init == init && other.tensor.shape == shape;
        let index = self.tensors.iter().position(same).unwrap_or_else(|| {
            let tensor = schedule::Tensor {
                name: name.into(),
                shape: shape.to_vec(),
                loops: 0,
                trained: false,
                saved: false,
                init,
            };
            self.tensors.push(Tensor { tensor, span: proc_macro2::Span::call_site(), role: TensorRole::State });
            self.tensors.len() - 1
        });
        self.read(index, &[])
    }
}
