//! Saturation: all rules read a clean graph, then all terms are added and joined, then the graph is rebuilt. Bounded by
//! counts, never by time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use egg::Id;

use super::lang::{ENode, Eg, Facts, History};
use super::rules::{Below, Find, LOOPS, New, Rule};

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
    before: Rc<[&'static str]>,
    old: New,
    new: New,
}

/// Applies the rules until nothing changes.
pub fn saturate(eg: &mut Eg, rules: &[Rule], limits: Limits) -> Result<Stats, Limit> {
    let mut stats = Stats::default();
    let mut known: BTreeMap<Id, Vec<ENode>> = BTreeMap::new();
    loop {
        let classes: BTreeMap<Id, Vec<ENode>> = eg.classes().map(|c| (c.id, c.nodes.clone())).collect();
        let news = News::since(&known, &classes);
        if news.nodes.is_empty() {
            break;
        }
        if stats.iterations == limits.iterations {
            return Err(Limit::Iterations { limit: limits.iterations, nodes: eg.total_number_of_nodes() });
        }
        stats.iterations += 1;
        let mut found = vec![];
        for (id, nodes) in &classes {
            for node in nodes {
                let is_new = news.nodes.contains(&(*id, node));
                for rule in rules {
                    let Find::Node(below, find) = rule.find else { continue };
                    if is_new || news.are_below(below, node) {
                        let before = rules_of(eg, node);
                        let matched =
                            |new| Match { rule: rule.name, before: before.clone(), old: New::Class(*id), new };
                        found.extend(find(eg, node).into_iter().map(matched));
                    }
                }
            }
        }
        join(eg, found, limits, &mut stats)?;
        known = classes;
    }
    let mut found = vec![];
    for rule in rules {
        let Find::Finish(find) = rule.find else { continue };
        found.extend(find(eg).into_iter().map(|(old, new)| Match { rule: rule.name, before: Rc::default(), old, new }));
    }
    join(eg, found, limits, &mut stats)?;
    (stats.nodes, stats.classes) = (eg.total_number_of_nodes(), eg.number_of_classes());
    Ok(stats)
}

/// The rules that made a node.
pub fn rules_of(eg: &Eg, node: &ENode) -> Rc<[&'static str]> {
    eg.analysis.history.get(node).map(|history| history.rules.clone()).unwrap_or_default()
}

fn join(eg: &mut Eg, found: Vec<Match>, limits: Limits, stats: &mut Stats) -> Result<(), Limit> {
    for Match { rule, before, old, new } in found {
        let made = Made { rule, before: &before };
        let old = insert(eg, &old, &made, None);
        let facts = eg[old].data.clone();
        let new = insert(eg, &new, &made, Some(facts));
        assert_eq!(eg[old].data.outs, eg[new].data.outs, "{rule} changed a type");
        *stats.found.entry(rule).or_default() += 1;
        *stats.joined.entry(rule).or_default() += usize::from(eg.union(old, new));
        if eg.total_size() > limits.nodes {
            return Err(Limit::Nodes { limit: limits.nodes, iteration: stats.iterations, rule });
        }
    }
    eg.rebuild();
    let mut history = std::mem::take(&mut eg.analysis.history);
    history.rename(|id| eg.find(id));
    eg.analysis.history = history;
    Ok(())
}

/// What a round finds that the round before did not.
struct News<'a> {
    nodes: BTreeSet<(Id, &'a ENode)>,
    /// Classes with new nodes of a kind.
    classes: BTreeSet<(Below, Id)>,
}

impl News<'_> {
    fn since<'a>(known: &BTreeMap<Id, Vec<ENode>>, classes: &'a BTreeMap<Id, Vec<ENode>>) -> News<'a> {
        let mut news = News { nodes: BTreeSet::new(), classes: BTreeSet::new() };
        for (id, nodes) in classes {
            let before = known.get(id).map_or(&[][..], |nodes| nodes);
            for node in nodes.iter().filter(|node| before.binary_search(node).is_err()) {
                news.nodes.insert((*id, node));
                let kinds = [Below::Loops, Below::Products, Below::Reshapes];
                news.classes.extend(kinds.into_iter().filter(|kind| kind.is(&node.op)).map(|kind| (kind, *id)));
            }
        }
        news
    }

    fn are_below(&self, below: Below, node: &ENode) -> bool {
        node.args.iter().any(|a| self.classes.contains(&(below, *a)))
    }
}

struct Made<'a> {
    rule: &'static str,
    before: &'a [&'static str],
}

impl Made<'_> {
    fn history(&self) -> History {
        History { rules: [self.before, &[self.rule]].concat().into(), written: self.rule != LOOPS }
    }
}

/// Adds a term, whose facts may be known.
fn insert(eg: &mut Eg, new: &New, made: &Made<'_>, facts: Option<Facts>) -> Id {
    match new {
        New::Class(id) => eg.find(*id),
        New::Node(op, args) => {
            let node = ENode { op: op.clone(), args: args.iter().map(|a| insert(eg, a, made, None)).collect() };
            let before = eg.nodes().len();
            eg.analysis.expected = facts;
            let id = eg.add(node.clone());
            eg.analysis.expected = None;
            let is_new = eg.nodes().len() > before;
            if is_new || made.rule != LOOPS && eg.analysis.history.get(&node).is_some_and(|known| !known.written) {
                eg.analysis.history.insert(node, made.history());
            }
            id
        }
    }
}
