//! A range of one axis.

use meganeura_shaders::dim::{Dim, Env, Shape, Symbols};
use meganeura_shaders::reference::Tensor;

use super::eval::element;
use super::{Misfit, NotDifferentiable, Op, Pad, Structural, Tape, one};
use crate::ir::{Type, ValueId};

/// The indices `from..to` of one axis. What the bounds of the dimensions cannot prove is checked at the call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slice {
    /// Which axis.
    pub axis: u8,
    /// The first index.
    pub from: Dim,
    /// The index after the last.
    pub to: Dim,
}

impl Structural for Slice {
    const NAME: &'static str = "slice";

    /// Leading rows lie together.
    fn is_view(&self) -> bool {
        self.axis == 0
    }

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        let x = one(Self::NAME, inputs)?;
        let Some(size) = x.shape.get(usize::from(self.axis)) else {
            return Err(Misfit(format!("`slice` of axis {} of {} axes", self.axis, x.shape.len())));
        };
        let length = &self.to - &self.from;
        let always_over = symbols.bounds(&(size - &self.to)).1 < 0;
        if always_over || symbols.bounds(&self.from).1 < 0 || symbols.bounds(&length).1 < 0 {
            let (from, to, size) = (symbols.show(&self.from), symbols.show(&self.to), symbols.show(size));
            return Err(Misfit(format!("{from}..{to} lies outside an axis of {size}")));
        }
        let mut shape = x.shape.clone();
        shape[usize::from(self.axis)] = length;
        Ok(shape)
    }

    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor {
        let axis = usize::from(self.axis);
        let (from, mut shape) = (self.from.eval(env), inputs[0].shape.clone());
        shape[axis] = self.to.eval(env) - from;
        let mut source = vec![0; shape.len()];
        Tensor::from_fn(&shape, |index| {
            source.copy_from_slice(index);
            source[axis] += from;
            element(inputs[0], &source)
        })
    }

    fn vjp(&self, _: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable> {
        let total = tape.shape(0)[usize::from(self.axis)].clone();
        Ok(tape.graph().emit(Op::Pad(Pad { axis: self.axis, before: self.from.clone(), total }), &[cotangent]))
    }
}
