//! Back into a graph: the same blocks, stores, outputs and loops, with the chosen steps of each region in between.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::choice::{Choice, Piece, PieceNode, Rival, RivalNode, Why};
use super::cost::representative;
use super::region::{Region, Stretch, regions, tensors};
use super::saturate::Limit;
use super::solve::{Memo, Solved, Step, What};
use crate::ir::{BlockId, Graph, Node, NodeId, Origin, Output, ROOT, Served, ValueId};
use crate::ops::Op;

/// Nodes of one region at first: four layers of a decoder with their gradients, each of which takes the search 30 ms.
const LARGEST: usize = 1_000;

struct Writer<'g> {
    from: &'g Graph,
    to: Graph,
    moved: BTreeMap<ValueId, ValueId>,
    tensors: BTreeSet<ValueId>,
    memo: &'g mut Memo,
    /// How often the current block runs at the sizes that choices are made at.
    times: u64,
    dump: Option<&'g mut String>,
}

pub(super) fn chosen(graph: &Graph, memo: &mut Memo, dump: Option<&mut String>) -> Result<Graph, Limit> {
    let mut to = Graph::new(graph.symbols.clone());
    to.stores = graph.stores.clone();
    to.checks = graph.checks.clone();
    let mut writer = Writer { from: graph, to, moved: BTreeMap::new(), tensors: tensors(graph), memo, times: 1, dump };
    for id in &graph.block(ROOT).nodes {
        if let Op::Read(_) = graph.node(*id).op {
            writer.copy(*id);
        }
    }
    writer.block(ROOT)?;
    let Writer { mut to, moved, .. } = writer;
    to.outputs = graph.outputs.iter().map(|o| Output { value: moved[&o.value], ..o.clone() }).collect();
    to.origin = Origin::default();
    Ok(to)
}

/// A stretch with its region solved, if that is needed.
type SolvedStretch = (Stretch, Option<Rc<Solved>>);

