//! Random numbers: what they depend on, how they are spread, and that a backward pass makes the same again.

use meganeura_shaders::pointwise::hash;
use meganeura_shaders::reference::Tensor;

use super::{Stores, clean, gradients, gradients_of, mistake, values};
use crate::evaluation::evaluated;
use crate::interp::graph::run;
use crate::ir::{Graph, StoreKind};
use crate::testing::{bind, contents};

/// The word of an element.
fn word(s: &Stores, place: u32, coordinates: &[i64]) -> u32 {
    let words = &s.tensor("seed and step").data;
    let state = [words[1] as u32, words[2] as u32, place].into_iter().fold(words[0] as u32, hash);
    coordinates.iter().fold(state, |state, at| hash(state, *at as u32))
}

fn unit(word: u32) -> f64 {
    f64::from(word >> 8) / 16_777_216.0
}

#[test]
fn uniform_and_normal_numbers_are_hashes_of_their_coordinates() {
    values(
        "f32[n, 3], f32[n, 3], f32, f32[2, n]",
        "(random_uniform([n, 3]), random_uniform([n, 3]), random_uniform([]), random_normal([2, n]))",
        &[
            (&[4, 3], &|s, at| unit(word(s, 0, at))),
            (&[4, 3], &|s, at| unit(word(s, 1, at))),
            (&[], &|s, at| unit(word(s, 2, at))),
            (&[2, 4], &|s, at| {
                let word = word(s, 3, at);
                let (radius, turns) = (unit(hash(word, 0)) + 1.0 / 16_777_216.0, unit(hash(word, 1)));
                (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turns).cos()
            }),
        ],
    );
}

#[test]
fn dropout_is_a_mask_of_the_step_that_gradients_see() {
    values(
        "f32[n, 5], f32[n, 5], f32[n, 5]",
        "(dropout(m, 0.3), dropout(m, p = 1), m.dropout(0))",
        &[
            (&[4, 5], &|s, at| if unit(word(s, 0, at)) >= 0.3 { s.at("m", at) / 0.7 } else { 0.0 }),
            (&[4, 5], &|_, _| 0.0),
            (&[4, 5], &|s, at| s.at("m", at)),
        ],
    );
    gradients("dropout(p * q, 0.4) * 2 + dropout(p, 0.5)");
    gradients_of("let mut h = p; sum(dropout(tanh(h), 0.2) * random_normal([3, 5]))");
    assert!(mistake("dropout(m, 1.5)[0]").contains("0..=1"));
}

const LAYERS: &str = "
    layer Noisy { param w: f32[6] = ones; fn forward(x: f32[.., 6]) -> f32[.., 6] { dropout(x * w, 0.5) } }
    model M<n in 1..=64> {
        layers: [Noisy; 3],
        #[train] pub fn loss(x: f32[n, 6]) -> (f32, f32[n, 6]) {
            let mut h = x;
            let mut kept = x * 0;
            for layer in layers { h = layer(h) + x; kept = kept * 2 + where(h == x, 0, 1); }
            (sum(h * h), kept)
        }
    }";

fn with_step(graph: &Graph, n: i64, words: [f64; 3]) -> Vec<Tensor> {
    let env = bind(graph, &[n]);
    let mut stores = contents(graph, &env, 3);
    for (store, tensor) in graph.stores.iter().zip(&mut stores) {
        if store.kind == StoreKind::Random {
            tensor.data = words.to_vec();
        }
    }
    run(graph, &env, &stores)
}

#[test]
fn every_iteration_step_and_seed_has_a_mask_of_its_own() {
    let resolved = clean(LAYERS);
    let graph = &resolved.entries[0].graph;
    let masks = |words| with_step(graph, 9, words)[1].data.clone();
    let first = masks([1.0, 0.0, 0.0]);
    assert_eq!(first, masks([1.0, 0.0, 0.0]));
    for other in [[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]] {
        assert_ne!(first, masks(other));
    }
    // Bits of three iterations: if they were one mask, each element would be 0 or 7.
    assert!((1..7).all(|mask| first.contains(&f64::from(mask))), "{first:?}");
    let loss = graph.outputs[0].value;
    for policy in crate::testing::POLICIES {
        crate::testing::check_gradients(graph, loss, &[4], 3, policy);
    }
    super::check_schedules("dropout in a loop", &crate::testing::training(graph, loss, Default::default()));
}

#[test]
fn outside_of_training_steps_dropout_is_nothing() {
    let resolved = clean(LAYERS);
    let graph = evaluated(&resolved.entries[0].graph);
    graph.verify().unwrap();
    let (first, second) = (with_step(&graph, 4, [1.0, 0.0, 0.0]), with_step(&graph, 4, [5.0, 6.0, 7.0]));
    assert_eq!(first, second);
    assert!(first[1].data.iter().all(|mask| *mask == 7.0));
    let mut pruned = graph.clone();
    crate::prune::prune(&mut pruned);
    let reads = pruned.blocks[0].nodes.iter().filter(|id| matches!(pruned.node(**id).op, crate::ops::Op::Read(_)));
    assert_eq!(reads.count(), 2, "nothing random is read\n{pruned}");
}

#[test]
fn numbers_are_spread_evenly() {
    let resolved = clean(
        "model M<n in 1..=65536> { pub fn f(x: f32[n]) -> (f32[n, 4], f32[n, 4], f32[n, 4]) {
            (random_uniform([n, 4]), random_normal([n, 4]), dropout(broadcast(reshape(x * 0 + 1, [n, 1]), [n, 4]), 0.25)) } }",
    );
    let found = with_step(&resolved.entries[0].graph, 5000, [3.0, 0.0, 1.0]);
    let mean = |data: &[f64], f: &dyn Fn(f64) -> f64| data.iter().map(|x| f(*x)).sum::<f64>() / data.len() as f64;
    let (uniform, normal, dropped) = (&found[0].data, &found[1].data, &found[2].data);
    // Five standard deviations of means of 20,000.
    assert!((mean(uniform, &|x| x) - 0.5).abs() < 0.0103 && uniform.iter().all(|x| (0.0..1.0).contains(x)));
    let neighbours = uniform.windows(2).map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5)).sum::<f64>() / 19_999.0 * 12.0;
    assert!(neighbours.abs() < 0.0354, "{neighbours}");
    assert!(mean(normal, &|x| x).abs() < 0.0354 && (mean(normal, &|x| x * x) - 1.0).abs() < 0.05);
    assert!((mean(normal, &|x| x.powi(4)) - 3.0).abs() < 0.35);
    let share = dropped.iter().filter(|x| **x == 0.0).count() as f64 / 20_000.0;
    assert!((share - 0.25).abs() < 0.0154, "{share}");
}
