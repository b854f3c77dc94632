//! Random numbers of a shape.

use meganeura_shaders::dim::{Dim, Shape};
use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::{Const, DType};

use crate::ir::{Graph, ValueId};

/// 2^-24.
const UNIT: f64 = 1.0 / 16_777_216.0;

/// The words of all elements of a shape.
fn words(graph: &mut Graph, state: ValueId, shape: &Shape) -> ValueId {
    let coordinates: Vec<ValueId> = (0..shape.len())
        .map(|axis| {
            let index = graph.arange(&shape[axis]);
            let ones = vec![Dim::from(1); shape.len() - 1 - axis];
            graph.reshape(index, [&[shape[axis].clone()], &ones[..]].concat())
        })
        .collect();
    graph.hashed(state, &coordinates)
}

fn fraction(graph: &mut Graph, words: ValueId) -> ValueId {
    let bits = graph.upper_bits(words);
    let whole = graph.cast(DType::F32, bits);
    graph.with_const(Bin::Mul, whole, UNIT)
}

/// Uniform in [0, 1), multiples of 2^-24: the same bits on every device.
pub fn random_uniform(graph: &mut Graph, state: ValueId, shape: &Shape) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let words = words(graph, x[0], shape);
        vec![fraction(graph, words)]
    };
    graph.call("random_uniform", &[state], body, None)
}

/// Standard normal, from two words an element.
pub fn random_normal(graph: &mut Graph, state: ValueId, shape: &Shape) -> ValueId {
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let words = words(graph, x[0], shape);
        let [first, second] = [0, 1].map(|k| {
            let number = graph.integer(Const::Uint(k));
            graph.hashed(words, &[number])
        });
        // In (0, 1], where the logarithm is finite.
        let (radius, turns) = (fraction(graph, first), fraction(graph, second));
        let radius = graph.with_const(Bin::Add, radius, UNIT);
        vec![graph.bin(Bin::Normal, radius, turns)]
    };
    graph.call("random_normal", &[state], body, None)
}
