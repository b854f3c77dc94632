//! Zeros before and after one axis: what a slice was taken from, as far as its cotangent knows.

use meganeura_shaders::dim::{Dim, Env, Shape, Symbols};
use meganeura_shaders::reference::Tensor;

use super::eval::element;
use super::{Misfit, NotDifferentiable, Op, Slice, Structural, Tape, one};
use crate::ir::{Type, ValueId};

/// Zeros around one axis.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pad {
    /// Which axis.
    pub axis: u8,
    /// Zeros before the input.
    pub before: Dim,
    /// The size of the axis in the result.
    pub total: Dim,
}

impl Structural for Pad {
    const NAME: &'static str = "pad";

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        let x = one(Self::NAME, inputs)?;
        let axis = usize::from(self.axis);
        let fits = |size: &Dim| symbols.bounds(&(&self.total - &(&self.before + size))).1 >= 0;
        if !x.shape.get(axis).is_some_and(fits) {
            let total = symbols.show(&self.total);
            return Err(Misfit(format!("{} does not fit into {total}", symbols.show_shape(&x.shape))));
        }
        let mut shape = x.shape.clone();
        shape[axis] = self.total.clone();
        Ok(shape)
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        let axis = usize::from(self.axis);
        let (before, mut shape, size) = (self.before.eval(env), inputs[0].shape.clone(), inputs[0].shape[axis]);
        shape[axis] = self.total.eval(env);
        let mut source = vec![0; shape.len()];
        Tensor::from_fn(&shape, |index| {
            source.copy_from_slice(index);
            source[axis] -= before;
            if (0..size).contains(&source[axis]) { element(inputs[0], &source) } else { 0.0 }
        })
    }

    fn vjp(&self, _: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        let to = &self.before + &tape.shape(0)[usize::from(self.axis)];
        Ok(tape.graph().emit(Op::Slice(Slice { axis: self.axis, from: self.before.clone(), to }), &[cotangent]))
    }
}
