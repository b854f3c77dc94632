//! Destructive rewriting with the same rules: the greedy compiler that saturation has to beat.

use std::collections::{BTreeMap, BTreeSet};

use egg::Id;

use super::super::dag::Dag;
use super::super::lang::Op;
use super::super::rewrite::replace;
use super::super::rules::{Find, New, Rule};

/// First match, fixed priority: the first rule that matches anywhere rewrites there, and again from the start; only
/// rewrites that `better` accepts (old, new) are made.
pub(super) fn greedy(dag: &Dag, rules: &[Rule], better: &dyn Fn(&Dag, &Dag) -> bool) -> Dag {
    let mut dag = dag.clone();
    let mut seen = BTreeSet::from([dag.nodes.clone()]);
    'again: loop {
        let (eg, _) = dag.to_egraph();
        for rule in rules {
            let candidates: Vec<BTreeMap<Id, New>> = match rule.find {
                Find::Always(find) | Find::Node(_, find) => (0..dag.nodes.len())
                    .flat_map(|i| {
                        find(&eg, &dag.nodes[i]).into_iter().map(move |new| BTreeMap::from([(Id::from(i), new)]))
                    })
                    .collect(),
                Find::Finish(find) => vec![unpack(find(&eg))],
            };
            for replaced in candidates.iter().filter(|r| !r.is_empty()) {
                let Some(next) = replace(&dag, replaced, rule.name) else { continue };
                if !seen.contains(&next.nodes) && better(&dag, &next) {
                    seen.insert(next.nodes.clone());
                    dag = next;
                    continue 'again;
                }
            }
        }
        return dag;
    }
}

/// What packing rules say, without the tuple between a projection and the kernel.
fn unpack(pairs: Vec<(New, New)>) -> BTreeMap<Id, New> {
    let mut replaced = BTreeMap::new();
    let is_tuple = |old: &New| matches!(old, New::Node(..));
    let kernels: Vec<(String, New)> =
        pairs.iter().filter(|(old, _)| is_tuple(old)).map(|(old, new)| (format!("{old:?}"), new.clone())).collect();
    for (old, new) in pairs {
        if let (New::Class(id), New::Node(Op::Proj(i), tuple)) = (old, new) {
            let kernel = kernels.iter().find(|(name, _)| *name == format!("{:?}", tuple[0]));
            replaced.extend(kernel.map(|(_, kernel)| (id, New::Node(Op::Proj(i), vec![kernel.clone()]))));
        }
    }
    replaced
}
