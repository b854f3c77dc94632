//! Memory of loops. Carried values live at the positions `0..=count` between iterations. The mode says which memory a
//! position is:
//!
//! | mode | slots | when (first that holds) |
//! |---|---|---|
//! | `Stack` | all `count + 1` | the argument or the result is also a stack: the stack is a view of the slots |
//! | `Alternate` | 2, `position & 1` | somebody may still read the argument once its successor is written |
//! | `InPlace` | 1 | else |

use meganeura_shaders::dim::Dim;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::schedule::{Item, Lead, Loop, LoopId, Operand, Place, Slot};

use super::place::{Want, is_view};
use super::{Lower, LowerError};
use crate::ir::{Node, NodeId, Repeat, ValueId};
use crate::ops::Op;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Mode {
    InPlace,
    Alternate,
    Stack,
}

pub(super) struct Carried {
    mode: Mode,
    base: Place,
    stride: Dim,
}

impl Carried {
    fn at(&self, position: Dim, index: Option<LoopId>) -> Place {
        let mut place = self.base.clone();
        if self.mode != Mode::InPlace {
            let parity = self.mode == Mode::Alternate;
            place.slots.push(Slot { base: position, index, parity, stride: self.stride.clone() });
        }
        place
    }
}

impl<'g> Lower<'g> {
    fn mode(&self, repeat: &Repeat, k: usize) -> Mode {
        let body = self.graph.block(repeat.body);
        let (arg, result) = (body.args[1 + k], body.results[k]);
        let is_arg = |v: &ValueId| self.root(*v, is_view) == arg;
        if body.results[repeat.carried..].iter().any(|v| *v == arg || *v == result) {
            return Mode::Stack;
        }
        if body.results.iter().enumerate().any(|(j, v)| j != k && is_arg(v)) {
            return Mode::Alternate;
        }
        // Where the successor is written: its node; nowhere when nothing changes; at the end when it is copied.
        // A loop writes its result from its own initialisation on, which may be long before the loop.
        let Some((made, output)) = self.graph.value(self.root(result, is_view)).def else { return Mode::InPlace };
        let writer = self.graph.node(made);
        let read_at = |position: &usize| {
            let node = self.graph.node(body.nodes[*position]);
            !is_view(self.graph, node) && node.inputs.iter().any(is_arg)
        };
        let last_read = (0..body.nodes.len()).rev().find(read_at);
        let write = body.nodes.iter().position(|id| *id == made);
        let safe = match (last_read, write) {
            (None, _) => true,
            (Some(_), _) if matches!(writer.op, Op::Repeat(_)) => false,
            (Some(read), Some(write)) => read < write || read == write && self.writes_over(writer, output, &is_arg),
            (Some(_), None) => false,
        };
        if safe { Mode::InPlace } else { Mode::Alternate }
    }

    /// Whether output `output` of a launch may lie over the operand: its own kernel reads it element for element, the
    /// others of the launch not at all. Shapes are equal then, so a view of the operand is all of it.
    fn writes_over(&self, node: &Node, output: usize, is_operand: &dyn Fn(&ValueId) -> bool) -> bool {
        let kernels: &[Kernel] = match &node.op {
            Op::Kernel(kernel) => std::slice::from_ref(kernel),
            Op::Launch(kernels) => kernels,
            _ => return false,
        };
        let mut rest = node.inputs.as_slice();
        kernels.iter().enumerate().all(|(member, kernel)| {
            let (own, others) = rest.split_at(kernel.arity());
            rest = others;
            let shapes: Vec<_> = own.iter().map(|v| self.graph.shape(*v)).collect();
            let result = self.graph.shape(node.outputs[member]);
            own.iter()
                .enumerate()
                .filter(|(_, v)| is_operand(v))
                .all(|(k, _)| member == output && kernel.is_elementwise_in(k, &shapes, result))
        })
    }

