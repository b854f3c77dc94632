//! Where the largest element of a row is.

use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType};

use crate::ir::{Graph, ValueId};

/// The index (u32, `[.., 1]`) of the first largest element of the last axis, of the first NaN if there is one. Elements
/// that are `taken` do not count, as long as others are left.
///
/// Of several candidates the first is found by its distance from the end of all indices, in u32 so that it is exact
/// for every length; 0 says that there is none. Infinities below the least finite number are no maximum that a row
/// reduction gives, hence the candidates behind the maximum: whatever is not taken.
pub fn argmax(graph: &mut Graph, x: ValueId, taken: Option<ValueId>) -> ValueId {
    let inputs: Vec<ValueId> = [x].into_iter().chain(taken).collect();
    graph.call("argmax", &inputs, |graph, x| vec![first_largest(graph, x[0], x.get(1).copied())], None)
}

fn first_largest(graph: &mut Graph, x: ValueId, taken: Option<ValueId>) -> ValueId {
    let (end, none) = (graph.integer(Const::Uint(u32::MAX)), graph.integer(Const::Uint(0)));
    let index = graph.index(0, x);
    let distance = graph.sub(end, index);
    let open = taken.map(|taken| graph.un(Un::Not, taken));
    let left = |graph: &mut Graph, hit: ValueId| open.map_or(hit, |open| graph.bin(Bin::And, hit, open));
    let first = |graph: &mut Graph, hit: ValueId| {
        let key = graph.select(hit, distance, none);
        graph.row_max(key)
    };
    let is_float = graph.ty(x).dtype == DType::F32;
    let least = match graph.ty(x).dtype {
        DType::F32 => Const::float(f64::from(f32::MIN)),
        DType::I32 => Const::Int(i32::MIN),
        DType::U32 | DType::Bool => Const::Uint(0),
    };
    let least = graph.integer(least);
    let mut ordered = x;
    let nan = is_float.then(|| graph.un(Un::Nan, x));
    if let Some(nan) = nan {
        ordered = graph.select(nan, least, ordered);
    }
    if let Some(taken) = taken {
        ordered = graph.select(taken, least, ordered);
    }
    let max = graph.row_max(ordered);
    let hit = graph.bin(Bin::Eq, x, max);
    let hit = left(graph, hit);
    let mut best = first(graph, hit);
    if let Some(nan) = nan {
        let other = match open {
            Some(open) => first(graph, open),
            None => end,
        };
        let nan = left(graph, nan);
        let nan = first(graph, nan);
        let (no_hit, no_nan) = (graph.bin(Bin::Eq, best, none), graph.bin(Bin::Eq, nan, none));
        best = graph.select(no_hit, other, best);
        best = graph.select(no_nan, best, nan);
    }
    graph.sub(end, best)
}

/// What is largest where `x` is smallest; NaN stays NaN.
pub fn reversed_order(graph: &mut Graph, x: ValueId) -> ValueId {
    match graph.ty(x).dtype {
        DType::F32 => graph.un(Un::Neg, x),
        DType::U32 | DType::Bool => {
            let most = graph.integer(Const::Uint(u32::MAX));
            graph.sub(most, x)
        }
        // The negative of the least integer does not exist.
        DType::I32 => {
            let minus = graph.integer(Const::Int(-1));
            graph.sub(minus, x)
        }
    }
}

/// The indices (u32, `[.., k]`) of the k largest elements of the last axis, largest first, as [`argmax`] orders them.
pub fn largest_indices(graph: &mut Graph, x: ValueId, k: u32) -> ValueId {
    if k == 1 {
        return argmax(graph, x, None);
    }
    let shape = graph.shape(x).clone();
    let rank = shape.len();
    let none = graph.integer(Const::Bool(false));
    let taken = graph.broadcast(none, &shape);
    let count = meganeura_shaders::dim::Dim::from(i64::from(k));
    let results = graph.repeat(&count, false, &[taken], &[], |graph, _, taken, _| {
        let best = argmax(graph, x, Some(taken[0]));
        let index = graph.index(0, x);
        let hit = graph.bin(Bin::Eq, index, best);
        (vec![graph.bin(Bin::Or, taken[0], hit)], vec![best])
    });
    let perm: Vec<u8> = (1..rank).chain([0, rank]).map(|axis| axis as u8).collect();
    let ids = graph.transpose(results[1], &perm);
    graph.reshape(ids, [&shape[..rank - 1], &[count]].concat())
}
