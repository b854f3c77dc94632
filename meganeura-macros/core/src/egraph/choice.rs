//! Why a step was chosen: its cost against that of the operations one by one, and the kernels that lost.
//!
//! Costs are those of the search: picoseconds of the reference device at the representative sizes, once a call, or once
//! an iteration inside of a loop. What another kernel would have cost is found by taking it instead, and of everything
//! else the cheapest for the values that are then stored; so it is an upper bound, as the search itself has it.

use std::collections::BTreeSet;
use std::rc::Rc;

use egg::Id;
use meganeura_shaders::dim::Env;

use super::cost::{Cost, REFERENCE};
use super::dag::Dag;
use super::lang::{ENode, Op};
use super::problem::{Candidate, Problem, Solution};
use super::solve::Searched;
use crate::ir::Served;

/// Other kernels that are told of a step.
const RIVALS: usize = 3;

/// Why the steps of a graph are as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// One for each kernel.
    pub list: Vec<Choice>,
    /// What a call would cost if every operation were a kernel.
    pub unfused_cost: u64,
}

/// Why a step is as it is, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The user's statements that it serves, in the order of the data.
    pub served: Vec<Rc<Served>>,
    /// What it costs.
    pub cost: u64,
    /// How many kernels do the same if every operation is one.
    pub unfused: usize,
    /// What they cost.
    pub unfused_cost: u64,
    /// What was considered instead, the cheapest plan first.
    pub rivals: Vec<Rival>,
    /// How many more there were.
    pub more: usize,
}

/// A kernel that was considered and not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// What it is.
    pub kernel: Piece,
    /// By how much the plan of the region would cost more.
    pub dearer: i64,
    /// The kernels that are needed beside it and are not in the plan.
    pub beside: Vec<Piece>,
}

/// A kernel in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its name.
    pub kernel: String,
    /// What it computes.
    pub what: String,
    /// The rules that made it.
    pub rules: Vec<&'static str>,
    /// What it costs.
    pub cost: u64,
}

/// The same in numbers of nodes of the region.
#[derive(Clone, Debug)]
pub(super) struct Why {
    pub(super) cost: u64,
    pub(super) unfused: usize,
    pub(super) unfused_cost: u64,
    pub(super) rivals: Vec<RivalNode>,
    pub(super) more: usize,
}

#[derive(Clone, Debug)]
pub(super) struct RivalNode {
    pub(super) kernel: PieceNode,
    pub(super) dearer: i64,
    pub(super) beside: Vec<PieceNode>,
}

#[derive(Clone, Debug)]
pub(super) struct PieceNode {
    pub(super) kernel: String,
    /// The nodes of the plain graph that have its results.
    pub(super) sources: Vec<usize>,
    /// Those that have its arguments, as far as the plain graph has them.
    pub(super) args: Vec<usize>,
    pub(super) rules: Vec<&'static str>,
    pub(super) cost: u64,
}

impl PieceNode {
    /// All that text shows of it but the cost.
    fn shown(&self) -> (String, Vec<usize>, Vec<usize>, Vec<&'static str>) {
        let sorted = |nodes: &[usize]| nodes.iter().copied().collect::<BTreeSet<usize>>().into_iter().collect();
        (self.kernel.clone(), sorted(&self.sources), sorted(&self.args), self.rules.clone())
    }
}

/// What explains the steps of a searched region.
pub(super) struct Explainer<'s> {
    searched: &'s Searched,
    plain: &'s Dag,
    /// The problem with all that was considered, and the plan in it.
    problem: Problem,
    solution: Solution,
    /// What each node of the plain graph costs by itself.
    alone: Vec<u64>,
    /// The classes that the plan needs.
    needed: BTreeSet<usize>,
}