    /// Memory for what a loop carries and stacks; later loops of the block come first, since the result of one may be
    /// the initial value of the next.
    pub(super) fn allocate(&mut self, repeat: &'g Repeat, nodes: &[NodeId], position: usize, wants: &[Want]) {
        let node = self.graph.node(nodes[position]);
        let results = &self.graph.block(repeat.body).results;
        let homes: Vec<_> = results.iter().map(|result| self.carrying(repeat, *result)).collect();
        let mut carried = Vec::new();
        for (k, init) in node.inputs[..repeat.carried].iter().enumerate() {
            let (mode, layout) = (self.mode(repeat, k), self.padded(self.graph.shape(*init), 0));
            let in_slots = |j: &usize| *j >= repeat.carried && homes[*j].is_some_and(|(home, _)| home == k);
            let wanted = match mode {
                Mode::Stack => (0..results.len()).filter(in_slots).find_map(|j| self.aims.get(&node.outputs[j])),
                Mode::InPlace => self.aims.get(&node.outputs[k]),
                Mode::Alternate => None,
            };
            let slots = match mode {
                Mode::InPlace => Dim::from(1),
                Mode::Alternate => Dim::from(2),
                Mode::Stack => &repeat.count + &Dim::from(1),
            };
            let base = wanted.cloned().unwrap_or_else(|| self.arena(&layout.bytes * &slots));
            let memory = Carried { mode, base, stride: layout.bytes.clone() };
            if mode == Mode::Stack || self.ends_at(*init, nodes, position, repeat.carried, wants) {
                self.aim(*init, &memory.at(repeat.first_position(), None), &layout);
            }
            carried.push(memory);
        }
        let mut stacks = Vec::new();
        for (output, home) in node.outputs.iter().zip(&homes).skip(repeat.carried) {
            let layout = self.layout(*output);
            stacks.push(match home {
                Some((k, _)) => carried[*k].base.clone(),
                None => self.aims.get(output).cloned().unwrap_or_else(|| self.arena(layout.bytes)),
            });
        }
        self.loops.insert(nodes[position], (carried, stacks));
    }

    /// Nobody reads the memory of `value` once the loop at `position`, which starts from it, has begun.
    fn ends_at(&self, value: ValueId, nodes: &[NodeId], position: usize, carried: usize, wants: &[Want]) -> bool {
        let root = self.root(value, is_view);
        let reads = |v: &ValueId| self.root(*v, is_view) == root;
        let inputs = |id: &NodeId| self.graph.node(*id).inputs.as_slice();
        let views = |id: &NodeId| is_view(self.graph, self.graph.node(*id));
        let later = nodes[position + 1..].iter().filter(|id| !views(id)).flat_map(inputs);
        !later.chain(&inputs(&nodes[position])[carried..]).chain(wants.iter().map(|want| &want.value)).any(reads)
    }

    pub(super) fn repeat(&mut self, id: NodeId, repeat: &'g Repeat, items: &mut Vec<Item>) -> Result<(), LowerError> {
        let Node { inputs, outputs, .. } = self.graph.node(id);
        let body = self.graph.block(repeat.body);
        let origin = self.origin.clone();
        let (carried, stacks) = self.loops.remove(&id).unwrap_or_default();
        for (init, memory) in inputs.iter().zip(&carried) {
            let layout = self.padded(self.graph.shape(*init), 0);
            let want = Want { value: *init, base: memory.at(repeat.first_position(), None), layout };
            self.settle(&want, items, "start");
        }
        let (outer, index) = (self.path.last().copied(), self.out.loops.len());
        self.out.loops.push(Loop { count: repeat.count.clone(), reversed: repeat.reversed, outer });
        self.places.insert(body.args[0], Operand::Index(index));
        for (k, (input, arg)) in inputs.iter().zip(&body.args[1..]).enumerate() {
            let operand = if k < repeat.carried {
                Operand::Memory(carried[k].at(Dim::from(repeat.position_in()), Some(index)))
            } else if k < repeat.carried + repeat.stacked {
                let mut place = self.rows(*input, items);
                let Lead { first, stride, .. } = place.lead.remove(0);
                place.slots.push(Slot { base: first, index: Some(index), parity: false, stride });
                Operand::Memory(place)
            } else {
                self.places[input].clone()
            };
            self.places.insert(*arg, operand);
        }
        let mut wants = Vec::new();
        for (result, memory) in body.results.iter().zip(&carried) {
            let layout = self.padded(self.graph.shape(*result), 0);
            let base = memory.at(Dim::from(repeat.position_out()), Some(index));
            wants.push(Want { value: *result, base, layout });
        }
        for (result, base) in body.results[repeat.carried..].iter().zip(&stacks) {
            if self.carrying(repeat, *result).is_none() {
                let (mut base, layout) = (base.clone(), self.layout(*result));
                let (index, stride) = (Some(index), layout.bytes.clone());
                base.slots.push(Slot { base: Dim::default(), index, parity: false, stride });
                wants.push(Want { value: *result, base, layout });
            }
        }
        self.path.push(index);
        let items_of_body = self.block(repeat.body, &wants)?;
        self.path.pop();
        self.origin = origin;
        if !items_of_body.is_empty() {
            items.push(Item::Loop { id: index, body: items_of_body });
        }
        for (k, output) in outputs.iter().enumerate() {
            let place = match k.checked_sub(repeat.carried) {
                None => carried[k].at(repeat.last_position(), None),
                Some(stack) => self.layout(*output).view(&stacks[stack]),
            };
            self.places.insert(*output, Operand::Memory(place));
        }
        Ok(())
    }
}
