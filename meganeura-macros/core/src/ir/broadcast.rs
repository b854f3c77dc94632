//! From a shape to a larger one and back: repetition, and the sums that undo it.

use meganeura_shaders::dim::{Dim, Shape};

use super::{Graph, ValueId};
use crate::ops::{Broadcast, Op, Sum};

impl Graph {
    /// `x` repeated to a shape by NumPy's rule.
    pub fn broadcast(&mut self, x: ValueId, shape: &Shape) -> ValueId {
        if self.shape(x) == shape { x } else { self.emit(Op::Broadcast(Broadcast { shape: shape.clone() }), &[x]) }
    }

    /// A float constant of any shape.
    pub fn fill(&mut self, value: f64, shape: &Shape) -> ValueId {
        let constant = self.constant(value);
        self.broadcast(constant, shape)
    }

    /// The sum over axes (ascending), which become 1; over the last one alone it is a row's.
    pub fn sum(&mut self, x: ValueId, axes: &[u8]) -> ValueId {
        match axes {
            [] => x,
            [axis] if usize::from(*axis) + 1 == self.shape(x).len() => self.row_sum(x),
            _ => self.emit(Op::Sum(Sum { axes: axes.to_vec() }), &[x]),
        }
    }

    /// The sum over all axes, of shape `[]`.
    pub fn sum_all(&mut self, x: ValueId) -> ValueId {
        let axes: Vec<u8> = (0..self.shape(x).len() as u8).collect();
        let sum = self.sum(x, &axes);
        self.reshape(sum, vec![])
    }

    /// What [`Graph::broadcast`] from `shape` made of each element, summed: the cotangent of an operand that stretched.
    pub fn sum_to(&mut self, x: ValueId, shape: &Shape) -> ValueId {
        let from = self.shape(x).clone();
        let added = from.len() - shape.len();
        let stretched = |axis: &usize| *axis < added || shape[axis - added].is_one() && !from[*axis].is_one();
        let axes: Vec<u8> = (0..from.len()).filter(stretched).map(|axis| axis as u8).collect();
        let sum = self.sum(x, &axes);
        self.reshape(sum, shape.clone())
    }

    /// A dimension as f32, of shape `[]`: a constant where it is one.
    pub fn size(&mut self, dim: &Dim) -> ValueId {
        match dim.constant() {
            Some(size) => self.constant(size as f64),
            None => self.extent(dim),
        }
    }
}
