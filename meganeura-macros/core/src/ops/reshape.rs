//! The same elements in the same order under another shape.

use meganeura_shaders::dim::{Shape, Symbols, product};

use super::{Misfit, Structural, one};
use crate::ir::Type;

/// The same elements under another shape.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reshape {
    /// The new shape.
    pub shape: Shape,
}

impl Structural for Reshape {
    const NAME: &'static str = "reshape";

    fn is_view(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
        let x = one(Self::NAME, inputs)?;
        let (from, to) = (product(&x.shape), product(&self.shape));
        if from == to {
            return Ok(self.shape.clone());
        }
        let (from, to) = (symbols.show(&from), symbols.show(&to));
        let (old, new) = (symbols.show_shape(&x.shape), symbols.show_shape(&self.shape));
        Err(Misfit(format!("`reshape` from {old} ({from} elements) to {new} ({to} elements)")))
    }
}
