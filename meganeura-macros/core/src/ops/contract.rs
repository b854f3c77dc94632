//! The product of two tensors, summed over common axes: `out[..] = Σ a[..] · b[..]`.

use meganeura_shaders::dim::{Shape, Symbols};
use meganeura_shaders::kernel::Spec;
use meganeura_shaders::prog::DType;

use super::{Misfit, Structural, show_types};
use crate::ir::Type;

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
}
