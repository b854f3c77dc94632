//! Attention: every query takes a mean of the values, weighted by how well its score with each key does.
//!
//! `softmax(q kᵀ · scale) v` for each head (Vaswani and others, 2017), from products, a masked softmax and nothing else.
//! Fewer heads of keys and values than of queries serve a group of queries each (Ainslie and others, 2023).

use meganeura_shaders::dim::{Dim, Shape};
use meganeura_shaders::kernel::Spec;
use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::{Const, DType};

use super::{Call, Kind, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ir::{Graph, ValueId};
use crate::ops::{Contract, Op, composite};
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[Row {
    name: "attention",
    parameters: &[
        needs("q", Kind::Float),
        needs("k", Kind::Float),
        needs("v", Kind::Float),
        takes("causal", Kind::Flag),
        takes("mask", Kind::Any),
        takes("scale", Kind::Number),
        takes("window", Kind::Value),
    ],
    build: attention,
}];

/// The axes of `[.., rows, heads, width]`; two axes are one head.
struct Heads {
    leading: Shape,
    rows: Dim,
    heads: Dim,
    width: Dim,
}

impl Heads {
    fn new(shape: &Shape) -> Option<Heads> {
        Some(match shape.as_slice() {
            [rows, width] => Heads { leading: vec![], rows: rows.clone(), heads: 1.into(), width: width.clone() },
            [leading @ .., rows, heads, width] => {
                Heads { leading: leading.to_vec(), rows: rows.clone(), heads: heads.clone(), width: width.clone() }
            }
            _ => return None,
        })
    }
}

/// What a query sees beside what its position allows.
#[derive(Clone, Copy)]
struct Sight {
    causal: bool,
    window: Option<u32>,
}

fn attention<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (q, k, v) = (cx.float(call, 0)?, cx.float(call, 1)?, cx.float(call, 2)?);
    let shapes = [q, k, v].map(|value| cx.graph.shape(value).clone());
    let [Some(queries), Some(keys), Some(values)] = [0, 1, 2].map(|at: usize| Heads::new(&shapes[at])) else {
        let operands: Option<Vec<_>> = (0..3).map(|at| call.operand(at)).collect();
        cx.report(call.span, cx.with_operands(diag::attention_axes(), &operands?));
        return None;
    };
    let group = queries.heads.div(&keys.heads);
    let fits = shapes[0].len() == shapes[1].len()
        && shapes[1].len() == shapes[2].len()
        && queries.leading == keys.leading
        && keys.leading == values.leading
        && queries.width == keys.width
        && keys.rows == values.rows
        && keys.heads == values.heads;
    let Some(group) = group.filter(|_| fits) else {
        let operands: Option<Vec<_>> = (0..3).map(|at| call.operand(at)).collect();
        cx.report(call.span, cx.with_operands(diag::attention_shapes(), &operands?));
        return None;
    };
    let sight = Sight { causal: call.flag(3, false), window: window(cx, call)? };
    let scale = match (call.get(5), queries.width.constant()) {
        (Some(_), _) => call.number(5, 1.0),
        (None, Some(width)) => 1.0 / (width as f64).sqrt(),
        (None, None) => {
            let found = cx.show_size(&queries.width);
            cx.report(call.place(0), diag::attention_scale(&found));
            return None;
        }
    };
    let mask = match call.get(4) {
        Some(_) => Some(mask(cx, call, &queries, &keys, &group, shapes[0].len() == 2)?),
        None => None,
    };
    let graph = &mut cx.graph;
    let with = |own: &[&Dim]| -> Shape { queries.leading.iter().chain(own.iter().copied()).cloned().collect() };
    let q = graph.reshape(q, with(&[&queries.rows, &keys.heads, &group, &queries.width]));
    let k = graph.reshape(k, with(&[&keys.rows, &keys.heads, &keys.width]));
    let v = graph.reshape(v, with(&[&values.rows, &values.heads, &values.width]));
    // Labels: queries, keys, heads of keys, queries of a group, width.
    let leading: Vec<u8> = (0..queries.leading.len() as u8).map(|axis| b'A' + axis).collect();
    let labels = |own: &[u8]| [&leading[..], own].concat();
    let product = |a: &[u8], b: &[u8], result: &[u8]| {
        Op::Contract(Contract { spec: Spec::new(&labels(a), &labels(b), &labels(result)) })
    };
    let scores = graph.emit(product(b"qhgw", b"khw", b"hgqk"), &[q, k]);
    let mut scores = graph.with_const(Bin::Mul, scores, scale);
    if let Some(seen) = positions(graph, scores, sight, &queries.rows, &keys.rows) {
        scores = masked(graph, seen, scores);
    }
    if let Some(mask) = mask {
        scores = match graph.ty(mask).dtype {
            DType::Bool => masked(graph, mask, scores),
            _ => graph.add(scores, mask),
        };
    }
    let weights = composite::softmax(graph, scores);
    let mixed = graph.emit(product(b"hgqk", b"khw", b"qhgw"), &[weights, v]);
    let mut shape = shapes[0].clone();
    let last = shape.len() - 1;
    shape[last] = values.width.clone();
    Some(Value::Tensor(graph.reshape(mixed, shape)))
}

