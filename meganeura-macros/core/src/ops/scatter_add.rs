//! Sums of the values that ids send to the same place of the middle axis of `[outer, n, inner]`.

use meganeura_shaders::dim::{Dim, Env, Shape, Symbols};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::reference::Tensor;

use super::{Gather, Misfit, NotDifferentiable, Op, Structural, Tape, of_kernel, value_of};
use crate::ir::{Type, ValueId};

/// `out[o, k, i] = Σ values[o, j, i]` over all j with `ids[o, j, i] = k`, in the order of j.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScatterAdd {
    /// The size of the middle axis of the result.
    pub count: Dim,
}

impl ScatterAdd {
    fn of(&self) -> Kernel {
        Kernel::ScatterAdd(self.count.clone())
    }
}

impl Structural for ScatterAdd {
    const NAME: &'static str = "scatter_add";

    fn kernel(&self) -> Option<Kernel> {
        Some(self.of())
    }

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        of_kernel(&self.of(), inputs, symbols)
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        value_of(&self.of(), inputs, env)
    }

    fn vjp(&self, _: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        let ids = tape.input(1);
        Ok(tape.graph().emit(Op::Gather(Gather), &[cotangent, ids]))
    }
}
