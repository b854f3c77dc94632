//! One region from its plain graph to its chosen nodes: normal form, saturation, problem, search.

use std::collections::BTreeMap;
use std::rc::Rc;

use egg::Id;
use meganeura_shaders::dim::{Env, Symbols};

use super::choice::{Explainer, Why};
use super::cost::{Cost, REFERENCE, representative};
use super::dag::Dag;
use super::dump;
use super::lang::{ENode, Eg, Op};
use super::problem::{Problem, Solution};
use super::rewrite::normal_form;
use super::rules::{self, Rule};
use super::saturate::{Limit, Limits, Stats, rules_of, saturate};
use crate::ir::Type;
use crate::ops;

/// A region that was searched.
#[derive(Debug)]
pub struct Searched {
    /// The normal form.
    pub normal: Dag,
    /// The saturated graph.
    pub eg: Eg,
    /// The class of each node of the normal form.
    pub ids: Vec<Id>,
    /// What saturation did.
    pub stats: Stats,
    /// The choices.
    pub problem: Problem,
    /// The best that was found.
    pub solution: Solution,
    /// The first node of the plain graph that has the value of each class.
    pub sources: BTreeMap<Id, usize>,
}

/// Searches a region.
pub fn search(dag: &Dag, rules: &[Rule], at: &Env, limits: Limits) -> Result<Searched, Limit> {
    let normal = normal_form(dag, rules);
    let (mut eg, ids) = normal.to_egraph();
    let stats = saturate(&mut eg, rules, limits)?;
    let cost = Cost { device: REFERENCE, at };
    let roots = eg.analysis.roots.clone();
    let problem = Problem::new(&eg, &roots, |node| cost.node(&eg, node));
    let solution = problem.improve();
    let sources = sources(&normal, &eg, &ids);
    Ok(Searched { normal, eg, ids, stats, problem, solution, sources })
}

fn sources(normal: &Dag, eg: &Eg, ids: &[Id]) -> BTreeMap<Id, usize> {
    let mut sources: BTreeMap<Id, usize> = BTreeMap::new();
    for (id, note) in ids.iter().zip(&normal.notes) {
        if let Some(source) = note.source {
            let known = sources.entry(eg.find(*id)).or_insert(source);
            *known = source.min(*known);
        }
    }
    sources
}

/// A step of a solved region.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) what: What,
    /// The step and output of each argument.
    pub(super) args: Vec<(usize, usize)>,
    pub(super) types: Vec<Type>,
    /// For each output the node of the region's plain graph whose value it is.
    pub(super) sources: Vec<usize>,
    pub(super) rules: Vec<&'static str>,
    /// None of leaves and views.
    pub(super) why: Option<Why>,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Leaf(usize),
    Op(ops::Op),
}

/// A solved region: steps in order, and where its roots are.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub(super) steps: Vec<Step>,
    pub(super) roots: Vec<(usize, usize)>,
    /// What it costs if every operation is a kernel.
    pub(super) unfused_cost: u64,
    pub(super) text: String,
}

/// Regions that were solved before, by structure.
#[derive(Default, Debug)]
pub struct Memo {
    symbols: Symbols,
    solved: BTreeMap<(Vec<ENode>, Vec<Id>), Rc<Solved>>,
}

impl Memo {
    /// How many regions were searched.
    pub fn len(&self) -> usize {
        self.solved.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.solved.is_empty()
    }

    pub(super) fn solve(&mut self, dag: &Dag, symbols: &Symbols) -> Result<Rc<Solved>, Limit> {
        if self.symbols != *symbols {
            *self = Memo { symbols: symbols.clone(), solved: BTreeMap::new() };
        }
        let key = (dag.nodes.clone(), dag.roots.clone());
        if let Some(known) = self.solved.get(&key) {
            return Ok(known.clone());
        }
        let at = representative(symbols);
        let searched = search(dag, rules::ALL, &at, Limits::default())?;
        let solved = Rc::new(searched.solved(dag, &at, symbols));
        self.solved.insert(key, solved.clone());
        Ok(solved)
    }
}

