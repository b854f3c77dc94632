//! Saturation: all rules read a clean graph, then all terms are added and joined, then the graph is rebuilt. Bounded by
//! counts, never by time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use egg::Id;

use super::lang::{ENode, Eg, History};
use super::rules::{Find, LOOPS, New, Rule};

/// How far saturation may go.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Rounds of all rules.
    pub iterations: usize,
    /// Nodes of one region.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { iterations: 20, nodes: 5_000 }
    }
}

/// A limit that was reached: a fault of the rules, not of the user's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The rules still found something after this many rounds.
    Iterations {
        /// The limit.
        limit: usize,
        /// Nodes by then.
        nodes: usize,
    },
    /// The graph grew beyond this many nodes.
    Nodes {
        /// The limit.
        limit: usize,
        /// The round.
        iteration: usize,
        /// The rule that made one too many.
        rule: &'static str,
    },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Iterations { limit, nodes } => {
                write!(f, "saturation did not end within {limit} iterations ({nodes} nodes)")
            }
            Limit::Nodes { limit, iteration, rule } => {
                write!(f, "saturation passed {limit} nodes in iteration {iteration} at {rule}")
            }
        }
    }
}

impl std::error::Error for Limit {}

/// What saturation did.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Rounds until nothing was new.
    pub iterations: usize,
    /// Nodes at the end.
    pub nodes: usize,
    /// Classes at the end.
    pub classes: usize,
    /// How many terms each rule returned.
    pub found: BTreeMap<&'static str, usize>,
    /// How many classes each rule joined.
    pub joined: BTreeMap<&'static str, usize>,
}

struct Match {
    rule: &'static str,
    /// The rules that made the node that matched.
    before: Vec<&'static str>,
    old: New,
    new: New,
}

/// Applies the rules until nothing changes.
pub fn saturate(eg: &mut Eg, rules: &[Rule], limits: Limits) -> Result<Stats, Limit> {
    let mut stats = Stats::default();
    let mut known: BTreeMap<Id, Vec<ENode>> = BTreeMap::new();
    loop {
        let classes: BTreeMap<Id, Vec<ENode>> = eg.classes().map(|c| (c.id, c.nodes.clone())).collect();
        let is_changed = |(id, nodes): &(&Id, &Vec<ENode>)| known.get(*id) != Some(*nodes);
        let changed: BTreeSet<Id> = classes.iter().filter(is_changed).map(|(id, _)| *id).collect();
        if changed.is_empty() {
            break;
        }
        if stats.iterations == limits.iterations {
            return Err(Limit::Iterations { limit: limits.iterations, nodes: eg.total_number_of_nodes() });
        }
        stats.iterations += 1;
        let near = with_parents(eg, &changed);
        let above = with_parents(eg, &near);
        let is_new = |id: &Id, node: &ENode| known.get(id).is_none_or(|nodes| nodes.binary_search(node).is_err());
        let mut found = vec![];
        for id in &above {
            for node in classes[id].iter().filter(|n| is_new(id, n) || n.args.iter().any(|a| near.contains(a))) {
                for rule in rules {
                    let Find::Node(find) = rule.find else { continue };
                    found.extend(find(eg, node).into_iter().map(|new| Match {
                        rule: rule.name,
                        before: rules_of(eg, node),
                        old: New::Class(*id),
                        new,
                    }));
                }
            }
        }
        join(eg, found, limits, &mut stats)?;
        known = classes;
    }
    let mut found = vec![];
    for rule in rules {
        let Find::Finish(find) = rule.find else { continue };
        found.extend(find(eg).into_iter().map(|(old, new)| Match { rule: rule.name, before: vec![], old, new }));
    }
    join(eg, found, limits, &mut stats)?;
    (stats.nodes, stats.classes) = (eg.total_number_of_nodes(), eg.number_of_classes());
    Ok(stats)
}

/// The rules that made a node.
pub fn rules_of(eg: &Eg, node: &ENode) -> Vec<&'static str> {
    eg.analysis.history.get(node).map(|history| history.rules.clone()).unwrap_or_default()
}

fn join(eg: &mut Eg, found: Vec<Match>, limits: Limits, stats: &mut Stats) -> Result<(), Limit> {
    for Match { rule, before, old, new } in found {
        let rules = [&before[..], &[rule]].concat();
        let history = History { rules, written: rule != LOOPS };
        let [old, new] = [old, new].map(|term| insert(eg, &term, &history));
        assert_eq!(eg[old].data.outs, eg[new].data.outs, "{rule} changed a type");
        *stats.found.entry(rule).or_default() += 1;
        *stats.joined.entry(rule).or_default() += usize::from(eg.union(old, new));
        if eg.total_size() > limits.nodes {
            return Err(Limit::Nodes { limit: limits.nodes, iteration: stats.iterations, rule });
        }
    }
    eg.rebuild();
    let history = std::mem::take(&mut eg.analysis.history);
    let mut renamed: BTreeMap<ENode, History> = BTreeMap::new();
    for (mut node, history) in history {
        node.args.iter_mut().for_each(|a| *a = eg.find(*a));
        // Two nodes that have become one: what was written stays written.
        let written = history.written;
        renamed.entry(node).or_insert(history).written |= written;
    }
    eg.analysis.history = renamed;
    Ok(())
}

fn with_parents(eg: &Eg, classes: &BTreeSet<Id>) -> BTreeSet<Id> {
    let parents = classes.iter().flat_map(|id| eg[*id].parents().map(|p| eg.find(p)));
    classes.iter().copied().chain(parents).collect()
}

fn insert(eg: &mut Eg, new: &New, history: &History) -> Id {
    match new {
        New::Class(id) => eg.find(*id),
        New::Node(op, args) => {
            let node = ENode { op: op.clone(), args: args.iter().map(|a| insert(eg, a, history)).collect() };
            let before = eg.nodes().len();
            let id = eg.add(node.clone());
            if eg.nodes().len() > before {
                eg.analysis.history.insert(node, history.clone());
            } else if history.written
                && let Some(known) = eg.analysis.history.get_mut(&node)
            {
                known.written = true;
            }
            id
        }
    }
}
