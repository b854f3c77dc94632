//! Running totals along the last axis.

use meganeura_shaders::dim::{Env, Shape, Symbols};
use meganeura_shaders::kernel::{Kernel, Scan};
use meganeura_shaders::reference::Tensor;

use super::{Misfit, NotDifferentiable, Op, Structural, Tape, of_kernel, value_of};
use crate::ir::{Type, ValueId};

/// The total of the elements up to each.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunningTotal {
    /// Which total.
    pub scan: Scan,
}

impl Structural for RunningTotal {
    const NAME: &'static str = "running_total";

    fn kernel(&self) -> Option<Kernel> {
        Some(Kernel::Scan(self.scan))
    }

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        of_kernel(&Kernel::Scan(self.scan), inputs, symbols)
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        value_of(&Kernel::Scan(self.scan), inputs, env)
    }

    /// An element is part of the sums behind it, so its cotangent is the sum from the other end.
    fn vjp(&self, _: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        if self.scan.product {
            return Err(NotDifferentiable("a running product has no derivative".into()));
        }
        let scan = Scan { reverse: !self.scan.reverse, ..self.scan };
        Ok(tape.graph().emit(Op::RunningTotal(RunningTotal { scan }), &[cotangent]))
    }
}
