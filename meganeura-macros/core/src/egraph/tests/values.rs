//! Whole graphs: what was chosen computes what was written, in f64, loops and gradients included.

use super::models::*;
use super::*;
use crate::autodiff::Policy;
use crate::egraph::fuse;
use crate::ops::Op as Operation;
use crate::testing::{POLICIES, assert_close, outputs, random_graph, training};

fn assert_same(what: &str, graph: &Graph, other: &Graph, dims: &[i64], seed: u64) {
    let (expected, found) = (outputs(graph, dims, seed), outputs(other, dims, seed));
    assert_eq!(expected.len(), found.len());
    for ((name, expected), (_, found)) in expected.iter().zip(&found) {
        assert_eq!(expected.shape, found.shape, "{what}: {name}");
        assert_close(&format!("{what}: {name}"), &found.data, &expected.data, 1e-8);
    }
}

/// Normal form and chosen kernels against the graph; nothing is left but kernels, views, copies and loops.
fn check(what: &str, graph: &Graph, dims: &[&[i64]], seed: u64) -> Graph {
    let normal = normalise(graph);
    normal.verify().unwrap_or_else(|error| panic!("{what}: {error}\n{normal}"));
    let fused = fuse(graph).unwrap();
    fused.verify().unwrap_or_else(|error| panic!("{what}: {error}\n{fused}"));
    for dims in dims {
        assert_same(&format!("{what}, normal, at {dims:?}"), graph, &normal, dims, seed);
        assert_same(&format!("{what}, chosen, at {dims:?}"), graph, &fused, dims, seed);
    }
    let is_left = |op: &Operation| {
        use Operation::{Broadcast, Kernel, Launch, Pad, Read, Repeat, Reshape, Slice, Transpose};
        matches!(op, Read(_) | Repeat(_) | Kernel(_) | Launch(_))
            || matches!(op, Reshape(_) | Transpose(_) | Slice(_) | Pad(_) | Broadcast(_))
    };
    fused.nodes.iter().for_each(|node| assert!(is_left(&node.op), "{what}: {}", node.op.name()));
    assert_eq!(fused.stores.len(), graph.stores.len());
    fused
}

#[test]
fn random_graphs_keep_their_values() {
    for seed in 0..60 {
        let (graph, loss) = random_graph(seed);
        check(&format!("graph {seed}"), &graph, &[&[3, 2], &[1, 1], &[5, 3]], seed);
        let policy = POLICIES[seed as usize % 3];
        let trained = training(&graph, loss, policy);
        check(&format!("graph {seed} trained ({policy:?})"), &trained, &[&[3, 2], &[4, 1]], seed);
    }
}

#[test]
fn models_and_their_gradients_keep_their_values() {
    let models = [
        ("mlp", mlp(4, 6, 3)),
        ("decoder", decoder(TINY, 2)),
        ("layer", decoder_layer(TINY)),
        ("logits", all_logits(4, 5)),
        ("gate", softmax_gate(4, 5)),
    ];
    for (name, graph) in models {
        let graph = with_loss(graph);
        for policy in [Policy::Contractions, Policy::Store] {
            let trained = training(&graph, graph.outputs[0].value, policy);
            check(name, &trained, &[&[3], &[1], &[4]], 7);
        }
    }
    check("loss", &cross_entropy(5), &[&[3], &[1]], 3);
    check("mlp backward", &mlp_backward(4, 6, 3), &[&[3], &[6]], 3);
}
