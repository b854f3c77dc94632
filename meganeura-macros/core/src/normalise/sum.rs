//! Sums over axes: as sums over the last axis, or over all axes but the last.
//!
//! What a sum ends with is summed as rows, what it begins with as columns, and only axes in the middle move (a copy).
//! An axis that is merely repeated is a factor.

use meganeura_shaders::dim::{Dim, product};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::{Const, DType, Instr, Prog};

use super::Normaliser;
use super::lazy::{Core, Lazy};
use crate::ir::{Type, ValueId};
use crate::ops::{Op, Transpose};

impl Normaliser<'_> {
    pub(super) fn sum(&mut self, axes: &[u8], x: &Lazy, ty: Type) -> Lazy {
        let core = if x.ty.dtype == DType::F32 { x.core.clone() } else { Core::Value(self.force(x)) };
        let shape = self.core_shape(&core);
        let missing = x.ty.shape.len() - shape.len();
        let axes = axes.iter().map(|axis| usize::from(*axis));
        let is_repeated = |axis: usize| axis < missing || shape[axis - missing] != x.ty.shape[axis];
        let (repeated, stored): (Vec<usize>, Vec<usize>) = axes.partition(|axis| is_repeated(*axis));
        let stored: Vec<usize> =
            stored.into_iter().map(|axis| axis - missing).filter(|k| !shape[*k].is_one()).collect();
        let core = match core {
            Core::Value(value) if !stored.is_empty() => Core::Value(self.summed(value, stored)),
            other => other,
        };
        let times = product(repeated.iter().map(|axis| &x.ty.shape[*axis]));
        Lazy { core: self.times(core, &times), ty }
    }

    fn times(&mut self, core: Core, times: &Dim) -> Core {
        match (&core, times.constant()) {
            (_, Some(1)) => core,
            (Core::Number(Instr::Const(value)), Some(times)) => {
                Core::Number(Instr::Const(Const::float(value.value() * times as f64)))
            }
            (_, constant) => {
                let size = match constant {
                    Some(times) => Instr::Const(Const::float(times as f64)),
                    None => Instr::Extent(times.clone()),
                };
                let (value, size) = (self.core(&core), self.core(&Core::Number(size)));
                Core::Value(self.to.emit(Op::Instr(Instr::Bin(Bin::Mul, 0, 1)), &[value, size]))
            }
        }
    }

    /// The sum over axes none of which is of size 1; they become 1.
    fn summed(&mut self, value: ValueId, axes: Vec<usize>) -> ValueId {
        let shape = self.to.shape(value).clone();
        let rank = shape.len();
        let mut kept = shape.clone();
        axes.iter().for_each(|axis| kept[*axis] = Dim::from(1));
        let counts = |axis: &usize| !shape[*axis].is_one();
        let last = (0..rank).rev().find(counts).unwrap_or(0);
        let first_kept = (0..rank).filter(counts).find(|axis| !axes.contains(axis));

        let Some(first_kept) = first_kept else { return self.total(value, kept) };
        if axes.contains(&last) {
            // Several trailing axes are one row.
            let in_row = |axis: &usize| axes.contains(axis) || shape[*axis].is_one();
            let first = (0..=last).rev().take_while(in_row).last().unwrap_or(last);
            let row = product(&shape[first..]);
            let rows = self.to.reshape(value, [&shape[..first], &[row]].concat());
            let sums = self.to.row_sum(rows);
            let mut shape = shape.clone();
            shape[first..].iter_mut().for_each(|size| *size = Dim::from(1));
            let rest: Vec<usize> = axes.into_iter().filter(|axis| *axis < first).collect();
            let sums = self.to.reshape(sums, shape);
            return if rest.is_empty() { sums } else { self.summed(sums, rest) };
        }
        let (leading, rest): (Vec<usize>, Vec<usize>) = axes.iter().partition(|axis| **axis < first_kept);
        if !leading.is_empty() {
            let (rows, columns) = (product(&shape[..first_kept]), product(&shape[first_kept..]));
            let is_flat = first_kept + 1 == rank;
            let flat = if is_flat { value } else { self.to.reshape(value, vec![rows, columns]) };
            let sums = self.to.emit(Op::Kernel(Kernel::ColumnSum(Prog::identity())), &[flat]);
            let mut shape = shape.clone();
            shape[..first_kept].iter_mut().for_each(|size| *size = Dim::from(1));
            let sums = self.to.reshape(sums, shape);
            return if rest.is_empty() { sums } else { self.summed(sums, rest) };
        }
        let perm: Vec<u8> =
            (0..rank).filter(|axis| !axes.contains(axis)).chain(axes.clone()).map(|k| k as u8).collect();
        let moved = self.to.emit(Op::Transpose(Transpose { perm }), &[value]);
        let sums = self.summed(moved, (rank - axes.len()..rank).collect());
        self.to.reshape(sums, kept)
    }

    /// The sum of everything: rows first, since what comes before may run in that kernel, then one row of their sums.
    fn total(&mut self, value: ValueId, kept: Vec<Dim>) -> ValueId {
        let shape = self.to.shape(value).clone();
        let rows = product(&shape[..shape.len() - 1]);
        let by_rows = if shape.last().is_some_and(Dim::is_one) { value } else { self.to.row_sum(value) };
        let sum = match rows.is_one() {
            true => by_rows,
            false => {
                let row = self.to.reshape(by_rows, vec![Dim::from(1), rows]);
                self.to.row_sum(row)
            }
        };
        self.to.reshape(sum, kept)
    }
}