fn masked(graph: &mut Graph, seen: ValueId, scores: ValueId) -> ValueId {
    let none = graph.constant(composite::MASKED);
    graph.select(seen, scores, none)
}

/// `window`, where it is given.
fn window<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Option<u32>> {
    let Some(value) = call.value(6) else { return Some(None) };
    match value.integer().and_then(|window| u32::try_from(window).ok()) {
        Some(window) if (1..1 << 24).contains(&window) => Some(Some(window)),
        _ => {
            let found = cx.show(value);
            cx.report(call.place(6), diag::positive_count(call.name, "window", &found));
            None
        }
    }
}

/// Which keys a query's position lets it see: the last query stands where the last key does.
fn positions(graph: &mut Graph, scores: ValueId, sight: Sight, queries: &Dim, keys: &Dim) -> Option<ValueId> {
    // Both positions are counted from where no number is below zero: the key's plus the queries, the query's plus the keys.
    let (query, key) = (graph.index(1, scores), graph.index(0, scores));
    let (queries, keys) = (graph.count(queries), graph.count(keys));
    let (query, key) = (graph.add(query, keys), graph.add(key, queries));
    let mut seen = sight.causal.then(|| graph.bin(Bin::Le, key, query));
    if let Some(window) = sight.window {
        let window = graph.integer(Const::Uint(window));
        let reach = graph.add(key, window);
        let near = graph.bin(Bin::Lt, query, reach);
        seen = Some(match seen {
            Some(seen) => graph.bin(Bin::And, seen, near),
            None => {
                let reach = graph.add(query, window);
                let ahead = graph.bin(Bin::Lt, key, reach);
                graph.bin(Bin::And, near, ahead)
            }
        });
    }
    seen
}

/// The mask as scores lie: `[.., heads of keys, group, queries, keys]`.
fn mask<'a>(
    cx: &mut Resolver<'a, '_>,
    call: &Call<'a>,
    queries: &Heads,
    keys: &Heads,
    group: &Dim,
    flat: bool,
) -> Option<ValueId> {
    let Value::Tensor(mask) = *call.value(4)? else {
        let found = cx.show(call.value(4)?);
        cx.report(call.place(4), diag::argument_type(call.name, "mask", "a tensor of bool or f32", &found));
        return None;
    };
    let shape = cx.graph.shape(mask).clone();
    let heads = if flat { None } else { Some(&queries.heads) };
    let whole: Shape = queries.leading.iter().chain(heads).chain([&queries.rows, &keys.rows]).cloned().collect();
    let missing = whole.len().checked_sub(shape.len());
    let fits = missing
        .is_some_and(|missing| shape.iter().zip(&whole[missing..]).all(|(own, size)| own == size || own.is_one()));
    let typed = matches!(cx.graph.ty(mask).dtype, DType::Bool | DType::F32);
    if !fits || !typed {
        let (found, whole) = (cx.show_type(cx.graph.ty(mask)), cx.graph.symbols.show_shape(&whole));
        cx.report(call.place(4), diag::attention_mask(&whole, &found));
        return None;
    }
    if flat || shape.len() < 3 {
        return Some(mask);
    }
    let at = shape.len() - 3;
    let of_group = if shape[at].is_one() { [Dim::from(1), Dim::from(1)] } else { [keys.heads.clone(), group.clone()] };
    let split = [&shape[..at], &of_group[..], &shape[at + 1..]].concat();
    Some(cx.graph.reshape(mask, split))
}
