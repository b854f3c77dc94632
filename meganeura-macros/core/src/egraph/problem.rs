//! Choosing one node for each class that is needed, at the least sum of node costs over the shared graph.
//!
//! A [`Problem`] is what is left of an e-graph for this: classes in id order, nodes in (cost, children, content) order,
//! the dominated ones gone. Everything that chooses is a function of the problem alone.

use std::collections::{BTreeMap, BTreeSet};

use egg::Id;

use super::bits::Bits;
use super::lang::{ENode, Eg, Op};

/// A node that may be chosen.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The node.
    pub node: ENode,
    /// What it costs by itself.
    pub cost: u64,
    /// The classes that it reads, as positions in the problem.
    pub children: Vec<usize>,
}

/// Classes that can be needed, with what is left of their nodes after domination.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The candidates of each class.
    pub classes: Vec<Vec<Candidate>>,
    /// The classes in the e-graph.
    pub ids: Vec<Id>,
    /// What has to be computed.
    pub roots: Vec<usize>,
}

/// The chosen node of each class (some are not needed).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Solution {
    /// The candidate of each class.
    pub choice: Vec<usize>,
    /// The sum of costs.
    pub cost: u64,
}

impl Problem {
    /// The problem of an e-graph.
    pub fn new(eg: &Eg, roots: &[Id], cost: impl Fn(&ENode) -> u64) -> Problem {
        Problem::of(eg, roots, cost, true)
    }

    /// The same with the nodes that another one dominates: more to tell of, and never a better solution.
    pub fn whole(eg: &Eg, roots: &[Id], cost: impl Fn(&ENode) -> u64) -> Problem {
        Problem::of(eg, roots, cost, false)
    }

    fn of(eg: &Eg, roots: &[Id], cost: impl Fn(&ENode) -> u64, dominate: bool) -> Problem {
        let choosable = |id: Id| eg[id].nodes.iter().filter(|n| n.op != Op::Tuple);
        let mut reach = BTreeSet::new();
        let mut todo: Vec<Id> = roots.iter().map(|r| eg.find(*r)).collect();
        while let Some(id) = todo.pop() {
            if reach.insert(id) {
                todo.extend(choosable(id).flat_map(|n| n.args.iter().map(|a| eg.find(*a))));
            }
        }
        let costs: BTreeMap<&ENode, u64> = reach.iter().flat_map(|id| choosable(*id)).map(|n| (n, cost(n))).collect();
        let free = free(eg, &reach, &costs);
        let ids: Vec<Id> = reach.into_iter().collect();
        let index: BTreeMap<Id, usize> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let place = |id: &Id| index[&eg.find(*id)];
        let candidate = |n: &ENode| {
            let children: BTreeSet<usize> = n.args.iter().map(place).collect();
            Candidate { node: n.clone(), cost: costs[n], children: children.into_iter().collect() }
        };
        let kept = |(own, id): (usize, &Id)| {
            if let Some(node) = free.get(id) {
                return vec![candidate(node)];
            }
            let mut all: Vec<Candidate> =
                choosable(*id).map(candidate).filter(|c| !c.children.contains(&own)).collect();
            all.sort_by(|a, b| (a.cost, &a.children, &a.node).cmp(&(b.cost, &b.children, &b.node)));
            let mut kept: Vec<Candidate> = vec![];
            for c in all {
                let is_packed = matches!(c.node.op, Op::Proj(_));
                let reads = |child: &usize| c.children.contains(child) || free.contains_key(&ids[*child]);
                if !dominate || is_packed || !kept.iter().any(|k| k.children.iter().all(reads)) {
                    kept.push(c);
                }
            }
            kept
        };
        let classes: Vec<Vec<Candidate>> = ids.iter().enumerate().map(kept).collect();
        Problem { roots: roots.iter().map(place).collect(), classes, ids }
    }

    /// The chosen candidate of a class.
    pub fn chosen(&self, solution: &Solution, class: usize) -> &Candidate {
        &self.classes[class][solution.choice[class]]
    }

