//! Sum over axes, which become 1.

use meganeura_shaders::dim::{Dim, Env, Shape, Symbols};
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::Tensor;

use super::{Misfit, NotDifferentiable, Structural, Tape, one};
use crate::ir::{Type, ValueId};

/// Sum over axes, which become 1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sum {
    /// Which axes, ascending.
    pub axes: Vec<u8>,
}

impl Structural for Sum {
    const NAME: &'static str = "sum";

    fn infer(&self, inputs: &[&Type], _: &Symbols) -> Result<Shape, Misfit> {
        let x = one(Self::NAME, inputs)?;
        let ascending = self.axes.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || self.axes.iter().any(|axis| usize::from(*axis) >= x.shape.len()) || x.dtype == DType::Bool {
            return Err(Misfit(format!("`sum` over axes {:?} of {} axes of {}", self.axes, x.shape.len(), x.dtype)));
        }
        let mut shape = x.shape.clone();
        self.axes.iter().for_each(|axis| shape[usize::from(*axis)] = Dim::from(1));
        Ok(shape)
    }

    fn eval(&self, inputs: &[&Tensor], _: &Env) -> Tensor {
        let from = &inputs[0].shape;
        let mut shape = from.clone();
        self.axes.iter().for_each(|axis| shape[usize::from(*axis)] = 1);
        let mut sums = Tensor::from_fn(&shape, |_| 0.0);
        for (place, x) in inputs[0].data.iter().enumerate() {
            let (mut rest, mut at, mut step) = (place as i64, 0, 1);
            for (old, new) in from.iter().zip(&shape).rev() {
                at += if *new == 1 { 0 } else { rest % old * step };
                (rest, step) = (rest / old, step * new);
            }
            sums.data[at as usize] += x;
        }
        sums
    }

    fn vjp(&self, _: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        let shape = tape.shape(0);
        Ok(tape.graph().broadcast(cotangent, &shape))
    }
}
