//! `x[a..b] = v`: the whole tensor again, with the part replaced. A choice by indices, so what is replaced gets no
//! gradient and what replaces it gets its own.

use meganeura_shaders::dim::{Dim, broadcast};
use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::{Const, DType, Instr};
use proc_macro2::Span;

use super::describe::Source;
use super::index::{AxisPart, Start};
use super::moving::MAX_PIECES;
use super::value::{Affine, Value};
use super::{Resolver, argument_name, describe, with_value};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::ops::{Broadcast, Op, Pad, Slice};
use crate::syntax::Assign;

impl<'a> Resolver<'a, '_> {
    /// What a tensor is after an assignment to it or to a part of it; `right` is the value of the right side.
    pub(super) fn assigned_value(&mut self, old: Value<'a>, assign: &'a Assign, right: Value<'a>) -> Value<'a> {
        let sides = |left: Value<'a>, right| ((left, Source::Name(&assign.name)), (right, Source::Expr(&assign.value)));
        let Some(indices) = &assign.index else {
            return match assign.operator {
                None => right,
                Some(operator) => {
                    let (left, right) = sides(old, right);
                    self.binary(operator, assign.span, left, right)
                }
            };
        };
        let parts = indices.iter().map(|index| self.part(index)).collect();
        let span = match indices.first() {
            Some(crate::syntax::Index::At(at)) => at.span,
            Some(crate::syntax::Index::Slice { span, .. }) => *span,
            None => assign.span,
        };
        let tensor = match old {
            Value::Tensor(id) => id,
            Value::Poison => return Value::Poison,
            other => {
                let found = self.show(&other);
                return self.fail(assign.name.span, diag::not_indexable(&found));
            }
        };
        self.at(assign.span);
        let what = describe::part_text(&assign.name.name, indices);
        let Some(parts) = self.axis_parts(span, &assign.name.name, what, tensor, parts) else { return Value::Poison };
        if let Some(part) = parts.iter().find(|part| part.ids.is_some()) {
            return self.fail(part.span, diag::assigned_ids());
        }
        if right.is_poison() {
            return Value::Poison;
        }
        self.at(assign.span);
        let right = match assign.operator {
            None => right,
            Some(operator) => {
                let Some(left) = self.take_parts(tensor, &parts) else { return Value::Poison };
                let (left, right) = sides(Value::Tensor(left), right);
                self.binary(operator, assign.span, left, right)
            }
        };
        let Some(right) = self.fitting(tensor, &parts, right, assign) else { return Value::Poison };
        self.at(assign.span);
        self.replaced(tensor, &parts, right, assign.span).map_or(Value::Poison, Value::Tensor)
    }

    /// The right side with every axis of the tensor: the size of the part, or 1 where it repeats.
    fn fitting(&mut self, old: ValueId, parts: &[AxisPart], right: Value<'a>, assign: &'a Assign) -> Option<ValueId> {
        let span = assign.value.span;
        let right = self.settled(right, span);
        let dtype = self.graph.ty(old).dtype;
        let value = self.constant_as(dtype, &right, &assign.name.name, span)?;
        let found = self.graph.ty(value).clone();
        let kept: Vec<Dim> = parts.iter().filter(|part| part.keep).map(|part| part.length.clone()).collect();
        let fits = broadcast(&kept, &found.shape).is_some_and(|shape| shape == kept);
        if found.dtype != dtype || !fits {
            let expected = crate::ir::Type { shape: kept, dtype };
            let (expected, shown) = (self.show_type(&expected), self.show_type(&found));
            let message = diag::assigned_part(&assign.name.name, &expected, &shown);
            self.report(span, with_value(message, &argument_name(&assign.value, "value"), &shown));
            return None;
        }
        let mut own = found.shape.iter().rev();
        let mut shape: Vec<Dim> = vec![];
        for part in parts.iter().rev() {
            let size = if part.keep { own.next().cloned() } else { None };
            shape.push(size.unwrap_or(Dim::from(1)));
        }
        shape.reverse();
        Some(self.graph.reshape(value, shape))
    }

    /// `right` has every axis, of the size of the part or 1.
    pub(super) fn replaced(&mut self, old: ValueId, parts: &[AxisPart], right: ValueId, span: Span) -> Option<ValueId> {
        let size = |value: ValueId, axis: usize, graph: &crate::ir::Graph| graph.shape(value)[axis].clone();
        // What a loop moves is placed row by row.
        let rows = parts
            .iter()
            .enumerate()
            .find(|(axis, part)| matches!(part.from, Start::Moving(_)) && !size(right, *axis, &self.graph).is_one());
        if let Some((axis, part)) = rows {
            let Start::Moving(from) = &part.from else { return None };
            let Some(count) = part.length.constant().filter(|count| *count <= MAX_PIECES) else {
                let length = self.show_size(&part.length);
                self.report(part.span, diag::moving_part(&length, MAX_PIECES));
                return None;
            };
            let mut value = old;
            for k in 0..count {
                let slice = Slice { axis: axis as u8, from: Dim::from(k), to: Dim::from(k + 1) };
                let row = self.graph.emit(Op::Slice(slice), &[right]);
                let from = Start::Moving(Affine { offset: &from.offset + &Dim::from(k), ..from.clone() });
                let one = |(at, part): (usize, &AxisPart)| {
                    let (from, length) = match at == axis {
                        true => (from.clone(), Dim::from(1)),
                        false => (part.from.clone(), part.length.clone()),
                    };
                    AxisPart { from, length, ids: None, ..*part }
                };
                let parts: Vec<AxisPart> = parts.iter().enumerate().map(one).collect();
                value = self.replaced(value, &parts, row, span)?;
            }
            return Some(value);
        }
        let shape = self.graph.shape(old).clone();
        let (mut value, mut mask) = (right, None);
        for (axis, part) in parts.iter().enumerate().filter(|(_, part)| !part.whole) {
            if let Start::Fixed(from) = &part.from
                && !size(value, axis, &self.graph).is_one()
                && size(value, axis, &self.graph) != shape[axis]
            {
                let pad = Pad { axis: axis as u8, before: from.clone(), total: shape[axis].clone() };
                value = self.graph.emit(Op::Pad(pad), &[value]);
            }
            let own = self.is_inside(old, axis, part, span)?;
            mask = Some(mask.map_or(own, |mask| self.graph.bin(Bin::And, mask, own)));
        }
        Some(match mask {
            Some(mask) => self.graph.select(mask, value, old),
            None if *self.graph.shape(value) == shape => value,
            None => self.graph.emit(Op::Broadcast(Broadcast { shape }), &[value]),
        })
    }

    /// Where the index along an axis lies in a part, shaped like `value`.
    fn is_inside(&mut self, value: ValueId, axis: usize, part: &AxisPart, span: Span) -> Option<ValueId> {
        let first = match &part.from {
            Start::Fixed(from) => self.number(from),
            Start::Moving(from) => match self.index_value(from, span) {
                Value::Tensor(index) => index,
                _ => return None,
            },
        };
        if part.length.is_one() {
            return Some(self.is_at(value, axis, first));
        }
        let end = match &part.from {
            Start::Fixed(from) => self.number(&(from + &part.length)),
            Start::Moving(_) => {
                let length = self.number(&part.length);
                self.graph.add(first, length)
            }
        };
        let rank = self.graph.shape(value).len();
        let own = self.graph.index((rank - 1 - axis) as u8, value);
        let from_first = self.graph.bin(Bin::Le, first, own);
        let to_end = self.graph.bin(Bin::Lt, own, end);
        Some(self.graph.bin(Bin::And, from_first, to_end))
    }

    /// A size as u32.
    fn number(&mut self, dim: &Dim) -> ValueId {
        match dim.constant() {
            Some(value) => self.graph.emit(Op::Instr(Instr::Const(Const::Uint(value as u32))), &[]),
            None => {
                let size = self.graph.extent(dim);
                self.graph.cast(DType::U32, size)
            }
        }
    }
}
