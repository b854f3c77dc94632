//! Layouts of values, and the views that are another reading of the same memory.

use meganeura_shaders::dim::{Dim, product};
use meganeura_shaders::schedule::{ALIGN, Buffer, BufferKind, ELEMENT, Item, Lead, Operand, Place, Slot};

use super::Lower;
use crate::ir::{Graph, Node, Repeat, ValueId};
use crate::ops::{Op, Slice};

/// Memory for one value: its padded axes and all its bytes, unused rows too.
#[derive(Clone, PartialEq)]
pub(super) struct Layout {
    pub(super) lead: Vec<Lead>,
    pub(super) bytes: Dim,
}

impl Layout {
    pub(super) fn view(&self, base: &Place) -> Place {
        Place { lead: self.lead.clone(), ..base.clone() }
    }
}

/// A value that must lie in the memory that starts at `base` when its block ends.
pub(super) struct Want {
    pub(super) value: ValueId,
    pub(super) base: Place,
    pub(super) layout: Layout,
}

/// Bytes of a dense value.
pub(super) fn dense_bytes(shape: &[Dim]) -> Dim {
    &product(shape) * &Dim::from(ELEMENT)
}

/// Whether the result has the input's elements in the input's order, under another shape perhaps.
pub(super) fn keeps_order(graph: &Graph, node: &Node) -> bool {
    let shape = |value: &ValueId| graph.shape(*value);
    match &node.op {
        Op::Reshape(_) => true,
        Op::Transpose(transpose) => {
            let from = shape(&node.inputs[0]);
            let moved: Vec<u8> = transpose.perm.iter().copied().filter(|k| !from[usize::from(*k)].is_one()).collect();
            moved.is_sorted()
        }
        Op::Broadcast(_) => product(shape(&node.inputs[0])) == product(shape(&node.outputs[0])),
        _ => false,
    }
}

/// Whether the result is a stretch of the input's memory: no step.
pub(super) fn is_view(graph: &Graph, node: &Node) -> bool {
    match &node.op {
        Op::Slice(slice) => graph.shape(node.inputs[0])[..usize::from(slice.axis)].iter().all(Dim::is_one),
        _ => keeps_order(graph, node),
    }
}

fn is_stack(op: &Op, output: usize) -> bool {
    matches!(op, Op::Repeat(repeat) if output >= repeat.carried)
}

