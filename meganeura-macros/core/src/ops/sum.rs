//! Sum over axes, which become 1.

use meganeura_shaders::dim::{Dim, Shape, Symbols};
use meganeura_shaders::prog::DType;

use super::{Misfit, Structural, one};
use crate::ir::Type;

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
}
