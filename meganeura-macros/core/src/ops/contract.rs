//! The product of two tensors, summed over common axes: `out[..] = Σ a[..] · b[..]`.

use std::sync::Arc;

use meganeura_shaders::dim::{Env, Shape, Symbols};
use meganeura_shaders::kernel::{self, Kernel, Spec};
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::{self, Tensor};

use super::{Misfit, NotDifferentiable, Op, Structural, Tape, show_types};
use crate::ir::{Type, ValueId};

/// A product of two inputs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Contract {
    /// Which axes meet, which stay.
    pub spec: Spec,
}

impl Structural for Contract {
    const NAME: &'static str = "contract";

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        let misfit = || Misfit(format!("`@` ({}) does not take {}", self.spec, show_types(inputs, symbols)));
        match inputs {
            [a, b] if [a.dtype, b.dtype] == [DType::F32; 2] => {
                self.spec.out_shape(&a.shape, &b.shape).ok_or_else(misfit)
            }
            _ => Err(misfit()),
        }
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        let args: Vec<Tensor> = inputs.iter().map(|tensor| (*tensor).clone()).collect();
        let plain = kernel::Contract::plain(self.spec.clone());
        reference::eval(&Kernel::Contract(Arc::new(plain)), &args, env)
    }

    /// The product of the cotangent with the other side. What the result lacks and only `a` has was summed alone, so
    /// the cotangent repeats along it.
    fn vjp(&self, k: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        let Spec { a, b, out } = &self.spec;
        let repeats = |labels: &[u8]| labels.iter().enumerate().any(|(k, label)| labels[..k].contains(label));
        if repeats(a) || repeats(b) {
            return Err(NotDifferentiable(format!("a product over `{}` takes a diagonal", self.spec)));
        }
        let other = tape.input(1 - k);
        if k == 1 {
            let spec = Spec::new(a, out, b);
            return Ok(tape.graph().emit(Op::Contract(Contract { spec }), &[other, cotangent]));
        }
        let kept: Vec<u8> = a.iter().copied().filter(|label| out.contains(label) || b.contains(label)).collect();
        let spec = Spec::new(out, b, &kept);
        let part = tape.graph().emit(Op::Contract(Contract { spec }), &[cotangent, other]);
        let shape = tape.shape(0);
        let narrow =
            a.iter().zip(&shape).map(|(label, size)| if kept.contains(label) { size.clone() } else { 1.into() });
        let part = tape.graph().reshape(part, narrow.collect());
        Ok(tape.graph().broadcast(part, &shape))
    }
}
