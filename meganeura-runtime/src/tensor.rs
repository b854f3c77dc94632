//! Tensors that live on a device.

use crate::device::{Buffer, Device};
use crate::{Error, Result};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for u32 {}
    impl Sealed for i32 {}
    impl Sealed for bool {}
    impl Sealed for u8 {}
}

/// What tensors are made of: `f32`, `u32`, `i32`, `bool`, and `u8`, which becomes u32 on its way to a device.
pub trait Element: sealed::Sealed + Copy + Default + PartialOrd + fmt::Debug + Send + Sync + 'static {
    /// The name of the type that the device keeps.
    const NAME: &'static str;

    /// The values as the device keeps them: four bytes each.
    #[doc(hidden)]
    fn bytes(values: &[Self]) -> Cow<'_, [u8]>;

    /// Values from what the device keeps.
    #[doc(hidden)]
    fn fill(into: &mut [Self], read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()>;

    /// Whether it is no number.
    #[doc(hidden)]
    fn is_nan(self) -> bool {
        false
    }
}

/// Of a type whose values are words already.
macro_rules! words {
    () => {
        fn bytes(values: &[Self]) -> Cow<'_, [u8]> {
            Cow::Borrowed(bytemuck::cast_slice(values))
        }

        fn fill(into: &mut [Self], read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
            read(bytemuck::cast_slice_mut(into))
        }
    };
}

/// Of a type whose values become words.
macro_rules! widened {
    ($word:ident => $value:expr) => {
        fn bytes(values: &[Self]) -> Cow<'_, [u8]> {
            Cow::Owned(values.iter().flat_map(|value| u32::from(*value).to_ne_bytes()).collect())
        }

        fn fill(into: &mut [Self], read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
            let mut words = vec![0u32; into.len()];
            read(bytemuck::cast_slice_mut(&mut words))?;
            into.iter_mut().zip(words).for_each(|(value, $word)| *value = $value);
            Ok(())
        }
    };
}

impl Element for f32 {
    const NAME: &'static str = "f32";
    words!();

    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Element for u32 {
    const NAME: &'static str = "u32";
    words!();
}

impl Element for i32 {
    const NAME: &'static str = "i32";
    words!();
}

impl Element for bool {
    const NAME: &'static str = "bool";
    widened!(word => word != 0);
}

impl Element for u8 {
    const NAME: &'static str = "u32";
    widened!(word => word.min(255) as u8);
}

/// A tensor in a device's memory, which it owns; a clone is another handle of the same values.
///
/// Values are dense, the last axis innermost. Reading waits for the work that computes them.
#[derive(Clone)]
pub struct Tensor<T> {
    device: Device,
    buffer: Buffer,
    shape: Vec<usize>,
    element: PhantomData<T>,
}

impl<T: Element> Tensor<T> {
    /// Copies values to a device. Fails with [`Error::Mismatch`] if there are not as many as the shape has elements.
    pub fn new(device: &Device, values: &[T], shape: &[usize]) -> Result<Self> {
        if elements(shape) != Some(values.len()) {
            return Err(Error::Mismatch {
                name: "values".to_string(),
                expected: format!("as many elements as the shape {shape:?} has"),
                found: values.len().to_string(),
            });
        }
        let buffer = device.buffer("a tensor", 4 * values.len() as u64)?;
        device.upload(buffer.at(0), &T::bytes(values))?;
        Ok(Self::of_buffer(device, buffer, shape))
    }

    /// A tensor of a buffer that holds at least as many elements as the shape has, from its beginning.
    #[doc(hidden)]
    pub fn of_buffer(device: &Device, buffer: Buffer, shape: &[usize]) -> Self {
        assert!(
            elements(shape).is_some_and(|elements| 4 * elements as u64 <= buffer.bytes()),
            "a result's buffer has the size of its shape"
        );
        Self { device: device.clone(), buffer, shape: shape.to_vec(), element: PhantomData }
    }

    /// Its sizes, outermost first; none for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that it lives on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    #[doc(hidden)]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// All values.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = vec![T::default(); self.len()];
        self.read(&mut values)?;
        Ok(values)
    }

    /// Copies all values into a slice of as many elements.
    pub fn read(&self, into: &mut [T]) -> Result<()> {
        if into.len() != self.len() {
            return Err(Error::Mismatch {
                name: "into".to_string(),
                expected: format!("{} elements, the tensor's {:?}", self.len(), self.shape),
                found: into.len().to_string(),
            });
        }
        T::fill(into, |bytes| self.device.download(self.buffer.at(0), bytes))
    }

