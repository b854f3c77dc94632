//! Elements picked by ids along the middle axis of `[outer, n, inner]`.

use meganeura_shaders::dim::{Env, Shape, Symbols};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::reference::Tensor;

use super::{Misfit, NotDifferentiable, Op, ScatterAdd, Structural, Tape, of_kernel, value_of};
use crate::ir::{Type, ValueId};

/// `out[o, j, i] = x[o, ids[o, j, i], i]`; ids of shape `[outer or 1, m, inner or 1]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gather;

impl Structural for Gather {
    const NAME: &'static str = "gather";

    fn kernel(&self) -> Option<Kernel> {
        Some(Kernel::Gather)
    }

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        of_kernel(&Kernel::Gather, inputs, symbols)
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        value_of(&Kernel::Gather, inputs, env)
    }

    fn vjp(&self, _: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        let (count, ids) = (tape.shape(0)[1].clone(), tape.input(1));
        Ok(tape.graph().emit(Op::ScatterAdd(ScatterAdd { count }), &[cotangent, ids]))
    }
}