impl Lower<'_> {
    pub(super) fn buffer(&mut self, name: &str, kind: BufferKind, bytes: Dim) -> Place {
        self.out.buffers.push(Buffer { name: name.into(), kind, bytes });
        Place { buffer: self.out.buffers.len() - 1, offset: Dim::default(), slots: vec![], lead: vec![] }
    }

    pub(super) fn arena(&mut self, bytes: Dim) -> Place {
        let name = format!("t{}", self.out.buffers.len());
        self.buffer(&name, BufferKind::Arena { owner: self.path.last().copied() }, bytes)
    }

    /// The first `loops` axes are rows at whole lines, the rest is dense.
    pub(super) fn padded(&mut self, shape: &[Dim], loops: usize) -> Layout {
        let row = dense_bytes(&shape[loops..]);
        let mut bytes = &self.out.symbols.ceil_div(&row, ALIGN) * &Dim::from(ALIGN);
        let mut lead = Vec::new();
        for count in shape[..loops].iter().rev() {
            lead.insert(0, Lead { first: Dim::default(), count: count.clone(), stride: bytes.clone() });
            bytes = &bytes * count;
        }
        Layout { lead, bytes }
    }

    /// Depends on the graph only, so both sides of an aim agree on it beforehand.
    pub(super) fn layout(&mut self, value: ValueId) -> Layout {
        let graph = self.graph;
        let Some((Node { op: Op::Repeat(repeat), .. }, k)) =
            graph.def(value).filter(|(node, k)| is_stack(&node.op, *k))
        else {
            return self.padded(graph.shape(value), 0);
        };
        let result = graph.block(repeat.body).results[k];
        let (row, slots, first) = match self.carrying(repeat, result) {
            Some((_, is_arg)) => {
                let first = if is_arg { repeat.position_in() } else { repeat.position_out() };
                (self.padded(graph.shape(result), 0), &repeat.count + &Dim::from(1), first)
            }
            None => (self.layout(result), repeat.count.clone(), 0),
        };
        let (count, stride) = (repeat.count.clone(), row.bytes.clone());
        let lead = [vec![Lead { first: Dim::from(first), count, stride }], row.lead].concat();
        Layout { lead, bytes: &row.bytes * &slots }
    }

    /// The carried value whose slots hold a stack, and whether the stack is of its arguments.
    pub(super) fn carrying(&self, repeat: &Repeat, result: ValueId) -> Option<(usize, bool)> {
        let body = self.graph.block(repeat.body);
        let ends = |k: usize| [(body.args[1 + k], true), (body.results[k], false)];
        let found = |k: usize| ends(k).into_iter().find(|(v, _)| *v == result).map(|(_, is_arg)| (k, is_arg));
        (0..repeat.carried).find_map(found)
    }

    pub(super) fn root(&self, mut value: ValueId, through: fn(&Graph, &Node) -> bool) -> ValueId {
        while let Some((node, _)) = self.graph.def(value).filter(|(node, _)| through(self.graph, node)) {
            value = node.inputs[0];
        }
        value
    }

    /// Lets the definition of `value` write to `base`, if it is a step or a loop and the layout is the same.
    pub(super) fn aim(&mut self, value: ValueId, base: &Place, layout: &Layout) {
        let root = self.root(value, keeps_order);
        let makes = |node: &Node| !is_view(self.graph, node) && !matches!(node.op, Op::Read(_));
        if self.graph.def(root).is_some_and(|(node, _)| makes(node)) && self.layout(root) == *layout {
            self.aims.entry(root).or_insert_with(|| base.clone());
        }
    }

    /// Where the value lies; an index is put into memory first.
    pub(super) fn memory(&mut self, value: ValueId, items: &mut Vec<Item>) -> Place {
        match &self.places[&value] {
            Operand::Memory(place) => place.clone(),
            Operand::Index(_) => match self.packed.get(&value) {
                Some(place) => place.clone(),
                None => self.fresh_copy(value, items, "index"),
            },
        }
    }

    /// The value without padding between rows: as it lies, if that can be proven, else a copy.
    pub(super) fn dense(&mut self, value: ValueId, items: &mut Vec<Item>) -> Operand {
        let Operand::Memory(mut place) = self.places[&value].clone() else { return self.places[&value].clone() };
        let shape = self.graph.shape(value);
        let mut row = dense_bytes(&shape[place.lead.len()..]);
        let is_packed = place.lead.iter().rev().all(|Lead { count, stride, .. }| {
            let fits = *stride == row || count.is_one();
            row = &row * count;
            fits
        });
        if is_packed {
            for (depth, Lead { first, stride, .. }) in std::mem::take(&mut place.lead).into_iter().enumerate() {
                if shape[..=depth].iter().all(Dim::is_one) {
                    place.slots.push(Slot { base: first, index: None, parity: false, stride });
                } else {
                    place.offset = &place.offset + &(&first * &stride);
                }
            }
            return Operand::Memory(place);
        }
        if let Some(packed) = self.packed.get(&value) {
            return Operand::Memory(packed.clone());
        }
        Operand::Memory(self.fresh_copy(value, items, "pack"))
    }

    /// A dense copy, found again by later readers.
    pub(super) fn fresh_copy(&mut self, value: ValueId, items: &mut Vec<Item>, why: &str) -> Place {
        let layout = self.padded(self.graph.shape(value), 0);
        let fresh = self.arena(layout.bytes);
        self.copy(value, &fresh, items, why);
        self.packed.insert(value, fresh.clone());
        fresh
    }

    /// The value with aligned rows, for a loop to walk over.
    pub(super) fn rows(&mut self, value: ValueId, items: &mut Vec<Item>) -> Place {
        let (place, shape) = (self.memory(value, items), self.graph.shape(value));
        if !place.lead.is_empty() {
            return place;
        }
        // What lies before must be whole rows: places are told apart by their rows.
        let row = dense_bytes(&shape[1..]);
        if row.is_multiple_of(ALIGN)
            && let Some(first) = place.offset.div(&row)
        {
            let rows = Lead { first, count: shape[0].clone(), stride: row };
            return Place { offset: Dim::default(), lead: vec![rows], ..place };
        }
        let layout = self.padded(shape, 1);
        let spread = layout.view(&self.arena(layout.bytes.clone()));
        self.copy(value, &spread, items, "spread");
        spread
    }

    /// The same elements under another shape; padded rows stay where the shape keeps their axes.
    pub(super) fn reshaped(&mut self, from: ValueId, to: ValueId, items: &mut Vec<Item>) -> Operand {
        let operand = self.places[&from].clone();
        if let Operand::Memory(place) = &operand {
            let rows = place.lead.len();
            let (from, to) = (self.graph.shape(from), self.graph.shape(to));
            if to.len() >= rows && to[..rows] == from[..rows] {
                return operand;
            }
        }
        self.dense(from, items)
    }

    /// A range of an axis before which all axes are 1.
    pub(super) fn sliced(&mut self, from: ValueId, to: ValueId, slice: &Slice, items: &mut Vec<Item>) -> Operand {
        let (shape, axis) = (self.graph.shape(from), usize::from(slice.axis));
        let mut place = self.memory(from, items);
        match place.lead.get_mut(axis) {
            Some(rows) => {
                rows.first = &rows.first + &slice.from;
                rows.count = self.graph.shape(to)[axis].clone();
            }
            None => place.offset = &place.offset + &(&slice.from * &dense_bytes(&shape[axis + 1..])),
        }
        Operand::Memory(place)
    }
}
