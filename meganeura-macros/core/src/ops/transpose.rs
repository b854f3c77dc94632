//! Axes in another order.

use meganeura_shaders::dim::{Env, Shape, Symbols};
use meganeura_shaders::reference::Tensor;

use super::eval::element;
use super::{Misfit, NotDifferentiable, Structural, Tape, one};
use crate::ir::{Type, ValueId};

/// Axis k of the result is axis `perm[k]` of the input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Transpose {
    /// A permutation of the axes.
    pub perm: Vec<u8>,
}

impl Transpose {
    /// The permutation that undoes this one.
    pub fn inverse(&self) -> Transpose {
        let mut perm = vec![0; self.perm.len()];
        self.perm.iter().enumerate().for_each(|(k, axis)| perm[usize::from(*axis)] = k as u8);
        Transpose { perm }
    }
}

impl Structural for Transpose {
    const NAME: &'static str = "transpose";

    fn infer(&self, inputs: &[&Type], _: &Symbols) -> Result<Shape, Misfit> {
        let x = one(Self::NAME, inputs)?;
        let mut sorted = self.perm.clone();
        sorted.sort_unstable();
        if sorted.into_iter().map(usize::from).ne(0..x.shape.len()) {
            return Err(Misfit(format!("{:?} is no order of {} axes", self.perm, x.shape.len())));
        }
        Ok(self.perm.iter().map(|axis| x.shape[usize::from(*axis)].clone()).collect())
    }

    fn eval(&self, inputs: &[&Tensor], _: &Env) -> Tensor {
        let shape: Vec<i64> = self.perm.iter().map(|axis| inputs[0].shape[usize::from(*axis)]).collect();
        let mut source = vec![0; shape.len()];
        Tensor::from_fn(&shape, |index| {
            self.perm.iter().zip(index).for_each(|(axis, i)| source[usize::from(*axis)] = *i);
            element(inputs[0], &source)
        })
    }

    fn vjp(&self, _: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        Ok(tape.graph().transpose(cotangent, &self.inverse().perm))
    }
}
