//! The same elements in the same order under another shape.

use meganeura_shaders::dim::{Env, Shape, Symbols, product};
use meganeura_shaders::reference::Tensor;

use super::{Misfit, NotDifferentiable, Structural, Tape, one};
use crate::ir::{Type, ValueId};

/// The same elements under another shape.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reshape {
    /// The new shape.
    pub shape: Shape,
}

impl Structural for Reshape {
    const NAME: &'static str = "reshape";

    fn is_view(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        let x = one(Self::NAME, inputs)?;
        let (from, to) = (product(&x.shape), product(&self.shape));
        if from == to {
            return Ok(self.shape.clone());
        }
        let (from, to) = (symbols.show(&from), symbols.show(&to));
        let (old, new) = (symbols.show_shape(&x.shape), symbols.show_shape(&self.shape));
        Err(Misfit(format!("`reshape` from {old} ({from} elements) to {new} ({to} elements)")))
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        Tensor { shape: env.shape(&self.shape), data: inputs[0].data.clone() }
    }

    fn vjp(&self, _: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        let shape = tape.shape(0);
        Ok(tape.graph().reshape(cotangent, shape))
    }
}
