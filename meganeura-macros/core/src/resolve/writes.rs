//! `mean = ..` of a buffer or a state: what a call leaves in a tensor that is not trained.
//!
//! Later reads see the new value, and the entry has one output for the tensor. Buffers change in training steps alone: in
//! every other call an assignment to one is checked and has no effect. A loop writes the rows that it owns: they become one stack.

use meganeura_shaders::dim::{Dim, broadcast};
use meganeura_shaders::schedule::Role;
use proc_macro2::Span;

use super::Resolver;
use super::index::{AxisPart, Start};
use super::value::{LoopId, Row, Value};
use crate::diag::resolve as diag;
use crate::errors::At;
use crate::ir::{Output, ValueId};
use crate::ops::{Broadcast, Op};
use crate::syntax::{Assign, TensorRole};

/// Rows of a tensor.
pub(super) type Rows = (usize, Vec<Row>);

/// An assignment to a buffer or a state.
pub(super) struct Written {
    pub(super) index: usize,
    pub(super) rows: Vec<Row>,
    pub(super) at: At,
    pub(super) role: TensorRole,
}

impl<'a> Resolver<'a, '_> {
    pub(super) fn assign_buffer(&mut self, index: usize, assign: &'a Assign) {
        let right = self.expression(&assign.value);
        let (name, span) = (assign.name.name.as_str(), assign.name.span);
        let rows = self.frame().layer.rows.clone();
        self.at(span);
        let old = self.read(index, &rows);
        let value = self.assigned_value(Value::Tensor(old), assign, right);
        let value = self.settled(value, assign.value.span);
        let shape = self.graph.shape(old).clone();
        let dtype = self.graph.ty(old).dtype;
        let role = self.tensors[index].role;
        let what = super::tensors::word(role);
        let Some(value) = self.constant_as(dtype, &value, name, assign.value.span) else { return };
        let found = self.graph.ty(value).clone();
        if found.dtype != dtype || broadcast(&shape, &found.shape).is_none_or(|wider| wider != shape) {
            let (expected, found) = (self.show_type(&self.graph.ty(old).clone()), self.show_type(&found));
            return self.report(assign.value.span, diag::assigned_buffer(what, name, &expected, &found));
        }
        let owns = |id: LoopId| rows.contains(&Row::Each(id));
        if !self.loops.iter().all(|open| owns(open.id)) {
            return self.report(span, diag::buffer_in_loop(what, name));
        }
        let earlier = self.written.iter().find(|other| other.index == index && overlap(&other.rows, &rows));
        if let Some(earlier) = earlier {
            let line = earlier.at.span.start().line;
            return self.report(span, diag::assigned_twice(what, name, line));
        }
        let place = self.place(span);
        self.written.push(Written { index, rows: rows.clone(), at: place, role });
        self.depends_on_mode |= role == TensorRole::Buffer;
        if role == TensorRole::Buffer && !self.training || value == old {
            return;
        }
        let value = match found.shape == shape {
            true => value,
            false => self.graph.emit(Op::Broadcast(Broadcast { shape }), &[value]),
        };
        self.changed.insert(index);
        self.store_rows(index, &rows, value);
    }

    /// The rows have this value from here on, and so has what they belong to.
    fn store_rows(&mut self, index: usize, rows: &[Row], value: ValueId) {
        // What was read through other rows of the same arrays may have changed with it.
        self.reads.retain(|(other, path), _| *other != index || !path.starts_with(rows));
        self.reads.insert((index, rows.to_vec()), value);
        let Some((last, outer)) = rows.split_last() else { return };
        let (from, count) = match *last {
            Row::Each(id) => {
                self.stacked.push((id, (index, rows.to_vec())));
                return;
            }
            Row::At(at) => (at, 1),
            Row::Part(from, count) => (from, count),
        };
        let whole = self.read(index, outer);
        let shape = self.graph.shape(whole).clone();
        let right = match last {
            Row::At(_) => {
                let shape = [&[Dim::from(1)], &shape[1..]].concat();
                self.graph.reshape(value, shape)
            }
            _ => value,
        };
        let part = |axis: usize| match axis {
            0 => (Dim::from(from), Dim::from(count)),
            _ => (Dim::from(0), shape[axis].clone()),
        };
        let span = Span::call_site();
        let parts: Vec<AxisPart> = (0..shape.len())
            .map(|axis| {
                let (from, length) = part(axis);
                AxisPart { from: Start::Fixed(from), length, keep: true, span, whole: axis > 0, ids: None }
            })
            .collect();
        if let Some(new) = self.replaced(whole, &parts, right, span) {
            self.store_rows(index, outer, new);
            self.reads.insert((index, rows.to_vec()), value);
        }
    }

    /// The rows that the innermost loop has written, in order.
    pub(super) fn written_by(&self, id: LoopId) -> Vec<Rows> {
        self.stacked.iter().filter(|(by, _)| *by == id).map(|(_, rows)| rows.clone()).collect()
    }

    /// The loop has ended, and all rows together are this value.
    pub(super) fn store_stack(&mut self, id: LoopId, (index, rows): &Rows, stack: ValueId) {
        self.stacked.retain(|(by, own)| *by != id || own.0 != *index || own.1 != *rows);
        if let Some((_, outer)) = rows.split_last() {
            self.store_rows(*index, outer, stack);
        }
    }

    /// One output for each buffer that the entry leaves changed.
    pub(super) fn update_outputs(&mut self) {
        for index in std::mem::take(&mut self.changed) {
            let value = self.read(index, &[]);
            let tensor = &self.tensors[index].tensor;
            let (name, loops) = (format!("new {}", tensor.name), tensor.loops);
            self.graph.output(Output { role: Role::Update(index), name, value, loops });
        }
    }
}

/// Whether two ways to pick rows of one tensor may meet.
fn overlap(a: &[Row], b: &[Row]) -> bool {
    !a.iter().zip(b).any(|rows| matches!(rows, (Row::At(a), Row::At(b)) if a != b))
}
