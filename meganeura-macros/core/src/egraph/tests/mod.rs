#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod choices;
mod costs;
mod exact;
mod greedy;
mod kernels;
mod models;
mod rules;
mod search;
mod values;

use meganeura_shaders::dim::{Dim, Env, Symbols};
use meganeura_shaders::kernel::{Contract, Kernel};

use super::lang::{ENode, Op};
use super::region::{regions, tensors};
use super::rules::{ALL, Rule};
use super::saturate::Limits;
use super::solve::{Searched, search};
use crate::ir::{Graph, ROOT};
use crate::normalise::normalise;

/// The one runtime dimension of the test models.
fn symbols() -> (Symbols, Dim) {
    let mut symbols = Symbols::default();
    let m = symbols.declare("m", 1, 100_000, 1);
    (symbols, m)
}

/// The sizes at which values are compared: m = 3.
fn small() -> Env {
    at(3)
}

fn at(m: i64) -> Env {
    symbols().0.bind(&[m]).unwrap()
}

/// The plain graph of a graph without loops.
fn plain(graph: &Graph) -> super::dag::Dag {
    graph.verify().unwrap();
    let normal = normalise(graph);
    normal.verify().unwrap();
    let mut stretches = regions(&normal, ROOT, &tensors(&normal), 10_000);
    assert_eq!(stretches.len(), 1, "a graph without loops");
    stretches.remove(0).region.dag
}

fn searched_with(graph: &Graph, rules: &[Rule], env: &Env) -> Searched {
    search(&plain(graph), rules, env, Limits::default()).unwrap()
}

fn searched(graph: &Graph, env: &Env) -> Searched {
    searched_with(graph, ALL, env)
}

impl Searched {
    /// The nodes that run, in order: no views, no leaves.
    fn kernels(&self) -> Vec<&ENode> {
        let order = self.problem.order(&self.solution.choice).unwrap();
        let chosen = order.into_iter().map(|class| self.problem.chosen(&self.solution, class));
        chosen.filter(|c| c.cost > 0).map(|c| &c.node).collect()
    }

    /// Kernels without their programs: what they are, what they take along.
    fn outline(&self) -> Vec<String> {
        self.kernels().iter().map(|node| outline(&node.op)).collect()
    }
}

fn outline(op: &Op) -> String {
    match op {
        Op::Kernel(kernel) => kernel_outline(kernel),
        Op::Launch(kernels) => {
            let mut members: Vec<String> = kernels.iter().map(kernel_outline).collect();
            members.sort();
            members.join(" | ")
        }
        other => other.to_string(),
    }
}

fn kernel_outline(kernel: &Kernel) -> String {
    match kernel {
        Kernel::Contract(c) => product_outline(c),
        Kernel::ColumnSum(_) => "column sum".into(),
        Kernel::Rows(p) if p.reduces_rows() => "rows".into(),
        Kernel::Rows(_) => "map".into(),
        other => other.name().into(),
    }
}

fn product_outline(c: &Contract) -> String {
    let first = &c.terms[0];
    let before = match (&first.stat, first.a.is_identity(), first.b.is_identity()) {
        (Some(_), ..) => "stat ",
        (None, false, _) => "pro ",
        (None, true, false) => "pro-b ",
        _ => "",
    };
    let count = if c.terms.len() > 1 { format!("×{}", c.terms.len()) } else { String::new() };
    format!("{before}product{count}{}", if c.epi.is_identity() { "" } else { " epi" })
}