impl<'s> Explainer<'s> {
    pub(super) fn new(searched: &'s Searched, plain: &'s Dag, at: &Env) -> Explainer<'s> {
        let (eg, ids) = plain.to_egraph();
        let cost = Cost { device: REFERENCE, at };
        let alone = plain.nodes.iter().map(|node| {
            let args = node.args.iter().map(|a| ids[usize::from(*a)]).collect();
            cost.node(&eg, &ENode { op: node.op.clone(), args })
        });
        let eg = &searched.eg;
        let problem = Problem::whole(eg, &eg.analysis.roots, |node| cost.node(eg, node));
        let place = |(class, nodes): (usize, &Vec<Candidate>)| {
            let chosen = &searched.problem.chosen(&searched.solution, class).node;
            nodes.iter().position(|candidate| candidate.node == *chosen).unwrap_or_default()
        };
        let choice = problem.classes.iter().enumerate().map(place).collect();
        let solution = Solution { choice, cost: searched.solution.cost };
        let needed = problem.order(&solution.choice).unwrap_or_default().into_iter().collect();
        Explainer { searched, plain, problem, solution, alone: alone.collect(), needed }
    }

    /// What the region costs if every operation is a kernel.
    pub(super) fn unfused_cost(&self) -> u64 {
        self.alone.iter().sum()
    }

    /// Why the plan computes a class as it does. `sources` and `args`: the nodes of the plain graph of its results and
    /// arguments.
    pub(super) fn why(&self, class: usize, sources: &[usize], args: &[usize]) -> Why {
        let covered = self.covered(sources, args);
        let paid: Vec<u64> = covered.iter().map(|node| self.alone[*node]).filter(|cost| *cost > 0).collect();
        let mut rivals = self.rivals(class);
        rivals.sort_by_key(|rival| rival.dearer);
        // What differs in the order of its parts alone reads the same.
        let mut shown = vec![(self.piece(class, &self.solution).shown(), vec![])];
        rivals.retain(|rival| {
            let beside: Vec<_> = rival.beside.iter().map(PieceNode::shown).collect();
            let key = (rival.kernel.shown(), beside);
            let is_new = !shown.contains(&key);
            shown.push(key);
            is_new
        });
        let more = rivals.len().saturating_sub(RIVALS);
        rivals.truncate(RIVALS);
        let cost = self.problem.chosen(&self.solution, class).cost;
        Why { cost, unfused: paid.len(), unfused_cost: paid.iter().sum(), rivals, more }
    }

    /// The nodes of the plain graph between arguments and results.
    fn covered(&self, sources: &[usize], args: &[usize]) -> BTreeSet<usize> {
        let (mut todo, mut covered) = (sources.to_vec(), BTreeSet::new());
        while let Some(node) = todo.pop() {
            if !args.contains(&node) && covered.insert(node) {
                todo.extend(self.plain.nodes[node].args.iter().map(|a| usize::from(*a)));
            }
        }
        covered
    }

    fn rivals(&self, class: usize) -> Vec<RivalNode> {
        let Explainer { problem, solution, .. } = self;
        let chosen = solution.choice[class];
        let others = (0..problem.classes[class].len()).filter(|candidate| *candidate != chosen);
        let mut rivals: Vec<RivalNode> = others
            .filter_map(|candidate| {
                let instead = problem.with(solution, class, candidate)?;
                Some(self.rival(class, candidate, &instead))
            })
            .collect();
        if let Op::Launch(_) = problem.chosen(solution, class).node.op
            && let Some(apart) = problem.without(solution, class)
        {
            let (beside, dearer) = (self.beside(class, &apart), dearer(&apart, solution));
            let kernel = PieceNode { kernel: String::new(), sources: vec![], args: vec![], rules: vec![], cost: 0 };
            rivals.push(RivalNode { kernel, dearer, beside });
        }
        rivals
    }

    fn rival(&self, class: usize, candidate: usize, instead: &Solution) -> RivalNode {
        // A value that comes out of a launch of several: that launch is the kernel.
        let problem = &self.problem;
        let node = &problem.classes[class][candidate];
        let class =
            if let Op::Proj(_) = node.node.op { node.children.first().copied().unwrap_or(class) } else { class };
        let beside = self.beside(class, instead);
        RivalNode { kernel: self.piece(class, instead), dearer: dearer(instead, &self.solution), beside }
    }

    /// The kernels of another plan that this one has not, apart from that of `class`.
    fn beside(&self, class: usize, instead: &Solution) -> Vec<PieceNode> {
        let Explainer { problem, solution, .. } = self;
        let order = problem.order(&instead.choice).unwrap_or_default().into_iter();
        let is_new = |c: &usize| !self.needed.contains(c) || solution.choice[*c] != instead.choice[*c];
        let is_kernel = |c: &usize| problem.chosen(instead, *c).cost > 0;
        order.filter(|c| *c != class && is_new(c) && is_kernel(c)).map(|c| self.piece(c, instead)).collect()
    }

    /// The kernel by which a plan computes a class.
    fn piece(&self, class: usize, plan: &Solution) -> PieceNode {
        let (problem, eg) = (&self.problem, &self.searched.eg);
        let candidate = problem.chosen(plan, class);
        let (id, node) = (problem.ids[class], &candidate.node);
        let source = |id: &Id| self.searched.sources.get(&eg.find(*id)).copied();
        let kernel = match &node.op {
            Op::Kernel(kernel) => kernel.name().to_string(),
            Op::Launch(kernels) => format!("launch of {}", kernels.len()),
            Op::Opaque(op, _) => op.name().to_string(),
            Op::Transpose(_) => "transpose".to_string(),
            _ => "view".to_string(),
        };
        PieceNode {
            kernel,
            sources: self.searched.members(id, node).iter().filter_map(source).collect(),
            args: node.args.iter().filter_map(source).collect(),
            rules: self.searched.rules(node),
            cost: candidate.cost,
        }
    }
}

fn dearer(instead: &Solution, solution: &Solution) -> i64 {
    instead.cost as i64 - solution.cost as i64
}
