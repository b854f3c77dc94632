//! Random graphs: the loop's gradient is the unrolled graph's, and the slope of the loss.

use super::*;
use crate::ir::{ROOT, Repeat};

#[test]
fn gradients_of_random_graphs_are_those_of_the_unrolled() {
    for seed in 0..60 {
        let (graph, loss) = random_graph(seed);
        for policy in POLICIES {
            check_against_unrolled(&graph, loss, &[3, 1 + seed as i64 % 4], seed, policy);
        }
    }
}

#[test]
fn gradients_of_random_graphs_are_slopes() {
    for seed in 1000..1030 {
        let (graph, loss) = random_smooth_graph(seed);
        for policy in POLICIES {
            check_gradients(&graph, loss, &[1 + seed as i64 % 5, 1 + seed as i64 % 4], seed, policy);
        }
    }
}

#[test]
fn any_order_of_a_block_will_do() {
    for seed in 5000..5040 {
        let (graph, loss) = random_graph(seed);
        let policy = POLICIES[seed as usize % 3];
        let dims = [1 + seed as i64 % 7, 1 + seed as i64 % 4];
        let expected = outputs(&training(&graph, loss, policy), &dims, seed);
        let found = training(&reordered(&graph, seed), loss, policy);
        let found = outputs(&reordered(&found, seed + 1), &dims, seed);
        assert_eq!(found.len(), expected.len());
        for ((name, expected), (other, found)) in expected.iter().zip(&found) {
            assert_eq!(name, other);
            assert_close(name, &found.data, &expected.data, 1e-9);
        }
    }
}

#[test]
fn random_graphs_reach_what_they_are_for() {
    let (mut loops, mut nested, mut runtime_counts, mut stacks, mut captured) = (0, 0, 0, 0, 0);
    for seed in 0..60 {
        let (graph, loss) = random_graph(seed);
        assert_eq!(graph.outputs[0].value, loss);
        assert_eq!(graph.to_string(), random_graph(seed).0.to_string(), "the same seed gives the same graph");
        for (block, nodes) in graph.blocks.iter().map(|block| &block.nodes).enumerate() {
            for node in nodes.iter().map(|id| graph.node(*id)) {
                let Op::Repeat(Repeat { count, carried, stacked, .. }) = &node.op else { continue };
                loops += 1;
                nested += usize::from(block != ROOT.index());
                runtime_counts += usize::from(count.constant().is_none());
                stacks += node.outputs.len() - carried;
                captured += node.inputs.len() - carried - stacked;
            }
        }
    }
    let seen = [loops, nested, runtime_counts, stacks, captured];
    assert!(seen.iter().all(|times| *times > 20), "{seen:?}");
}
