//! Saturation and extraction against weaker and stronger searches, and against themselves.

use super::exact::exact;
use super::greedy::greedy;
use super::models::*;
use super::*;
use crate::egraph::cost::{Cost, REFERENCE};
use crate::egraph::dag::Dag;
use crate::egraph::lang::Stored;
use crate::egraph::problem::{Candidate, Problem, Solution};
use crate::egraph::rewrite::normal_form;
use crate::ir::Type;

fn cost_of(dag: &Dag, env: &Env) -> u64 {
    let (eg, _) = dag.to_egraph();
    let cost = Cost { device: REFERENCE, at: env };
    let roots = eg.analysis.roots.clone();
    Problem::new(&eg, &roots, |node| cost.node(&eg, node)).tree().cost
}

/// (first match always taken, first match that is cheaper taken, saturation), in nanoseconds.
fn three_ways(graph: &Graph, env: &Env) -> [u64; 3] {
    let normal = normal_form(&plain(graph), ALL);
    let always = greedy(&normal, ALL, &|_, _| true);
    let climbing = greedy(&normal, ALL, &|old, new| cost_of(new, env) < cost_of(old, env));
    [cost_of(&always, env), cost_of(&climbing, env), searched(graph, env).solution.cost].map(|cost| cost / 1000)
}

#[test]
fn greedy_rewriting_loses() {
    let cases: [(&str, Graph, i64, u64); 3] = [
        ("decoder layer, one row", decoder_layer(SMOLLM2), 1, 102),
        ("decoder layer", decoder_layer(SMOLLM2), 128, 102),
        ("mlp", mlp_backward(512, 1024, 256), 256, 103),
    ];
    for (name, graph, m, percent) in cases {
        let [always, climbing, saturated] = three_ways(&graph, &at(m));
        println!("{name:<15} always {always:9}  climbing {climbing:9}  saturated {saturated:9}");
        assert!(
            always * 100 > percent * saturated && climbing * 100 > percent * saturated,
            "{name}: {always}, {climbing}, {saturated}"
        );
    }
}

fn products(searched: &Searched, solution: &Solution) -> usize {
    let of = |kernel: &Kernel| if let Kernel::Contract(c) = kernel { c.terms.len() } else { 0 };
    let order = searched.problem.order(&solution.choice).unwrap();
    let count = |class: usize| match &searched.problem.chosen(solution, class).node.op {
        Op::Kernel(kernel) => of(kernel),
        Op::Launch(kernels) => kernels.iter().map(of).sum(),
        _ => 0,
    };
    order.into_iter().map(count).sum()
}

/// A value with two users is stored once by one search and computed twice by the other.
#[test]
fn tree_costs_repeat_shared_work() {
    let searched = searched(&mlp_backward(512, 1024, 256), &at(256));
    let tree = searched.problem.tree();
    assert!(tree.cost > searched.solution.cost * 11 / 10);
    assert_eq!((products(&searched, &tree), products(&searched, &searched.solution)), (7, 6));
}

/// Within a thousandth, and mostly exactly.
#[test]
fn local_search_is_optimal_where_that_can_be_proved() {
    let cases: [(Graph, i64); 7] = [
        (decoder_layer(SMOLLM2), 1),
        (decoder_layer(SMOLLM2), 128),
        (all_logits(576, 49152), 128),
        (cross_entropy(10), 64),
        (mlp_backward(512, 1024, 256), 256),
        (mlp_backward(64, 128, 10), 64),
        (softmax_gate(576, 64), 1),
    ];
    let mut hits = 0;
    for (graph, m) in cases {
        let problem = searched(&graph, &at(m)).problem;
        let improved = problem.improve();
        let (best, proved) = exact(&problem, improved.clone(), 200_000);
        assert!(proved);
        assert!(improved.cost * 1000 <= best.cost * 1001, "{} {}", improved.cost, best.cost);
        hits += u32::from(improved.cost == best.cost);
    }
    assert!(hits >= 6, "{hits}");
}

/// Made-up problems: layers of classes, nodes that read a few classes of earlier layers.
fn random_problem(seed: u64) -> Problem {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    let node = |i| ENode { op: Op::Leaf(i, Stored::Value, Type::float(vec![])), args: vec![] };
    let free = || vec![Candidate { node: node(0), cost: 0, children: vec![] }];
    let mut classes: Vec<Vec<Candidate>> = (0..3).map(|_| free()).collect();
    for class in 3..24 {
        let mut nodes: Vec<Candidate> = (0..1 + next(4))
            .map(|i| {
                let children: std::collections::BTreeSet<usize> =
                    (0..1 + next(3)).map(|_| class - 1 - next(class.min(8))).collect();
                Candidate { node: node(i as u32), cost: 1 + next(20) as u64, children: children.into_iter().collect() }
            })
            .collect();
        nodes.sort_by_key(|c| (c.cost, c.children.clone()));
        classes.push(nodes);
    }
    Problem { ids: (0..24).map(egg::Id::from).collect(), roots: vec![23, 22, 21], classes }
}

#[test]
fn local_search_is_near_the_optimum_of_random_problems() {
    let (mut improved, mut optimal, mut hits) = (0, 0, 0);
    for seed in 1..=200 {
        let problem = random_problem(seed);
        let local = problem.improve();
        let (best, proved) = exact(&problem, local.clone(), 1_000_000);
        assert!(proved && best.cost <= local.cost && best.cost <= problem.tree().cost);
        (improved, optimal) = (improved + local.cost, optimal + best.cost);
        hits += u32::from(local.cost == best.cost);
    }
    assert!(improved * 100 <= optimal * 102 && hits > 120, "{improved} against {optimal}, {hits} exact");
}

/// Nothing is left behind in the process: expanding B before A does not change A.
#[test]
fn the_result_depends_on_the_graph_alone() {
    let text = |graph: &Graph| crate::egraph::fuse(graph).unwrap().to_string();
    let first = text(&decoder_layer(SMOLLM2));
    let others = || [text(&decoder(SMOLLM2, 3)), text(&mlp_backward(512, 1024, 256))];
    let here = others();
    assert_eq!(first, text(&decoder_layer(SMOLLM2)));
    let elsewhere = std::thread::scope(|scope| scope.spawn(others).join().unwrap());
    assert_eq!(here, elsewhere);
}

/// The order of rules is not part of the result: what they read does not depend on it.
#[test]
fn the_order_of_rules_does_not_change_the_cost() {
    let backwards: Vec<Rule> = ALL.iter().rev().copied().collect();
    for (graph, m) in [(decoder_layer(SMOLLM2), 1), (mlp_backward(512, 1024, 256), 256), (cross_entropy(10), 64)] {
        let normal = normal_form(&plain(&graph), ALL);
        let [a, b] = [ALL, &backwards[..]].map(|rules| search(&normal, rules, &at(m), Limits::default()).unwrap());
        assert_eq!((a.stats.nodes, a.solution.cost), (b.stats.nodes, b.solution.cost));
    }
}

#[test]
fn limits_are_errors_that_name_themselves() {
    let dag = plain(&decoder_layer(SMOLLM2));
    let with = |iterations, nodes| {
        search(&dag, ALL, &at(1), Limits { iterations, nodes }).err().map(|limit| limit.to_string()).unwrap()
    };
    assert!(with(2, 5_000).starts_with("saturation did not end within 2 iterations"));
    assert!(with(20, 60).starts_with("saturation passed 60 nodes in iteration "));
}
