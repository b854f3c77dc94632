//! Back into a graph: the same blocks, stores, outputs and loops, with the chosen steps of each region in between.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::region::{Region, Stretch, regions, tensors};
use super::saturate::Limit;
use super::solve::{Memo, Solved, Step, What};
use crate::ir::{BlockId, Graph, Node, NodeId, Origin, Output, ROOT, ValueId};
use crate::ops::Op;

/// Nodes of one region at first: four layers of a decoder with their gradients, each of which takes the search 30 ms.
const LARGEST: usize = 1_000;

struct Writer<'g> {
    from: &'g Graph,
    to: Graph,
    moved: BTreeMap<ValueId, ValueId>,
    tensors: BTreeSet<ValueId>,
    memo: &'g mut Memo,
    dump: Option<&'g mut String>,
}

pub(super) fn chosen(graph: &Graph, memo: &mut Memo, dump: Option<&mut String>) -> Result<Graph, Limit> {
    let mut to = Graph::new(graph.symbols.clone());
    to.stores = graph.stores.clone();
    to.checks = graph.checks.clone();
    let mut writer = Writer { from: graph, to, moved: BTreeMap::new(), tensors: tensors(graph), memo, dump };
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
    fn origin(&self, region: &Region, solved: &Solved, step: &Step) -> Origin {
        let of = |source: &usize| self.from.def(region.sources[*source]).map(|(node, _)| node.origin.clone());
        let first = step.sources.iter().find_map(of).unwrap_or_default();
        let rules = step.rules.iter().map(ToString::to_string).collect();
        Origin { what: self.label(region, solved, step), rules, ..first }
    }

    /// What the values are called that a step computes on the way from its arguments, in the order of the data.
    fn label(&self, region: &Region, solved: &Solved, step: &Step) -> String {
        // A member of a launch that the graph never named has no value to stop at.
        let argument = |(number, output): &(usize, usize)| {
            let Step { what, sources, .. } = &solved.steps[*number];
            match what {
                What::Leaf(leaf) => region.leaves.get(*leaf).copied(),
                What::Op(_) => region.sources.get(*sources.get(*output)?).copied(),
            }
        };
        let mut seen: BTreeSet<ValueId> = step.args.iter().filter_map(argument).collect();
        let mut labels = vec![];
        for source in &step.sources {
            let value = region.sources[*source];
            seen.remove(&value);
            self.name_all(value, &mut seen, &mut labels);
        }
        labels.join(" · ")
    }

    fn name_all<'s>(&'s self, value: ValueId, seen: &mut BTreeSet<ValueId>, labels: &mut Vec<&'s str>) {
        let Some((node, _)) = self.from.def(value).filter(|_| seen.insert(value)) else { return };
        node.inputs.iter().for_each(|input| self.name_all(*input, seen, labels));
        let silent =
            node.op.is_view() || matches!(node.op, Op::Read(_) | Op::Repeat(_) | Op::Transpose(_) | Op::Broadcast(_));
        let label = match node.origin.what.as_str() {
            "contract" => "@",
            "rows" | "constant" | "size" | "index" | "cast" => return,
            what => what,
        };
        if !silent && labels.last() != Some(&label) {
            labels.push(label);
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
        self.block(repeat.body)?;
        let results: Vec<ValueId> = body.results.iter().map(|v| self.moved[v]).collect();
        let (carried, stacks) = results.split_at(repeat.carried);
        self.to.origin = node.origin.clone();
        let made = self.to.close_repeat(carried, stacks);
        self.moved.extend(node.outputs.iter().copied().zip(made));
        Ok(())
    }
}