impl Searched {
    /// `plain`: the graph that was searched, before its normal form.
    pub(super) fn solved(&self, plain: &Dag, at: &Env, symbols: &Symbols) -> Solved {
        let Searched { problem, eg, sources, .. } = self;
        let mut place: BTreeMap<Id, (usize, usize)> = BTreeMap::new();
        let mut steps: Vec<Step> = vec![];
        let mut classes: Vec<usize> = vec![];
        let order = problem.order(&self.solution.choice).unwrap_or_default();
        for class in order {
            let (id, node) = (problem.ids[class], &problem.chosen(&self.solution, class).node);
            let args: Vec<(usize, usize)> = node.args.iter().map(|a| place[&eg.find(*a)]).collect();
            let op = match &node.op {
                Op::Proj(i) => {
                    place.insert(id, (args[0].0, usize::from(*i)));
                    continue;
                }
                Op::Leaf(k, ..) => What::Leaf(*k as usize),
                Op::Reshape(shape) => What::Op(ops::Op::Reshape(ops::Reshape { shape: shape.clone() })),
                Op::Transpose(perm) => What::Op(ops::Op::Transpose(ops::Transpose { perm: perm.clone() })),
                Op::Opaque(op, _) => What::Op(ops::Op::clone(op)),
                Op::Kernel(kernel) => What::Op(ops::Op::Kernel(kernel.clone())),
                Op::Launch(kernels) => What::Op(ops::Op::Launch(kernels.to_vec())),
                Op::Tuple => unreachable!("a tuple is no candidate"),
            };
            place.insert(id, (steps.len(), 0));
            let members = self.members(id, node);
            let step = Step {
                what: op,
                args,
                types: eg[id].data.outs.clone(),
                sources: members.iter().filter_map(|id| sources.get(id).copied()).collect(),
                rules: self.rules(node),
                why: None,
            };
            steps.push(step);
            classes.push(class);
        }
        // What a rule made on the way belongs to its reader.
        for k in (0..steps.len()).rev() {
            let own = steps[k].sources.clone();
            for (arg, _) in steps[k].args.clone() {
                if steps[arg].sources.is_empty() {
                    steps[arg].sources = own.clone();
                }
            }
        }
        let explainer = Explainer::new(self, plain, at);
        for k in 0..steps.len() {
            if problem.chosen(&self.solution, classes[k]).cost > 0 {
                let args: Vec<usize> = steps[k]
                    .args
                    .iter()
                    .filter_map(|(step, output)| steps[*step].sources.get(*output).copied())
                    .collect();
                steps[k].why = Some(explainer.why(classes[k], &steps[k].sources, &args));
            }
        }
        let roots = problem.roots.iter().map(|class| place[&problem.ids[*class]]).collect();
        Solved { steps, roots, unfused_cost: explainer.unfused_cost(), text: dump::region(self, symbols) }
    }

    /// The classes of a node's results.
    pub(super) fn members(&self, id: Id, node: &ENode) -> Vec<Id> {
        let tuple = |n: &&ENode| n.op == Op::Tuple;
        match (&node.op, self.eg[id].nodes.iter().find(tuple)) {
            (Op::Launch(_), Some(tuple)) => tuple.args.iter().map(|a| self.eg.find(*a)).collect(),
            _ => vec![id],
        }
    }

    /// The rules that made a node: of a launch those of its members first.
    pub(super) fn rules(&self, node: &ENode) -> Vec<&'static str> {
        let mut all: Vec<&'static str> = vec![];
        if let Op::Launch(kernels) = &node.op {
            for (kernel, args) in super::lang::split(kernels, &node.args) {
                let member = ENode { op: Op::Kernel(kernel.clone()), args: args.to_vec() };
                all.extend(rules_of(&self.eg, &member).iter());
            }
        }
        all.extend(rules_of(&self.eg, node).iter());
        let mut distinct: Vec<&'static str> = vec![];
        all.into_iter().for_each(|rule| {
            if !distinct.contains(&rule) {
                distinct.push(rule);
            }
        });
        distinct
    }
}
