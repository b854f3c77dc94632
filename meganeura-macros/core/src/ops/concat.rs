//! Inputs one behind the other along the middle axis of `[outer, n, inner]`.

use meganeura_shaders::dim::{Dim, Env, Shape, Symbols};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::reference::Tensor;

use super::{Misfit, NotDifferentiable, Op, Slice, Structural, Tape, of_kernel, value_of};
use crate::ir::{Type, ValueId};

/// The inputs, at most [`meganeura_shaders::kernel::MAX_PARTS`], one behind the other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Concat {
    /// How many.
    pub parts: u8,
}

impl Structural for Concat {
    const NAME: &'static str = "concat";

    fn kernel(&self) -> Option<Kernel> {
        Some(Kernel::Concat(self.parts))
    }

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        of_kernel(&Kernel::Concat(self.parts), inputs, symbols)
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        value_of(&Kernel::Concat(self.parts), inputs, env)
    }

    fn vjp(&self, k: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        let from = (0..k).fold(Dim::from(0), |sum, other| &sum + &tape.shape(other)[1]);
        let to = &from + &tape.shape(k)[1];
        Ok(tape.graph().emit(Op::Slice(Slice { axis: 1, from, to }), &[cotangent]))
    }
}
