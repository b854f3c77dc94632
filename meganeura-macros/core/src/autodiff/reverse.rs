//! The walk from the last node to the first.
//!
//! The backward loop has the count of the forward one and the other direction. It carries the cotangents of carried
//! values and one running sum for each captured value, on top of what later uses left, and stacks the cotangents of
//! stacked inputs: row i is written by iteration i.

use std::collections::BTreeMap;

use meganeura_shaders::dim::Shape;

use super::primal::Level;
use super::{Absent, Cotangents, Policy};
use crate::ir::{Call, Derivative, Graph, Node, NodeId, Origin, ROOT, Repeat, ValueId};
use crate::ops::{Op, Tape};
use crate::prune::needed_by;

pub(super) struct Reverse<'g> {
    pub(super) graph: &'g mut Graph,
    pub(super) policy: Policy,
    /// What changes with a trained tensor and what the loss depends on. Values made on the way are constants.
    pub(super) active: Vec<bool>,
    /// The path of loops to the block that is being differentiated.
    pub(super) levels: Vec<Level>,
    pub(super) absent: Vec<Absent>,
}

impl<'g> Reverse<'g> {
    pub(super) fn new(graph: &'g mut Graph, policy: Policy, active: Vec<bool>) -> Reverse<'g> {
        let (primal, sources) = Default::default();
        let root = Level { forward: ROOT, node: None, backward: ROOT, primal, sources };
        Reverse { graph, policy, active, levels: vec![root], absent: vec![] }
    }

    fn is_active(&self, value: ValueId) -> bool {
        self.active.get(value.index()) == Some(&true)
    }

    /// Adds a part to the cotangent of a value, summed over the axes along which the value was stretched.
    fn add(&mut self, cotangents: &mut Cotangents, value: ValueId, part: ValueId) {
        let shape = self.graph.shape(value).clone();
        let part = self.graph.sum_to(part, &shape);
        let sum = cotangents.get(&value).map_or(part, |old| self.graph.add(*old, part));
        cotangents.insert(value, sum);
    }

    /// Leaves the cotangents of what the nodes read.
    pub(super) fn nodes(&mut self, nodes: &[NodeId], cotangents: &mut Cotangents) {
        for id in nodes.iter().rev() {
            let Node { op, inputs, outputs, origin, .. } = self.graph.node(*id).clone();
            let around = std::mem::replace(&mut self.graph.origin, Origin { backward: true, ..origin });
            match (&op, outputs.first().and_then(|output| cotangents.get(output)).copied()) {
                (Op::Repeat(repeat), _) => self.repeat(*id, repeat, &inputs, &outputs, cotangents),
                (Op::Call(Call { derivative: Some(derivative), .. }), Some(ct)) => {
                    self.call(&op, derivative, &inputs, &outputs, ct, cotangents);
                }
                (_, Some(ct)) => self.operation(&op, &inputs, outputs[0], ct, cotangents),
                (_, None) => {}
            }
            self.graph.origin = around;
        }
    }

    fn operation(&mut self, op: &Op, inputs: &[ValueId], output: ValueId, ct: ValueId, cotangents: &mut Cotangents) {
        for k in (0..inputs.len()).filter(|k| self.is_active(inputs[*k])).collect::<Vec<_>>() {
            match op.vjp(k, ct, &mut Primals { reverse: self, inputs, output }) {
                Ok(Some(part)) => self.add(cotangents, inputs[k], part),
                Ok(None) => {}
                Err(reason) => self.has_none(reason.0),
            }
        }
    }

    fn has_none(&mut self, reason: String) {
        let absent = Absent { origin: Origin { backward: false, ..self.graph.origin.clone() }, reason };
        if !self.absent.contains(&absent) {
            self.absent.push(absent);
        }
    }

    /// The stated derivative over stand-ins of what it reads for the inputs that are active.
    fn call(
        &mut self,
        op: &Op,
        derivative: &Derivative,
        inputs: &[ValueId],
        outputs: &[ValueId],
        ct: ValueId,
        cotangents: &mut Cotangents,
    ) {
        let active: Vec<usize> = (0..inputs.len()).filter(|k| self.is_active(inputs[*k])).collect();
        for k in active.iter().filter(|k| !derivative.inputs.contains(k)) {
            self.has_none(format!("`{}` has no derivative by input {k}", op.name()));
        }
        let block = self.graph.block(derivative.block).clone();
        let wanted = derivative.inputs.iter().zip(&block.results).filter(|(k, _)| active.contains(k));
        let wanted: Vec<(usize, ValueId)> = wanted.map(|(k, result)| (*k, *result)).collect();
        let roots: Vec<ValueId> = wanted.iter().map(|(_, result)| *result).collect();
        let live = needed_by(self.graph, derivative.block, &roots);
        let level = self.levels.len() - 1;
        let mut map = BTreeMap::new();
        for (k, arg) in block.args.iter().enumerate().filter(|(_, arg)| live[arg.index()]) {
            let value = inputs.iter().chain(outputs).nth(k).map_or(ct, |value| self.primal(level, *value));
            map.insert(*arg, value);
        }
        let is_live = |v: &ValueId| live[v.index()];
        for id in &block.nodes {
            let node = self.graph.node(*id);
            if node.outputs.iter().any(is_live) {
                let inputs: Vec<ValueId> = node.inputs.iter().map(|v| map[v]).collect();
                self.graph.copy_node(*id, &inputs, &mut map);
            }
        }
        for (k, result) in wanted {
            self.add(cotangents, inputs[k], map[&result]);
        }
    }

    fn repeat(
        &mut self,
        id: NodeId,
        repeat: &Repeat,
        inputs: &[ValueId],
        outputs: &[ValueId],
        cotangents: &mut Cotangents,
    ) {
        let body = self.graph.block(repeat.body).clone();
        let active: Vec<usize> = (0..inputs.len()).filter(|k| self.is_active(body.args[1 + k])).collect();
        if active.is_empty() || !outputs.iter().any(|output| cotangents.contains_key(output)) {
            return;
        }
        let rows = repeat.carried..repeat.carried + repeat.stacked;
        let mut running = self.seeds(&active, repeat, inputs, outputs, cotangents);
        let index = self.graph.open_repeat(repeat.count.clone(), !repeat.reversed);
        running.values_mut().for_each(|value| *value = self.graph.carry(*value));
        let mut inner = Cotangents::new();
        for (k, result) in body.results.iter().enumerate() {
            let part = match cotangents.get(&outputs[k]) {
                _ if k < repeat.carried => running.get(&k).copied(),
                stack => stack.map(|stack| self.graph.stack_in(*stack)),
            };
            if let Some(part) = part {
                self.add(&mut inner, *result, part);
            }
        }
        let (primal, sources) = (BTreeMap::from([(body.args[0], index)]), BTreeMap::new());
        let backward = self.graph.current();
        self.levels.push(Level { forward: repeat.body, node: Some(id), backward, primal, sources });
        let mut args = body.args.clone();
        if self.policy == Policy::Checkpoint {
            let (nodes, map) = self.compute_again(&body.nodes, &body.args);
            args.iter_mut().for_each(|arg| *arg = map[arg]);
            inner = inner.into_iter().map(|(value, ct)| (map[&value], ct)).collect();
            self.nodes(&nodes, &mut inner);
        } else {
            self.nodes(&body.nodes, &mut inner);
        }
        // Of a captured value the sum goes on; the cotangent of a carried value is replaced.
        let (mut next, mut stacks) = (vec![], vec![]);
        for k in &active {
            let part = inner.get(&args[1 + k]).copied();
            match running.get(k) {
                Some(sum) if *k >= repeat.carried => next.push(part.map_or(*sum, |part| self.graph.add(*sum, part))),
                running => {
                    let shape = self.graph.shape(body.args[1 + k]).clone();
                    let part = part.unwrap_or_else(|| self.graph.fill(0.0, &shape));
                    if running.is_some() { &mut next } else { &mut stacks }.push(part);
                }
            }
        }
        let parts = self.close([next, stacks].concat());
        let (stacked, running): (Vec<usize>, Vec<usize>) = active.iter().partition(|k| rows.contains(k));
        for (k, part) in running.into_iter().chain(stacked).zip(parts) {
            if self.is_active(inputs[k]) {
                self.add(cotangents, inputs[k], part);
            }
        }
    }

    /// What the backward loop carries starts as: of a carried value the cotangent of its last version, of a captured
    /// one the sum so far, which is taken out because the loop gives it back.
    fn seeds(
        &mut self,
        active: &[usize],
        repeat: &Repeat,
        inputs: &[ValueId],
        outputs: &[ValueId],
        cotangents: &mut Cotangents,
    ) -> BTreeMap<usize, ValueId> {
        let rows = repeat.carried..repeat.carried + repeat.stacked;
        let mut seeds = BTreeMap::new();
        for k in active.iter().filter(|k| !rows.contains(k)) {
            let seed = match outputs[..repeat.carried].get(*k) {
                Some(output) => cotangents.get(output).copied(),
                None => cotangents.remove(&inputs[*k]),
            };
            let shape = self.graph.shape(inputs[*k]).clone();
            seeds.insert(*k, seed.unwrap_or_else(|| self.graph.fill(0.0, &shape)));
        }
        seeds
    }

    /// Ends the backward loop: its sources become values of the block around it.
    fn close(&mut self, results: Vec<ValueId>) -> Vec<ValueId> {
        let (Some(level), Some(mut open)) = (self.levels.pop(), self.graph.open.pop()) else {
            unreachable!("a loop is open")
        };
        let outer = self.levels.len() - 1;
        if let Some(repeat) = &mut open.repeat {
            for (source, arg) in repeat.stacked.iter_mut().chain(&mut repeat.captured) {
                if let Some(forward) = level.sources.get(arg) {
                    *source = self.primal(outer, *forward);
                }
            }
        }
        self.graph.finish(open, results)
    }
}

/// Answers a derivative's questions at the innermost level.
struct Primals<'r, 'g> {
    reverse: &'r mut Reverse<'g>,
    inputs: &'r [ValueId],
    output: ValueId,
}

impl Tape for Primals<'_, '_> {
    fn graph(&mut self) -> &mut Graph {
        self.reverse.graph
    }

    fn input(&mut self, k: usize) -> ValueId {
        self.reverse.primal(self.reverse.levels.len() - 1, self.inputs[k])
    }

    fn shape(&self, k: usize) -> Shape {
        self.reverse.graph.shape(self.inputs[k]).clone()
    }

    fn output(&mut self) -> ValueId {
        self.reverse.primal(self.reverse.levels.len() - 1, self.output)
    }
}
