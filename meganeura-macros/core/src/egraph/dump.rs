//! The text of a searched region, for people and for comparing runs.

use std::fmt::Write;

use meganeura_shaders::dim::Symbols;

use super::lang::Op;
use super::solve::Searched;

/// One line for each needed class: its number and type, the price and the rules of its chosen node, the other nodes' prices.
pub fn region(searched: &Searched, symbols: &Symbols) -> String {
    let (problem, solution) = (&searched.problem, &searched.solution);
    let stats = &searched.stats;
    let mut text = String::new();
    let line = write!(text, "{} nodes in {} classes after {} rounds", stats.nodes, stats.classes, stats.iterations);
    debug_assert!(line.is_ok(), "writing to a string cannot fail");
    for (rule, joined) in stats.joined.iter().filter(|(_, joined)| **joined > 0) {
        text += &format!(", {rule} {joined}");
    }
    text.push('\n');
    for class in problem.order(&solution.choice).unwrap_or_default() {
        let candidate = problem.chosen(solution, class);
        let args: Vec<String> = candidate.node.args.iter().map(|a| format!("{a}")).collect();
        let types = &searched.eg[problem.ids[class]].data.outs;
        let types = crate::ops::show_types(&types.iter().collect::<Vec<_>>(), symbols);
        let others: Vec<String> = problem.classes[class].iter().map(|c| price(c.cost)).collect();
        let rules = searched.rules(&candidate.node).join(" ");
        text += &format!(
            "{:>5} {:>10}  {} ({})",
            problem.ids[class],
            price(candidate.cost),
            candidate.node.op,
            args.join(" ")
        );
        text += &format!(" : {types}");
        if !matches!(candidate.node.op, Op::Leaf(..)) {
            text += &format!("   # {rules} [{}]", others.join(" "));
        }
        text.push('\n');
    }
    text += &format!("total {} µs\n", price(solution.cost));
    text
}

fn price(picoseconds: u64) -> String {
    format!("{}.{:03}", picoseconds / 1_000_000, picoseconds / 1_000 % 1_000)
}
