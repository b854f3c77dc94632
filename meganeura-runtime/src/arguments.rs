//! What a call may pass for a tensor argument, and the dimensions that follow from it.
//!
//! Every argument gives its length or its whole shape. `solve` finds the runtime dimensions of the call from all of
//! them together, as long as each is the only unknown of some length or axis, and checks everything else against them.

mod solve;

pub use solve::{Wanted, solve};

use crate::data::Batch;
use crate::tensor::{Element, Tensor};
use crate::{Error, Result};

mod sealed {
    pub trait Sealed {}
}

/// One tensor argument of a call.
#[derive(Debug)]
pub struct Argument<'a, T: Element> {
    /// Where its values are.
    pub data: Data<'a, T>,
    /// What is known of its shape.
    pub given: Given,
}

/// Where an argument's values are.
#[derive(Debug)]
pub enum Data<'a, T: Element> {
    /// In the program's memory.
    Host(&'a [T]),
    /// On a device.
    Device(&'a Tensor<T>),
}

/// What an argument says about its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// The number of elements, and of rows if they are known, which counts only where the elements leave it open.
    Length {
        /// All elements.
        elements: usize,
        /// Sizes of the first axis and of all others together.
        rows: Option<(usize, usize)>,
    },
    /// Every size.
    Shape(Vec<usize>),
}

/// What can be passed for a tensor argument of elements `T`:
///
/// - `&[T]`, `&[T; N]`, `&Vec<T>`: one unknown dimension is solved from the length;
/// - `(&[T], [b, s])`, also of a `Vec`: with the shape;
/// - `&[[T; N]]`, `&[[T; N]; M]`, `&Vec<[T; N]>`: of shape `[M, N]`;
/// - `&Batch<T>` of a [`DataLoader`](crate::DataLoader);
/// - `&Tensor<T>` of the same device, without a copy.
pub trait IntoArgument<'a, T: Element>: sealed::Sealed {
    /// The argument; fails if it contradicts itself.
    fn into_argument(self) -> Result<Argument<'a, T>>;
}

fn flat<T: Element>(values: &[T]) -> Result<Argument<'_, T>> {
    Ok(Argument { data: Data::Host(values), given: Given::Length { elements: values.len(), rows: None } })
}

fn rows<T: Element, const N: usize>(values: &[[T; N]]) -> Result<Argument<'_, T>> {
    Ok(Argument { data: Data::Host(values.as_flattened()), given: Given::Shape(vec![values.len(), N]) })
}

impl<T: Element> sealed::Sealed for &[T] {}
impl<'a, T: Element> IntoArgument<'a, T> for &'a [T] {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        flat(self)
    }
}

impl<T: Element, const N: usize> sealed::Sealed for &[T; N] {}
impl<'a, T: Element, const N: usize> IntoArgument<'a, T> for &'a [T; N] {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        flat(self)
    }
}

impl<T: Element> sealed::Sealed for &Vec<T> {}
impl<'a, T: Element> IntoArgument<'a, T> for &'a Vec<T> {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        flat(self)
    }
}

impl<T: Element, const N: usize> sealed::Sealed for &[[T; N]] {}
impl<'a, T: Element, const N: usize> IntoArgument<'a, T> for &'a [[T; N]] {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        rows(self)
    }
}

impl<T: Element, const N: usize, const M: usize> sealed::Sealed for &[[T; N]; M] {}
impl<'a, T: Element, const N: usize, const M: usize> IntoArgument<'a, T> for &'a [[T; N]; M] {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        rows(self)
    }
}

impl<T: Element, const N: usize> sealed::Sealed for &Vec<[T; N]> {}
impl<'a, T: Element, const N: usize> IntoArgument<'a, T> for &'a Vec<[T; N]> {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        rows(self)
    }
}

impl<S: ?Sized, const R: usize> sealed::Sealed for (&S, [usize; R]) {}
impl<'a, T: Element, S: AsRef<[T]> + ?Sized, const R: usize> IntoArgument<'a, T> for (&'a S, [usize; R]) {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        let (values, shape) = (self.0.as_ref(), self.1);
        if shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size)) != Some(values.len()) {
            return Err(Error::Mismatch {
                name: "shape".to_string(),
                expected: format!("sizes of {} elements", values.len()),
                found: format!("{shape:?}"),
            });
        }
        Ok(Argument { data: Data::Host(values), given: Given::Shape(shape.to_vec()) })
    }
}

impl<T: Element> sealed::Sealed for &Batch<T> {}
impl<'a, T: Element> IntoArgument<'a, T> for &'a Batch<T> {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        let values = self.values()?;
        let rows = Some((self.rows(), values.len().checked_div(self.rows()).unwrap_or(0)));
        Ok(Argument { data: Data::Host(values), given: Given::Length { elements: values.len(), rows } })
    }
}

impl<T: Element> sealed::Sealed for &Tensor<T> {}
impl<'a, T: Element> IntoArgument<'a, T> for &'a Tensor<T> {
    fn into_argument(self) -> Result<Argument<'a, T>> {
        Ok(Argument { data: Data::Device(self), given: Given::Shape(self.shape().to_vec()) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// As a generated method takes it: the element type is fixed, the argument is not.
    fn take<'a>(argument: impl IntoArgument<'a, f32>) -> Result<(Vec<f32>, Given)> {
        let argument = argument.into_argument()?;
        let Data::Host(values) = argument.data else { unreachable!("only host values are passed here") };
        Ok((values.to_vec(), argument.given))
    }

    #[test]
    fn everything_that_the_table_lists_converts() {
        let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let length = Given::Length { elements: 6, rows: None };
        assert_eq!(take(&values).unwrap(), (values.clone(), length.clone()));
        assert_eq!(take(&values[..]).unwrap(), (values.clone(), length.clone()));
        assert_eq!(take(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap(), (values.clone(), length));
        let shape = |sizes: &[usize]| Given::Shape(sizes.to_vec());
        assert_eq!(take((&values, [2, 3])).unwrap(), (values.clone(), shape(&[2, 3])));
        assert_eq!(take((&values[..], [1, 6, 1])).unwrap(), (values.clone(), shape(&[1, 6, 1])));
        assert_eq!(take(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap(), (values.clone(), shape(&[3, 2])));
        let rows = vec![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        assert_eq!(take(&rows).unwrap(), (values.clone(), shape(&[2, 3])));
        assert_eq!(take(&rows[..]).unwrap(), (values.clone(), shape(&[2, 3])));
        let loader = crate::DataLoader::new((&values, 3), &[1u32, 2]).batch(2);
        let (x, _) = loader.into_iter().next().unwrap();
        assert_eq!(take(&x).unwrap(), (values, Given::Length { elements: 6, rows: Some((2, 3)) }));
    }

    #[test]
    fn a_shape_of_another_length_is_refused() {
        let error = take((&[1.0f32, 2.0, 3.0], [2, 2])).unwrap_err().to_string();
        assert!(error.contains("3 elements") && error.contains("[2, 2]"), "{error}");
        assert!(take((&[1.0f32], [usize::MAX, 2])).is_err());
    }

    #[test]
    fn a_loader_that_does_not_fit_is_an_error_of_its_batch() {
        let (x, _) = crate::DataLoader::new((&[1.0f32, 2.0], 3), &[1u32]).into_iter().next().unwrap();
        assert!(take(&x).unwrap_err().to_string().contains("whole rows of 3"));
    }
}
