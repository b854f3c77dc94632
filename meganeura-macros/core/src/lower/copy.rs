//! Copies: movements of the graph, and what lowering itself must move. Strides are in elements.

use meganeura_shaders::dim::{Dim, product};
use meganeura_shaders::kernel::{Copy, CopyAxis, Kernel};
use meganeura_shaders::prog::Prog;
use meganeura_shaders::schedule::{ELEMENT, Item, Member, Operand, Place};

use super::Lower;
use crate::ir::{Node, ValueId};
use crate::ops::Op;

/// A place whose rows start at the first: what lies before is part of the offset.
fn from_first_row(place: &Place) -> Place {
    let mut place = place.clone();
    for rows in &mut place.lead {
        place.offset = &place.offset + &(&std::mem::take(&mut rows.first) * &rows.stride);
    }
    place
}

/// Elements between neighbours along each axis.
fn strides(place: &Place, shape: &[Dim]) -> Vec<Dim> {
    let stride = |axis: usize| match place.lead.get(axis) {
        Some(rows) => match rows.stride.div(&Dim::from(ELEMENT)) {
            Some(stride) => stride,
            None => unreachable!("rows start at whole lines"),
        },
        None => product(&shape[axis + 1..]),
    };
    (0..shape.len()).map(stride).collect()
}

/// Two axes are one where a step of the outer is a whole run of the inner; axes of size 1 go.
fn merged(axes: Vec<CopyAxis>) -> Vec<CopyAxis> {
    let mut merged: Vec<CopyAxis> = Vec::new();
    for axis in axes {
        if axis.window.is_none() && axis.extent.is_one() {
            continue;
        }
        if let Some(outer) = merged.last_mut()
            && outer.window.is_none()
            && axis.window.is_none()
            && outer.source == &axis.source * &axis.extent
            && outer.target == &axis.target * &axis.extent
        {
            *outer = CopyAxis { extent: &outer.extent * &axis.extent, ..axis };
        } else {
            merged.push(axis);
        }
    }
    merged
}

impl Lower<'_> {
    /// The value once more, at `write`.
    pub(super) fn copy(&mut self, value: ValueId, write: &Place, items: &mut Vec<Item>, why: &str) {
        let shape = self.graph.shape(value);
        match self.places[&value].clone() {
            Operand::Index(_) => self.copy_index(value, write, items, why),
            Operand::Memory(read) => {
                let (source, target) = (strides(&read, shape), strides(write, shape));
                let axis = |k: usize| CopyAxis {
                    extent: shape[k].clone(),
                    source: source[k].clone(),
                    target: target[k].clone(),
                    window: None,
                };
                let copy = Copy { axes: merged((0..shape.len()).map(axis).collect()), from: Dim::default() };
                self.push_copy(value, &read, copy, (value, write), Some(why), items);
            }
        }
    }

    fn copy_index(&mut self, value: ValueId, write: &Place, items: &mut Vec<Item>, why: &str) {
        let ty = self.graph.ty(value);
        let reads = vec![(self.places[&value].clone(), ty.shape.clone(), ty.dtype)];
        let (kernel, write) = (Kernel::Rows(Prog::identity()), write.clone());
        let member = Member { kernel, reads, write, shape: ty.shape.clone(), dtype: ty.dtype };
        self.push_step(vec![member], Some(why), items);
    }

    fn push_copy(
        &mut self,
        from: ValueId,
        read: &Place,
        copy: Copy,
        (to, write): (ValueId, &Place),
        why: Option<&str>,
        items: &mut Vec<Item>,
    ) {
        let (source, target) = (self.graph.ty(from), self.graph.ty(to));
        let member = Member {
            kernel: Kernel::Copy(copy),
            reads: vec![(Operand::Memory(from_first_row(read)), source.shape.clone(), source.dtype)],
            write: from_first_row(write),
            shape: target.shape.clone(),
            dtype: target.dtype,
        };
        self.push_step(vec![member], why, items);
    }

    /// A node that moves elements: they come from the source as it lies, padded or not.
    pub(super) fn movement(&mut self, node: &Node, items: &mut Vec<Item>) {
        let (from, to) = (node.inputs[0], node.outputs[0]);
        let read = self.memory(from, items);
        let (source_shape, shape) = (self.graph.shape(from), self.graph.shape(to));
        let layout = self.padded(shape, 0);
        let write = self.aims.get(&to).cloned().unwrap_or_else(|| self.arena(layout.bytes));
        let (source, target) = (strides(&read, source_shape), strides(&write, shape));
        let mut first = Dim::default();
        let mut axes: Vec<CopyAxis> = (0..shape.len())
            .map(|k| CopyAxis {
                extent: shape[k].clone(),
                source: source.get(k).cloned().unwrap_or_default(),
                target: target[k].clone(),
                window: None,
            })
            .collect();
        match &node.op {
            Op::Slice(slice) => first = &slice.from * &source[usize::from(slice.axis)],
            Op::Transpose(transpose) => {
                for (axis, k) in axes.iter_mut().zip(&transpose.perm) {
                    axis.source = source[usize::from(*k)].clone();
                }
            }
            Op::Pad(pad) => {
                let axis = usize::from(pad.axis);
                axes[axis].window = Some((pad.before.clone(), source_shape[axis].clone()));
            }
            Op::Broadcast(_) => {
                let added = shape.len() - source_shape.len();
                for (k, axis) in axes.iter_mut().enumerate() {
                    let own = k.checked_sub(added).filter(|own| source_shape[*own] == shape[k]);
                    axis.source = own.map(|own| source[own].clone()).unwrap_or_default();
                }
            }
            _ => unreachable!("not a movement"),
        }
        self.places.insert(to, Operand::Memory(write.clone()));
        let copy = Copy { axes: merged(axes), from: first };
        self.push_copy(from, &read, copy, (to, &write), None, items);
    }
}
