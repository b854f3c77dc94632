//! What entries take as arguments: slices, arrays, vectors, slices with a shape, and tensors of the same device.

use meganeura_shaders::prog::DType;

use crate::replay::Given;
use crate::tensor::{Element, RawTensor, Tensor};

/// An argument of a call.
#[doc(hidden)]
pub struct Argument<'a> {
    pub(crate) dtype: DType,
    pub(crate) given: Given,
    pub(crate) data: Data<'a>,
}

pub(crate) enum Data<'a> {
    Host(&'a [u8]),
    Device(&'a RawTensor),
}

/// Values that an entry takes as a tensor of `T`.
///
/// Each form fixes the dimensions of the entry in its own way: a slice, an array or a vector by its length, where one
/// dimension can be solved from it; `(&data, [2, 3])` by a shape; a slice of arrays `&[[T; N]]` by its two lengths; a
/// `Tensor<T>`, which must be of the same device and is not copied, by its shape.
pub trait IntoArgument<T: Element> {
    /// The values and what is known of their shape.
    #[doc(hidden)]
    fn to_argument(&self) -> Argument<'_>;
}

fn host<T: Element>(values: &[T], given: Given) -> Argument<'_> {
    Argument { dtype: T::DTYPE, given, data: Data::Host(bytemuck::cast_slice(values)) }
}

impl<T: Element> IntoArgument<T> for [T] {
    fn to_argument(&self) -> Argument<'_> {
        host(self, Given::Length(self.len()))
    }
}

impl<T: Element> IntoArgument<T> for Vec<T> {
    fn to_argument(&self) -> Argument<'_> {
        self.as_slice().to_argument()
    }
}

impl<T: Element, const N: usize> IntoArgument<T> for [T; N] {
    fn to_argument(&self) -> Argument<'_> {
        self.as_slice().to_argument()
    }
}

impl<T: Element, const N: usize> IntoArgument<T> for [[T; N]] {
    fn to_argument(&self) -> Argument<'_> {
        host(self.as_flattened(), Given::Shape(vec![self.len(), N]))
    }
}

impl<T: Element, const N: usize> IntoArgument<T> for Vec<[T; N]> {
    fn to_argument(&self) -> Argument<'_> {
        self.as_slice().to_argument()
    }
}

impl<T: Element, V: AsRef<[T]>, const R: usize> IntoArgument<T> for (V, [usize; R]) {
    fn to_argument(&self) -> Argument<'_> {
        host(self.0.as_ref(), Given::Shape(self.1.to_vec()))
    }
}

impl<T: Element> IntoArgument<T> for Tensor<T> {
    fn to_argument(&self) -> Argument<'_> {
        let raw = self.raw();
        Argument { dtype: T::DTYPE, given: Given::Shape(raw.shape.clone()), data: Data::Device(raw) }
    }
}

impl<T: Element, A: IntoArgument<T> + ?Sized> IntoArgument<T> for &A {
    fn to_argument(&self) -> Argument<'_> {
        (**self).to_argument()
    }
}
