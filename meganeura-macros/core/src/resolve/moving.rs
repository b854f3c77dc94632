//! Numbers that change with a loop: their arithmetic, their values, and the parts of tensors that they pick.
//!
//! A part that moves evenly with the loop and does not overlap the next one is a row of a stacked input, which is a view
//! wherever the layout allows; what is made inside of the loop, or runs backwards, is picked by comparing indices. Both
//! are exact and have exact gradients.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::{Const, DType, Instr};
use proc_macro2::Span;

use super::Resolver;
use super::arithmetic::Operand;
use super::value::{Affine, LoopId, Value};
use crate::diag::resolve as diag;
use crate::ir::{ROOT, ValueId};
use crate::ops::{Op, Pad, Slice, Sum};
use crate::syntax::BinaryOp;

/// Rows that one part may be put together from.
pub(super) const MAX_PIECES: i64 = 64;

impl<'a> Resolver<'a, '_> {
    /// How many loops are around an open one.
    pub(super) fn level(&self, id: LoopId) -> Option<usize> {
        self.loops.iter().position(|open| open.id == id)
    }

    /// The number as a u32 value of the graph.
    pub(super) fn index_value(&mut self, affine: &Affine, span: Span) -> Value<'a> {
        let Some(level) = self.level(affine.id) else { return Value::Poison };
        let (least, _) = self.extremes(affine, level);
        if self.graph.symbols.bounds(&least).0 < 0 {
            let least = self.show_size(&least);
            return self.fail(span, diag::negative_index(&least));
        }
        self.at(span);
        let mut value = self.loops[level].index;
        let steps = affine.factor.unsigned_abs() as u32;
        if steps != 1 {
            let steps = self.uint(steps);
            value = self.graph.bin(Bin::Mul, value, steps);
        }
        let is_negative = affine.offset.constant().is_some_and(|offset| offset < 0);
        let offset = if is_negative { &Dim::from(0) - &affine.offset } else { affine.offset.clone() };
        let offset = match offset.constant() {
            Some(0) if affine.factor > 0 => return Value::Tensor(value),
            Some(offset) => self.uint(offset as u32),
            None => {
                let offset = self.graph.extent(&offset);
                self.graph.cast(DType::U32, offset)
            }
        };
        Value::Tensor(match (affine.factor < 0, is_negative) {
            (true, _) => self.graph.sub(offset, value),
            (_, true) => self.graph.sub(value, offset),
            _ => self.graph.add(value, offset),
        })
    }

    fn uint(&mut self, value: u32) -> ValueId {
        self.graph.emit(Op::Instr(Instr::Const(Const::Uint(value))), &[])
    }

    /// The same value, as one of the graph if it changes with a loop.
    pub(super) fn settled(&mut self, value: Value<'a>, span: Span) -> Value<'a> {
        match value {
            Value::Index(affine) => self.index_value(&affine, span),
            value => value,
        }
    }

    /// The least and the greatest value of an open loop's number.
    pub(super) fn extremes(&self, affine: &Affine, level: usize) -> (Dim, Dim) {
        let last = &self.loops[level].count - &Dim::from(1);
        let end = &affine.offset + &(&last * &Dim::from(affine.factor));
        if affine.factor < 0 { (end, affine.offset.clone()) } else { (affine.offset.clone(), end) }
    }

    /// Sums, differences and multiples of numbers that change with one loop; nothing where the result is another kind.
    pub(super) fn affine(&self, op: BinaryOp, left: &Value<'a>, right: &Value<'a>) -> Option<Value<'a>> {
        let sum = |a: &Affine, sign: i64, b: &Affine| {
            let sum = Affine {
                id: a.id,
                factor: a.factor.checked_add(sign.checked_mul(b.factor)?)?,
                offset: &a.offset + &(&Dim::from(sign) * &b.offset),
            };
            let size = |sum: &Affine| Value::Size(sum.offset.clone());
            Some(if sum.factor == 0 { size(&sum) } else { Value::Index(sum) })
        };
        let fixed = |id: LoopId, dim: &Dim| Affine { id, factor: 0, offset: dim.clone() };
        let sign = if op == BinaryOp::Subtract { -1 } else { 1 };
        let value = match (op, left, right) {
            (BinaryOp::Add | BinaryOp::Subtract, Value::Index(a), Value::Index(b)) if a.id == b.id => sum(a, sign, b),
            (BinaryOp::Add | BinaryOp::Subtract, Value::Index(a), Value::Size(dim)) => sum(a, sign, &fixed(a.id, dim)),
            (BinaryOp::Add | BinaryOp::Subtract, Value::Size(dim), Value::Index(b)) => sum(&fixed(b.id, dim), sign, b),
            (BinaryOp::Multiply, Value::Index(a), Value::Size(dim))
            | (BinaryOp::Multiply, Value::Size(dim), Value::Index(a)) => {
                let by = dim.constant().filter(|by| *by != 0)?;
                let offset = &a.offset * &Dim::from(by);
                Some(Value::Index(Affine { id: a.id, factor: a.factor.checked_mul(by)?, offset }))
            }
            _ => None,
        }?;
        let most = |dim: &Dim| {
            let (low, high) = self.graph.symbols.bounds(dim);
            low.unsigned_abs().max(high.unsigned_abs())
        };
        let is_small = |affine: &Affine| affine.factor.unsigned_abs() < 1 << 24 && most(&affine.offset) < 1 << 40;
        match &value {
            Value::Index(affine) if !is_small(affine) => None,
            _ => Some(value),
        }
    }

    /// Operands without numbers that change with a loop.
    pub(super) fn settled_operand(&mut self, (value, source): Operand<'a>) -> Operand<'a> {
        (self.settled(value, source.span()), source)
    }

    /// `length` elements of one axis from a number on that changes with a loop; the axis stays.
    pub(super) fn moving_part(
        &mut self,
        value: ValueId,
        axis: usize,
        from: &Affine,
        length: &Dim,
        span: Span,
    ) -> Option<ValueId> {
        let level = self.level(from.id)?;
        let is_outside = self.home(value) <= level;
        let count = length.constant();
        if is_outside && from.factor > 0 && count.is_some_and(|count| count <= from.factor) {
            return Some(self.row_of_parts(value, axis, from, count.unwrap_or(1), level));
        }
        if count == Some(1) {
            let index = match self.index_value(from, span) {
                Value::Tensor(index) => index,
                _ => return None,
            };
            return Some(self.picked(value, axis, index));
        }
        if self.graph.ty(value).dtype == DType::Bool {
            let number = self.graph.cast(DType::U32, value);
            let part = self.moving_part(number, axis, from, length, span)?;
            return Some(self.graph.cast(DType::Bool, part));
        }
        // Parts that overlap, or that the loop itself makes, from pieces that need not.
        let step = if is_outside && from.factor > 0 { from.factor } else { 1 };
        let pieces = count.map(|count| (count + step - 1) / step).filter(|pieces| *pieces <= MAX_PIECES);
        let (Some(count), Some(pieces)) = (count, pieces) else {
            let length = self.show_size(length);
            self.report(span, diag::moving_part(&length, MAX_PIECES));
            return None;
        };
        let mut sum = None;
        for piece in 0..pieces {
            let before = piece * step;
            let from = Affine { offset: &from.offset + &Dim::from(before), ..from.clone() };
            let part = self.moving_part(value, axis, &from, &Dim::from(step.min(count - before)), span)?;
            let pad = Pad { axis: axis as u8, before: Dim::from(before), total: length.clone() };
            let part = self.graph.emit(Op::Pad(pad), &[part]);
            sum = Some(sum.map_or(part, |sum| self.graph.add(sum, part)));
        }
        sum
    }

    /// How many loops are around the block of a value.
    fn home(&self, value: ValueId) -> usize {
        let block = self.graph.value(value).block;
        if block == ROOT {
            return 0;
        }
        self.graph.open.iter().position(|open| open.body == block).map_or(usize::MAX, |at| at + 1)
    }

    /// Row i of a stacked input is elements `factor · i + offset ..` of the axis, at most `factor` of them.
    fn row_of_parts(&mut self, value: ValueId, axis: usize, from: &Affine, length: i64, level: usize) -> ValueId {
        let mut inner = self.graph.open.split_off(level).into_iter();
        let shape = self.graph.shape(value).clone();
        let count = self.loops[level].count.clone();
        let (factor, at) = (Dim::from(from.factor), axis as u8);
        let end = &(&from.offset + &(&(&count - &Dim::from(1)) * &factor)) + &Dim::from(length);
        let mut source = value;
        if from.offset != Dim::from(0) || end != shape[axis] {
            source = self.graph.emit(Op::Slice(Slice { axis: at, from: from.offset.clone(), to: end }), &[source]);
        }
        if length < from.factor {
            let pad = Pad { axis: at, before: Dim::from(0), total: &count * &factor };
            source = self.graph.emit(Op::Pad(pad), &[source]);
        }
        let split = [&shape[..axis], &[count, factor], &shape[axis + 1..]].concat();
        source = self.graph.reshape(source, split);
        if length < from.factor {
            let slice = Slice { axis: at + 1, from: Dim::from(0), to: Dim::from(length) };
            source = self.graph.emit(Op::Slice(slice), &[source]);
        }
        if axis > 0 {
            let perm: Vec<u8> = [at].into_iter().chain((0..=shape.len() as u8).filter(|k| *k != at)).collect();
            source = self.graph.transpose(source, &perm);
        }
        self.graph.open.extend(inner.next());
        let row = self.graph.stack_in(source);
        self.graph.open.extend(inner);
        row
    }

    /// The element of one axis whose index this is; the axis stays, with size 1.
    fn picked(&mut self, value: ValueId, axis: usize, index: ValueId) -> ValueId {
        let ty = self.graph.ty(value).clone();
        let rank = ty.shape.len();
        let hit = self.is_at(value, axis, index);
        if ty.dtype == DType::F32 {
            let zero = self.graph.constant(0.0);
            let chosen = self.graph.select(hit, value, zero);
            return self.graph.emit(Op::Sum(Sum { axes: vec![axis as u8] }), &[chosen]);
        }
        // Of integers the maximum over a last axis: the others count as the least.
        let (value, least) = match ty.dtype {
            DType::I32 => (value, Const::Int(i32::MIN)),
            DType::U32 => (value, Const::Uint(0)),
            DType::Bool | DType::F32 => (self.graph.cast(DType::U32, value), Const::Uint(0)),
        };
        let least = self.graph.emit(Op::Instr(Instr::Const(least)), &[]);
        let chosen = self.graph.select(hit, value, least);
        let mut perm: Vec<u8> = (0..rank as u8).filter(|k| usize::from(*k) != axis).collect();
        perm.push(axis as u8);
        let chosen = self.graph.transpose(chosen, &perm);
        let most = self.graph.row_max(chosen);
        let mut shape = ty.shape;
        shape[axis] = Dim::from(1);
        let most = self.graph.reshape(most, shape);
        if ty.dtype == DType::Bool { self.graph.cast(DType::Bool, most) } else { most }
    }

    /// Where the index along an axis is the given one, shaped like `value`.
    pub(super) fn is_at(&mut self, value: ValueId, axis: usize, index: ValueId) -> ValueId {
        let rank = self.graph.shape(value).len();
        let own = self.graph.index((rank - 1 - axis) as u8, value);
        self.graph.bin(Bin::Eq, own, index)
    }
}
