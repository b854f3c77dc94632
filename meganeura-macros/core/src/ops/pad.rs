//! Zeros before and after one axis: what a slice was taken from, as far as its cotangent knows.

use meganeura_shaders::dim::{Dim, Shape, Symbols};

use super::{Misfit, Structural, one};
use crate::ir::Type;

/// Zeros around one axis.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pad {
    /// Which axis.
    pub axis: u8,
    /// Zeros before the input.
    pub before: Dim,
    /// The size of the axis in the result.
    pub total: Dim,
}

impl Structural for Pad {
    const NAME: &'static str = "pad";

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        let x = one(Self::NAME, inputs)?;
        let axis = usize::from(self.axis);
        let fits = |size: &Dim| symbols.bounds(&(&self.total - &(&self.before + size))).1 >= 0;
        if !x.shape.get(axis).is_some_and(fits) {
            let total = symbols.show(&self.total);
            return Err(Misfit(format!("{} does not fit into {total}", symbols.show_shape(&x.shape))));
        }
        let mut shape = x.shape.clone();
        shape[axis] = self.total.clone();
        Ok(shape)
    }
}