    /// The index, in the order of memory, of the first largest value; of the first NaN if there is one.
    /// Fails with [`Error::Mismatch`] for a tensor without elements.
    pub fn argmax(&self) -> Result<usize> {
        let values = self.to_vec()?;
        let mut best: Option<(usize, T)> = None;
        for (index, value) in values.into_iter().enumerate() {
            if value.is_nan() {
                return Ok(index);
            }
            if best.is_none_or(|(_, most)| value > most) {
                best = Some((index, value));
            }
        }
        best.map(|(index, _)| index).ok_or_else(|| Error::Mismatch {
            name: "argmax".to_string(),
            expected: "at least one element".to_string(),
            found: format!("shape {:?}", self.shape),
        })
    }
}

impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?} on {}", T::NAME, self.shape, self.device)
    }
}

/// Of elements that the device keeps as they are: `f32`, `u32` and `i32`.
impl<T: Element + bytemuck::Pod> Tensor<T> {
    /// The values where they lie, on the CPU; none on other devices.
    pub fn as_slice(&self) -> Option<Values<'_, T>> {
        let words = self.buffer.host()?.memory().read();
        Some(Values { words, count: self.len(), element: PhantomData })
    }
}

/// A tensor's values in the CPU's memory, as a slice.
pub struct Values<'a, T> {
    words: meganeura_host::Reading<'a>,
    count: usize,
    element: PhantomData<T>,
}

impl<T: Element + bytemuck::Pod> std::ops::Deref for Values<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.words[..self.count])
    }
}

/// The number of elements, unless it overflows.
fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |elements, &size| elements.checked_mul(size))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_with_their_shape() {
        let device = Device::open().unwrap();
        let tensor = Tensor::new(&device, &[1.5f32, -2.0, 3.0, 0.0, 7.0, 9.0], &[2, 3]).unwrap();
        assert_eq!((tensor.shape(), tensor.len()), (&[2, 3][..], 6));
        assert_eq!(tensor.to_vec().unwrap(), [1.5, -2.0, 3.0, 0.0, 7.0, 9.0]);
        let copy = tensor.clone();
        drop(tensor);
        let mut values = [0.0; 6];
        copy.read(&mut values).unwrap();
        assert_eq!(values[5], 9.0);
        let error = copy.read(&mut [0.0; 5]).unwrap_err().to_string();
        assert!(error.contains("6 elements") && error.contains("found 5"), "{error}");
        assert_eq!(Tensor::new(&device, &[-3i32], &[]).unwrap().to_vec().unwrap(), [-3]);
        assert_eq!(Tensor::new(&device, &[true, false, true], &[3]).unwrap().to_vec().unwrap(), [true, false, true]);
        assert_eq!(Tensor::new(&device, &[0u8, 255, 7], &[3]).unwrap().to_vec().unwrap(), [0, 255, 7]);
        assert!(Tensor::new(&device, &[1u32; 5], &[2, 3]).is_err());
        assert!(Tensor::new(&device, &[1u32; 4], &[usize::MAX, 4]).is_err());
    }

    #[test]
    fn argmax_is_the_first_largest_and_nan_is_larger_than_all() {
        let device = Device::open().unwrap();
        let argmax = |values: &[f32]| Tensor::new(&device, values, &[values.len()]).unwrap().argmax();
        assert_eq!(argmax(&[-5.0, -1.0, -3.0, -1.0]).unwrap(), 1);
        assert_eq!(argmax(&[f32::NEG_INFINITY; 3]).unwrap(), 0);
        assert_eq!(argmax(&[1.0, f32::NAN, f32::INFINITY, f32::NAN]).unwrap(), 1);
        assert_eq!(Tensor::new(&device, &[3u32, u32::MAX, 5], &[3]).unwrap().argmax().unwrap(), 1);
        assert!(argmax(&[]).unwrap_err().to_string().contains("[0]"));
    }

    #[test]
    fn the_cpu_lends_its_values() {
        let tensor = Tensor::new(&Device::host(), &[3i32, -1, 7], &[3]).unwrap();
        assert_eq!(*tensor.as_slice().unwrap(), [3, -1, 7]);
    }
}
