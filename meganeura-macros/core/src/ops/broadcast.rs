//! Repetition along axes of size 1 and along new leading axes.

use meganeura_shaders::dim::{Env, Shape, Symbols, broadcast};
use meganeura_shaders::reference::Tensor;

use super::eval::element;
use super::{Misfit, NotDifferentiable, Structural, Tape, one};
use crate::ir::{Type, ValueId};

/// The input repeated to a shape, by NumPy's rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Broadcast {
    /// The new shape.
    pub shape: Shape,
}

impl Structural for Broadcast {
    const NAME: &'static str = "broadcast";

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        let x = one(Self::NAME, inputs)?;
        match broadcast(&x.shape, &self.shape) {
            Some(shape) if shape == self.shape => Ok(shape),
            _ => {
                let (from, to) = (symbols.show_shape(&x.shape), symbols.show_shape(&self.shape));
                Err(Misfit(format!("{from} does not broadcast to {to}")))
            }
        }
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        Tensor::from_fn(&env.shape(&self.shape), |index| element(inputs[0], index))
    }

    /// The caller sums over what stretched.
    fn vjp(&self, _: usize, cotangent: ValueId, _: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        Ok(cotangent)
    }
}
