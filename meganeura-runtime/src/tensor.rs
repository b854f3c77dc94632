//! Tensors: results that stay on the device until someone reads them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use meganeura_shaders::prog::DType;

use crate::device::Device;
use crate::pool::Pooled;
use crate::{Error, Result};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
}

/// What the elements of a tensor can be: `f32`, `u32` or `i32`.
pub trait Element: bytemuck::Pod + PartialOrd + fmt::Debug + Send + Sync + sealed::Sealed + 'static {
    /// The type in the language.
    #[doc(hidden)]
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}

impl Element for u32 {
    const DTYPE: DType = DType::U32;
}

impl Element for i32 {
    const DTYPE: DType = DType::I32;
}

/// A tensor of any element type.
#[doc(hidden)]
#[derive(Clone)]
pub struct RawTensor {
    pub(crate) device: Device,
    pub(crate) memory: Arc<Pooled>,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: DType,
}

/// A handle of values on a device; it owns their memory. Cloning gives another handle of the same values.
#[derive(Clone)]
pub struct Tensor<T> {
    raw: RawTensor,
    element: PhantomData<T>,
}

impl<T: Element> Tensor<T> {
    pub(crate) fn from_raw(raw: RawTensor) -> Result<Self> {
        if raw.dtype == T::DTYPE {
            return Ok(Tensor { raw, element: PhantomData });
        }
        let problem = format!("expected a result of {}, found {}", T::DTYPE, raw.dtype);
        Err(Error::Kernel { kernel: "result".into(), problem })
    }

    pub(crate) fn raw(&self) -> &RawTensor {
        &self.raw
    }

    /// The size of each axis; none for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.raw.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.raw.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the values and copies them, row by row.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); self.len()];
        self.read(&mut values)?;
        Ok(values)
    }

    /// Waits for the values and copies them into memory of exactly their number.
    pub fn read(&self, into: &mut [T]) -> Result<()> {
        if into.len() != self.len() {
            let problem = format!("expected room for {} elements, found {}", self.len(), into.len());
            return Err(Error::Argument { entry: "Tensor::read".into(), argument: "into".into(), problem });
        }
        self.raw.device.download(self.raw.memory.buffer().at(0), bytemuck::cast_slice_mut(into))
    }

    /// The only value of a tensor of one element.
    pub fn item(&self) -> Result<T> {
        let mut value = [T::zeroed()];
        self.read(&mut value)?;
        Ok(value[0])
    }

    /// The index of the greatest element, counted row by row; the first of equal ones.
    pub fn argmax(&self) -> Result<usize> {
        let values = self.to_vec()?;
        Ok((1..values.len()).fold(0, |best, k| if values[k] > values[best] { k } else { best }))
    }
}

impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?} on {}", T::DTYPE, self.raw.shape, self.raw.device)
    }
}
