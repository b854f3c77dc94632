//! The optimum of a problem by branch and bound: what the search is measured against.
//!
//! The bound counts, for what is still open, the cheapest node of every class that is needed *whatever* is chosen.

use super::super::problem::{Candidate, Problem, Solution};

type Bits = Vec<bool>;

fn union(all: &mut Bits, other: &Bits) {
    all.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}

fn members(bits: &Bits) -> impl Iterator<Item = usize> + '_ {
    bits.iter().enumerate().filter(|(_, on)| **on).map(|(i, _)| i)
}

/// The best choice from `start` on, region by region; the flag says that no search ran out of `budget` steps, so that
/// the result is optimal.
pub(super) fn exact(problem: &Problem, start: Solution, budget: usize) -> (Solution, bool) {
    let mut allowed: Vec<Vec<usize>> = problem.classes.iter().map(|nodes| (0..nodes.len()).collect()).collect();
    let (mut choice, mut proved) = (start.choice, true);
    for roots in regions(problem) {
        let part = Problem { roots: roots.clone(), ..problem.clone() };
        let least = |(nodes, allowed): (&Vec<Candidate>, &Vec<usize>)| {
            allowed.iter().map(|i| nodes[*i].cost).min().unwrap_or(u64::MAX / 1024)
        };
        let mut search = Search {
            must: must(problem, &allowed),
            least: problem.classes.iter().zip(&allowed).map(least).collect(),
            best: Solution { cost: part.total(&choice).unwrap(), choice: choice.clone() },
            choice: vec![usize::MAX; problem.classes.len()],
            problem: &part,
            allowed: &allowed,
            steps: 0,
            budget,
        };
        let known = search.closure(&roots);
        search.branch(0, vec![false; problem.classes.len()], known);
        proved &= search.steps < budget;
        choice = search.best.choice;
        for class in part.order(&choice).unwrap() {
            allowed[class] = vec![choice[class]];
        }
    }
    (Solution { cost: problem.total(&choice).unwrap(), choice }, proved)
}

/// Root sets of parts that can be solved one after the other, small ones first, the whole last. A class that the roots
/// cannot do without, and that alone connects what is below it to the rest, is best computed in the same way whatever
/// the rest chooses.
fn regions(problem: &Problem) -> Vec<Vec<usize>> {
    let n = problem.classes.len();
    let all: Vec<Vec<usize>> = problem.classes.iter().map(|nodes| (0..nodes.len()).collect()).collect();
    let must = must(problem, &all);
    let mut needed = vec![false; n];
    problem.roots.iter().for_each(|r| union(&mut needed, &must[*r]));
    let is_free = |c: usize| matches!(&problem.classes[c][..], [one] if one.cost == 0 && one.children.is_empty());
    let mut regions: Vec<(usize, Vec<usize>)> = vec![];
    for cut in members(&needed).filter(|c| !is_free(*c)) {
        let mut cone = vec![false; n];
        let mut todo = vec![cut];
        while let Some(class) = todo.pop() {
            if !is_free(class) && !cone[class] {
                cone[class] = true;
                todo.extend(problem.classes[class].iter().flat_map(|c| &c.children));
            }
        }
        let enters = |c: &Candidate| c.children.iter().any(|child| *child != cut && cone[*child]);
        if !(0..n).any(|class| !cone[class] && problem.classes[class].iter().any(enters)) {
            let inside = problem.roots.iter().copied().filter(|r| *r != cut && cone[*r]);
            regions.push((members(&cone).count(), [cut].into_iter().chain(inside).collect()));
        }
    }
    regions.sort();
    regions.into_iter().map(|(_, roots)| roots).chain([problem.roots.clone()]).collect()
}

/// For each class, those that every acyclic choice for it needs: the greatest fixpoint.
fn must(problem: &Problem, allowed: &[Vec<usize>]) -> Vec<Bits> {
    let n = problem.classes.len();
    let mut must: Vec<Bits> = vec![vec![true; n]; n];
    loop {
        let mut changed = false;
        for (class, nodes) in problem.classes.iter().enumerate() {
            let mut all = vec![true; n];
            for i in &allowed[class] {
                let mut one = vec![false; n];
                nodes[*i].children.iter().for_each(|c| union(&mut one, &must[*c]));
                all.iter_mut().zip(&one).for_each(|(a, b)| *a &= b);
            }
            all[class] = true;
            if all != must[class] {
                must[class] = all;
                changed = true;
            }
        }
        if !changed {
            return must;
        }
    }
}

struct Search<'a> {
    problem: &'a Problem,
    allowed: &'a [Vec<usize>],
    least: Vec<u64>,
    must: Vec<Bits>,
    best: Solution,
    choice: Vec<usize>,
    steps: usize,
    budget: usize,
}

impl Search<'_> {
    fn closure(&self, classes: &[usize]) -> Bits {
        let mut all = vec![false; self.least.len()];
        classes.iter().for_each(|c| union(&mut all, &self.must[*c]));
        all
    }

    /// `known`: what is needed for certain, chosen or not.
    fn branch(&mut self, spent: u64, chosen: Bits, known: Bits) {
        self.steps += 1;
        let bound = spent + members(&known).filter(|c| !chosen[*c]).map(|c| self.least[c]).sum::<u64>();
        if bound >= self.best.cost || self.steps >= self.budget {
            return;
        }
        let open = members(&known).filter(|c| !chosen[*c]);
        let Some(class) = open.min_by_key(|c| (self.allowed[*c].len(), usize::MAX - c)) else {
            // What is not needed here keeps its old choice: it may be needed by another region.
            let both = self.choice.iter().zip(&self.best.choice);
            let choice: Vec<usize> = both.map(|(new, old)| if *new == usize::MAX { *old } else { *new }).collect();
            if self.problem.total(&choice).is_some() {
                self.best = Solution { choice, cost: spent };
            }
            return;
        };
        let mut options: Vec<(u64, usize, Bits)> = vec![];
        for i in self.allowed[class].iter().copied() {
            let candidate = &self.problem.classes[class][i];
            let mut known = known.clone();
            union(&mut known, &self.closure(&candidate.children));
            let open = members(&known).filter(|c| !chosen[*c] && *c != class).map(|c| self.least[c]).sum::<u64>();
            options.push((candidate.cost + open, i, known));
        }
        options.sort_by_key(|(bound, i, _)| (*bound, *i));
        for (_, i, known) in options {
            self.choice[class] = i;
            if self.closes_no_cycle(class) {
                let mut chosen = chosen.clone();
                chosen[class] = true;
                self.branch(spent + self.problem.classes[class][i].cost, chosen, known);
            }
        }
        self.choice[class] = usize::MAX;
    }

    fn closes_no_cycle(&self, from: usize) -> bool {
        let mut seen = vec![false; self.choice.len()];
        let mut todo = vec![from];
        while let Some(class) = todo.pop() {
            if self.choice[class] == usize::MAX {
                continue;
            }
            for child in &self.problem.classes[class][self.choice[class]].children {
                if *child == from {
                    return false;
                }
                if !std::mem::replace(&mut seen[*child], true) {
                    todo.push(*child);
                }
            }
        }
        true
    }
}
