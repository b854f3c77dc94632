//! A value that counts as a constant for gradients.

use meganeura_shaders::dim::{Env, Shape, Symbols};
use meganeura_shaders::reference::Tensor;

use super::{Misfit, NotDifferentiable, Structural, Tape, one};
use crate::ir::{Type, ValueId};

/// The input itself; no gradient flows back.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StopGradient;

impl Structural for StopGradient {
    const NAME: &'static str = "stop_gradient";

    fn is_flat(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Type], _: &Symbols) -> Result<Shape, Misfit> {
        Ok(one(Self::NAME, inputs)?.shape.clone())
    }

    fn eval(&self, inputs: &[&Tensor], _: &Env) -> Tensor {
        inputs[0].clone()
    }

    fn vjp(&self, _: usize, _: ValueId, _: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        Err(NotDifferentiable("what `stop_gradient` gives is a constant".into()))
    }
}
