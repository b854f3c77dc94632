//! Picking, totalling and joining along any axis: the operations work on `[outer, n, inner]` or on the last axis, and
//! a view of the value makes it so.

use meganeura_shaders::dim::{Dim, Shape, product};
use meganeura_shaders::kernel::{MAX_PARTS, Scan};
use meganeura_shaders::prog::{Const, DType, Instr};

use super::{Graph, ValueId};
use crate::ops::{Broadcast, Concat, Gather, Op, RunningTotal, ScatterAdd, Transpose};

impl Graph {
    /// A number of an integer type, of shape `[]`.
    pub fn integer(&mut self, value: Const) -> ValueId {
        self.emit(Op::Instr(Instr::Const(value)), &[])
    }

    /// A dimension as u32, of shape `[]`.
    pub fn count(&mut self, dim: &Dim) -> ValueId {
        match dim.constant().map(u32::try_from) {
            Some(Ok(size)) => self.integer(Const::Uint(size)),
            _ => {
                let size = self.extent(dim);
                self.cast(DType::U32, size)
            }
        }
    }

    /// `0, 1, ..` as u32, of shape `[n]`.
    pub fn arange(&mut self, n: &Dim) -> ValueId {
        let zero = self.integer(Const::Uint(0));
        let zeros = self.broadcast(zero, &vec![n.clone()]);
        self.index(0, zeros)
    }

    /// The axis in the middle of `[outer, n, inner]`.
    fn around(&mut self, x: ValueId, axis: usize) -> ValueId {
        let shape = self.shape(x).clone();
        let (outer, inner) = (product(&shape[..axis]), product(&shape[axis + 1..]));
        self.reshape(x, vec![outer, shape[axis].clone(), inner])
    }

    /// `x[.., ids, ..]`: the axis of the rows that ids of any shape name becomes the axes of the ids.
    pub fn take(&mut self, x: ValueId, ids: ValueId, axis: usize) -> ValueId {
        let (shape, own) = (self.shape(x).clone(), self.shape(ids).clone());
        let (x, ids) = (self.around(x, axis), self.reshape(ids, vec![1.into(), product(&own), 1.into()]));
        let taken = self.emit(Op::Gather(Gather), &[x, ids]);
        self.reshape(taken, [&shape[..axis], &own, &shape[axis + 1..]].concat())
    }

    /// Ids of `[outer or 1, m, inner or 1]` for values of a shape; each axis of the ids is the values' or 1.
    fn ids_around(&mut self, ids: ValueId, shape: &[Dim], axis: usize) -> ValueId {
        let own = self.shape(ids).clone();
        // One number along some of several axes is repeated, since these are one axis for the kernel.
        let side = |own: &[Dim], shape: &[Dim]| -> Shape {
            if own.iter().all(Dim::is_one) { own.to_vec() } else { shape.to_vec() }
        };
        let wide =
            [side(&own[..axis], &shape[..axis]), vec![own[axis].clone()], side(&own[axis + 1..], &shape[axis + 1..])];
        let wide = self.broadcast(ids, &wide.concat());
        self.around(wide, axis)
    }

    /// `out[.., j, ..] = x[.., ids[.., j, ..], ..]`; each other axis of the ids is that of `x` or 1.
    pub fn take_along(&mut self, x: ValueId, ids: ValueId, axis: usize) -> ValueId {
        let mut shape = self.shape(x).clone();
        shape[axis] = self.shape(ids)[axis].clone();
        let (x, ids) = (self.around(x, axis), self.ids_around(ids, &shape, axis));
        let taken = self.emit(Op::Gather(Gather), &[x, ids]);
        self.reshape(taken, shape)
    }

    /// The sums of `values` at the indices along an axis of the given size that ids name.
    pub fn scatter_along(&mut self, values: ValueId, ids: ValueId, axis: usize, count: &Dim) -> ValueId {
        let mut shape = self.shape(values).clone();
        let (values, ids) = (self.around(values, axis), self.ids_around(ids, &shape, axis));
        let sums = self.emit(Op::ScatterAdd(ScatterAdd { count: count.clone() }), &[values, ids]);
        shape[axis] = count.clone();
        self.reshape(sums, shape)
    }

    /// The value with an axis last, worked on there and moved back; `build` keeps the number of axes.
    pub fn along_last(
        &mut self,
        x: ValueId,
        axis: usize,
        build: impl FnOnce(&mut Graph, ValueId) -> ValueId,
    ) -> ValueId {
        let rank = self.shape(x).len();
        if axis + 1 == rank {
            return build(self, x);
        }
        let perm: Vec<u8> = (0..rank).filter(|other| *other != axis).chain([axis]).map(|k| k as u8).collect();
        let moved = self.transpose(x, &perm);
        let result = build(self, moved);
        let back = Transpose { perm }.inverse();
        self.emit(Op::Transpose(back), &[result])
    }

    /// The running total along the last axis.
    pub fn running_total(&mut self, x: ValueId, scan: Scan) -> ValueId {
        self.emit(Op::RunningTotal(RunningTotal { scan }), &[x])
    }

    /// Values of one type one behind the other along an axis; all their other axes are equal.
    pub fn concat(&mut self, parts: &[ValueId], axis: usize) -> ValueId {
        if let [only] = parts {
            return *only;
        }
        let mut shape = self.shape(parts[0]).clone();
        let sizes = parts.iter().map(|part| self.shape(*part)[axis].clone());
        shape[axis] = sizes.fold(Dim::from(0), |sum, size| &sum + &size);
        let mut parts: Vec<ValueId> = parts.iter().map(|part| self.around(*part, axis)).collect();
        while parts.len() > 1 {
            let join = |graph: &mut Graph, some: &[ValueId]| match some {
                [only] => *only,
                some => graph.emit(Op::Concat(Concat { parts: some.len() as u8 }), some),
            };
            parts = parts.chunks(MAX_PARTS).map(|some| join(self, some)).collect();
        }
        self.reshape(parts[0], shape)
    }

    /// Each element along an axis `times` times over: those of one place behind each other, or all of them again.
    pub fn repeated(&mut self, x: ValueId, times: &Dim, axis: usize, each: bool) -> ValueId {
        let mut shape = self.shape(x).clone();
        let at = if each { axis + 1 } else { axis };
        let mut wide = shape.clone();
        wide.insert(at, Dim::from(1));
        let narrow = self.reshape(x, wide.clone());
        wide[at] = times.clone();
        let wide = self.emit(Op::Broadcast(Broadcast { shape: wide }), &[narrow]);
        shape[axis] = &shape[axis] * times;
        self.reshape(wide, shape)
    }
}