impl Writer<'_> {
    fn block(&mut self, block: BlockId) -> Result<(), Limit> {
        let from = self.from;
        for (k, (stretch, solved)) in self.solved(block)?.into_iter().enumerate() {
            if let Some(solved) = solved {
                if let Some(text) = &mut self.dump {
                    **text += &format!("block {} region {k}: {}", block.0, solved.text);
                }
                self.to.choices.unfused_cost += self.times * solved.unfused_cost;
                self.region(&stretch.region, &solved);
            }
            let Some(barrier) = stretch.barrier else { continue };
            match &from.node(barrier).op {
                Op::Repeat(_) => self.repeat(barrier)?,
                _ => self.copy(barrier),
            }
        }
        Ok(())
    }

    /// The regions of a block; where one is too large for the search, all are cut to half the size.
    fn solved(&mut self, block: BlockId) -> Result<Vec<SolvedStretch>, Limit> {
        let mut most = LARGEST;
        loop {
            let mut solve = |stretch: Stretch| {
                let is_needed = !stretch.region.roots.is_empty();
                let solved = is_needed.then(|| self.memo.solve(&stretch.region.dag, &self.from.symbols)).transpose()?;
                Ok((stretch, solved))
            };
            let stretches = regions(self.from, block, &self.tensors, most);
            match stretches.into_iter().map(&mut solve).collect() {
                Err(_) if most > 1 => most /= 2,
                solved => return solved,
            }
        }
    }

    fn copy(&mut self, id: NodeId) {
        let Node { op, inputs, outputs, origin, .. } = self.from.node(id);
        self.to.origin = origin.clone();
        let inputs: Vec<ValueId> = inputs.iter().map(|v| self.moved[v]).collect();
        let types = outputs.iter().map(|v| self.from.ty(*v).clone()).collect();
        let made = self.to.push(op.clone(), &inputs, types);
        self.moved.extend(outputs.iter().copied().zip(self.to.node(made).outputs.clone()));
    }

    fn region(&mut self, region: &Region, solved: &Solved) {
        let mut outputs: Vec<Vec<ValueId>> = vec![];
        for step in &solved.steps {
            outputs.push(match &step.what {
                What::Leaf(k) => vec![self.moved[&region.leaves[*k]]],
                What::Op(op) => {
                    self.to.origin = self.origin(region, solved, step);
                    let inputs: Vec<ValueId> = step.args.iter().map(|(step, output)| outputs[*step][*output]).collect();
                    let made = self.to.push(op.clone(), &inputs, step.types.clone());
                    self.to.node(made).outputs.clone()
                }
            });
        }
        for (value, (step, output)) in region.roots.iter().zip(&solved.roots) {
            self.moved.insert(*value, outputs[*step][*output]);
        }
    }

    /// That of the value that a step computes, of several that of the first, with the label of all that it computes.
    fn origin(&mut self, region: &Region, solved: &Solved, step: &Step) -> Origin {
        let of = |source: &usize| self.from.def(region.sources[*source]).map(|(node, _)| node.origin.clone());
        let first = step.sources.iter().find_map(of).unwrap_or_default();
        let rules = step.rules.iter().map(ToString::to_string).collect();
        let choice = step.why.as_ref().map(|why| {
            self.to.choices.list.push(self.choice(region, solved, step, why));
            self.to.choices.list.len() - 1
        });
        Origin { what: self.label(region, solved, step), rules, choice, ..first }
    }

    /// Why a step is as it is, in words.
    fn choice(&self, region: &Region, solved: &Solved, step: &Step, why: &Why) -> Choice {
        let piece = |piece: &PieceNode| {
            let values = |sources: &[usize]| sources.iter().map(|source| region.sources[*source]).collect::<Vec<_>>();
            let stops = values(&piece.args).into_iter().collect();
            let what = self.named(&values(&piece.sources), stops);
            Piece { kernel: piece.kernel.clone(), what, rules: piece.rules.clone(), cost: piece.cost }
        };
        let rival = |rival: &RivalNode| Rival {
            kernel: piece(&rival.kernel),
            dearer: rival.dearer,
            beside: rival.beside.iter().map(piece).collect(),
        };
        let Why { cost, unfused, unfused_cost, rivals, more } = why;
        Choice {
            served: self.served(region, solved, step),
            cost: *cost,
            unfused: *unfused,
            unfused_cost: *unfused_cost,
            rivals: rivals.iter().map(rival).collect(),
            more: *more,
        }
    }

    /// The statements of what a step computes.
    fn served(&self, region: &Region, solved: &Solved, step: &Step) -> Vec<Rc<Served>> {
        let mut seen = self.stops(region, solved, step);
        let mut all: Vec<Rc<Served>> = vec![];
        let mut add = |node: &Node| {
            let Some(served) = &node.origin.served else { return };
            let key = |served: &Served| (served.path.clone(), served.function.clone(), served.number);
            if all.iter().all(|known| key(known) != key(served)) {
                all.push(served.clone());
            }
        };
        for source in &step.sources {
            seen.remove(&region.sources[*source]);
            self.visit(region.sources[*source], &mut seen, &mut add);
        }
        all
    }

    /// What the values are called that a step computes on the way from its arguments, in the order of the data.
    fn label(&self, region: &Region, solved: &Solved, step: &Step) -> String {
        let results: Vec<ValueId> = step.sources.iter().map(|source| region.sources[*source]).collect();
        self.named(&results, self.stops(region, solved, step))
    }

    /// The values of a step's arguments.
    fn stops(&self, region: &Region, solved: &Solved, step: &Step) -> BTreeSet<ValueId> {
        // A member of a launch that the graph never named has no value to stop at.
        let argument = |(number, output): &(usize, usize)| {
            let Step { what, sources, .. } = &solved.steps[*number];
            match what {
                What::Leaf(leaf) => region.leaves.get(*leaf).copied(),
                What::Op(_) => region.sources.get(*sources.get(*output)?).copied(),
            }
        };
        step.args.iter().filter_map(argument).collect()
    }

    /// What the values between `seen` and some results are called.
    fn named(&self, results: &[ValueId], mut seen: BTreeSet<ValueId>) -> String {
        let mut labels = vec![];
        for value in results {
            seen.remove(value);
            self.visit(*value, &mut seen, &mut |node| {
                let label = match node.origin.what.as_str() {
                    "contract" => "@",
                    "rows" | "constant" | "size" | "index" | "cast" => return,
                    what => what,
                };
                if labels.last() != Some(&label) {
                    labels.push(label);
                }
            });
        }
        labels.join(" · ")
    }

    /// The nodes that compute a value, in the order of the data, without views and without what was seen.
    fn visit<'s>(&'s self, value: ValueId, seen: &mut BTreeSet<ValueId>, each: &mut dyn FnMut(&'s Node)) {
        let Some((node, _)) = self.from.def(value).filter(|_| seen.insert(value)) else { return };
        node.inputs.iter().for_each(|input| self.visit(*input, seen, each));
        if !node.op.is_view() && !matches!(node.op, Op::Read(_) | Op::Repeat(_) | Op::Transpose(_) | Op::Broadcast(_)) {
            each(node);
        }
    }

    fn repeat(&mut self, id: NodeId) -> Result<(), Limit> {
        let from = self.from;
        let node = from.node(id);
        let Op::Repeat(repeat) = &node.op else { return Ok(()) };
        let body = from.block(repeat.body);
        let first_captured = repeat.carried + repeat.stacked;
        let outer: Vec<ValueId> = node.inputs.iter().map(|v| self.moved[v]).collect();
        let index = self.to.open_repeat(repeat.count.clone(), repeat.reversed);
        let mut inner = vec![index];
        inner.extend(outer[..repeat.carried].iter().map(|v| self.to.carry(*v)));
        inner.extend(outer[repeat.carried..first_captured].iter().map(|v| self.to.stack_in(*v)));
        inner.extend(&outer[first_captured..]);
        self.moved.extend(body.args.iter().copied().zip(inner));
        let (around, count) = (self.times, repeat.count.eval(&representative(&from.symbols)).unsigned_abs());
        self.times = around * count;
        self.block(repeat.body)?;
        self.times = around;
        let results: Vec<ValueId> = body.results.iter().map(|v| self.moved[v]).collect();
        let (carried, stacks) = results.split_at(repeat.carried);
        self.to.origin = node.origin.clone();
        let made = self.to.close_repeat(carried, stacks);
        self.moved.extend(node.outputs.iter().copied().zip(made));
        Ok(())
    }
}
