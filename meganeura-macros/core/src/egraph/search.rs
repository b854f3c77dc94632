//! Local search over *which values are stored*.
//!
//! Given that set, the best kernel for each value is the cheapest one that reads only stored values, so one step (store
//! this value, or do not) moves all its users at once: what single choices cannot do when several kernels repeat the
//! same work, or when several users share a packed kernel.

use std::collections::BTreeSet;

use super::bits::Bits;
use super::lang::Op;
use super::problem::{Problem, Solution};

impl Problem {
    /// The best of two climbs: from everything stored but nothing packed, and from the greedy choice. Neither alone is
    /// enough.
    pub fn improve(&self) -> Solution {
        let n = self.classes.len();
        let (mut unpacked, mut needed) = (Bits::new(n), Bits::new(n));
        let is_pack = |class: &usize| self.classes[*class].iter().any(|c| matches!(c.node.op, Op::Launch(_)));
        (0..n).filter(|class| !is_pack(class)).for_each(|class| unpacked.insert(class));
        let greedy = self.greedy();
        self.order(&greedy.choice).unwrap_or_default().into_iter().for_each(|class| needed.insert(class));
        let climbed = [unpacked, needed].into_iter().filter_map(|start| self.climb(start));
        climbed.min_by_key(|s| s.cost).unwrap_or(greedy)
    }

    /// The plan that takes a candidate of a class, and else for the values that are then stored the cheapest kernels;
    /// none if it would not use the class.
    pub fn with(&self, solution: &Solution, class: usize, candidate: usize) -> Option<Solution> {
        let mut stored = self.stored(solution);
        for child in &self.classes[class][candidate].children {
            self.store(*child, &mut stored);
        }
        let found = self.best_of(&stored, Some((class, candidate)))?;
        self.order(&found.choice)?.contains(&class).then_some(found)
    }

    /// The plan that does not store a class, and else the values that `solution` stores.
    pub fn without(&self, solution: &Solution, class: usize) -> Option<Solution> {
        let mut stored = self.stored(solution);
        stored.toggle(class);
        self.best_with(&stored)
    }

    /// What a plan stores, and all that costs nothing.
    fn stored(&self, solution: &Solution) -> Bits {
        let mut stored = Bits::new(self.classes.len());
        self.order(&solution.choice).unwrap_or_default().into_iter().for_each(|class| stored.insert(class));
        let is_free = |class: &usize| self.classes[*class].iter().all(|candidate| candidate.cost == 0);
        (0..self.classes.len()).filter(is_free).for_each(|class| stored.insert(class));
        stored
    }

    /// Stores a class, and where no candidate of it reads stored values alone, what the cheapest reads.
    fn store(&self, class: usize, stored: &mut Bits) {
        if stored.contains(class) {
            return;
        }
        stored.insert(class);
        let candidates = &self.classes[class];
        if candidates.iter().any(|c| c.children.iter().all(|child| stored.contains(*child))) {
            return;
        }
        for child in candidates.first().iter().flat_map(|c| &c.children) {
            self.store(*child, stored);
        }
    }

    /// Single values until nothing helps; then one round of a value together with one that its kernels may read, and
    /// again, until neither helps.
    fn climb(&self, mut stored: Bits) -> Option<Solution> {
        let n = self.classes.len();
        let singles: Vec<[usize; 2]> = (0..n).map(|class| [class, class]).collect();
        let read = |class: usize| -> BTreeSet<usize> {
            self.classes[class].iter().flat_map(|c| c.children.iter().copied()).collect()
        };
        let pairs: Vec<[usize; 2]> =
            (0..n).flat_map(|class| read(class).into_iter().map(move |child| [class, child])).collect();
        let mut best = self.best_with(&stored)?;
        loop {
            while self.round(&singles, &mut stored, &mut best) {}
            if !self.round(&pairs, &mut stored, &mut best) {
                return Some(best);
            }
        }
    }

    fn round(&self, moves: &[[usize; 2]], stored: &mut Bits, best: &mut Solution) -> bool {
        let before = best.cost;
        for [a, b] in moves {
            let mut next = stored.clone();
            next.toggle(*a);
            if a != b {
                next.toggle(*b);
            }
            if let Some(better) = self.best_with(&next).filter(|s| s.cost < best.cost) {
                (*stored, *best) = (next, better);
            }
        }
        best.cost < before
    }

    /// The cheapest node of each needed class among those that read only `stored` values.
    fn best_with(&self, stored: &Bits) -> Option<Solution> {
        self.best_of(stored, None)
    }

    /// The same, where one class takes a given candidate.
    fn best_of(&self, stored: &Bits, taken: Option<(usize, usize)>) -> Option<Solution> {
        let n = self.classes.len();
        let (choice, open, done) = (vec![0; n], Bits::new(n), Bits::new(n));
        let mut settle = Settle { problem: self, stored, taken, choice, open, done };
        self.roots.iter().all(|r| settle.class(*r)).then(|| self.solution(settle.choice))
    }
}

struct Settle<'a> {
    problem: &'a Problem,
    stored: &'a Bits,
    taken: Option<(usize, usize)>,
    choice: Vec<usize>,
    open: Bits,
    done: Bits,
}

impl Settle<'_> {
    /// Chooses for a class and all below it. What is being chosen for cannot be read, so no cycle can close.
    fn class(&mut self, class: usize) -> bool {
        if self.done.contains(class) {
            return true;
        }
        self.open.insert(class);
        let taken = self.taken.filter(|(of, _)| *of == class).map(|(_, candidate)| candidate);
        let chosen = self.problem.classes[class].iter().enumerate().position(|(k, c)| {
            let readable = |child: &usize| self.stored.contains(*child) && !self.open.contains(*child);
            taken.is_none_or(|taken| taken == k)
                && c.children.iter().all(readable)
                && c.children.iter().all(|child| self.class(*child))
        });
        self.open.toggle(class);
        let Some(i) = chosen else { return false };
        self.choice[class] = i;
        self.done.insert(class);
        true
    }
}