    /// The needed classes in dependency order; none if the choice is cyclic.
    pub fn order(&self, choice: &[usize]) -> Option<Vec<usize>> {
        let (mut order, mut state) = (vec![], vec![0u8; self.classes.len()]);
        let mut stack: Vec<(usize, usize)> = vec![];
        for root in &self.roots {
            if state[*root] == 0 {
                stack.push((*root, 0));
                state[*root] = 1;
            }
            while let Some((class, next)) = stack.pop() {
                match self.classes[class].get(choice[class])?.children.get(next) {
                    Some(child) => {
                        stack.push((class, next + 1));
                        match state[*child] {
                            0 => {
                                state[*child] = 1;
                                stack.push((*child, 0));
                            }
                            1 => return None,
                            _ => {}
                        }
                    }
                    None => {
                        state[class] = 2;
                        order.push(class);
                    }
                }
            }
        }
        Some(order)
    }

    /// The sum over the needed classes; none if the choice is cyclic.
    pub fn total(&self, choice: &[usize]) -> Option<u64> {
        Some(self.order(choice)?.into_iter().map(|c| self.classes[c][choice[c]].cost).sum())
    }

    pub(super) fn solution(&self, choice: Vec<usize>) -> Solution {
        let cost = self.total(&choice);
        assert!(cost.is_some(), "choices are made from below, so they close no cycle");
        Solution { choice, cost: cost.unwrap_or(u64::MAX) }
    }

    /// The cheapest node of each class where a shared value is paid for at every use.
    pub fn tree(&self) -> Solution {
        let mut best: Vec<Option<(u64, usize)>> = vec![None; self.classes.len()];
        self.fixpoint(|class, i, candidate| {
            let add = |sum: u64, c: &usize| Some(sum.saturating_add(best[*c]?.0));
            let sum = candidate.children.iter().try_fold(candidate.cost, add);
            let better = sum.filter(|sum| best[class].is_none_or(|(known, _)| *sum < known));
            better.map(|sum| best[class] = Some((sum, i))).is_some()
        });
        self.solution(best.into_iter().map(|b| b.map_or(0, |b| b.1)).collect())
    }

    /// The cheapest node of each class where a value shared *below that class* is paid for once.
    pub fn greedy(&self) -> Solution {
        type Below = (u64, usize, Bits);
        let mut best: Vec<Option<Below>> = vec![None; self.classes.len()];
        self.fixpoint(|class, i, candidate| {
            let mut below = Bits::new(self.classes.len());
            for child in &candidate.children {
                match &best[*child] {
                    Some((_, _, bits)) if !bits.contains(class) => below.union(bits),
                    _ => return false,
                }
            }
            let own = |c: usize| best[c].as_ref().map_or(0, |(_, i, _)| self.classes[c][*i].cost);
            let cost = candidate.cost + below.iter().map(own).sum::<u64>();
            let better = best[class].as_ref().is_none_or(|(known, ..)| cost < *known);
            if better {
                below.insert(class);
                best[class] = Some((cost, i, below));
            }
            better
        });
        let choice: Vec<usize> = best.into_iter().map(|b| b.map_or(0, |b| b.1)).collect();
        if self.total(&choice).is_some() { self.solution(choice) } else { self.tree() }
    }

    fn fixpoint(&self, mut improve: impl FnMut(usize, usize, &Candidate) -> bool) {
        loop {
            let mut changed = false;
            for (class, nodes) in self.classes.iter().enumerate() {
                for (i, candidate) in nodes.iter().enumerate() {
                    changed |= improve(class, i, candidate);
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// Classes that cost nothing whatever else is chosen, with the node that shows it.
fn free(eg: &Eg, reach: &BTreeSet<Id>, costs: &BTreeMap<&ENode, u64>) -> BTreeMap<Id, ENode> {
    let mut free: BTreeMap<Id, ENode> = BTreeMap::new();
    loop {
        let shown = |id: &&Id| {
            let shows = |n: &&ENode| costs.get(n) == Some(&0) && n.args.iter().all(|a| free.contains_key(&eg.find(*a)));
            eg[**id].nodes.iter().find(shows).cloned()
        };
        let open = reach.iter().filter(|id| !free.contains_key(id));
        let found: Vec<(Id, ENode)> = open.filter_map(|id| Some((*id, shown(&id)?))).collect();
        if found.is_empty() {
            return free;
        }
        free.extend(found);
    }
}
