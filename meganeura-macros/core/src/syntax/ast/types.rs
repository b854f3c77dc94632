//! Types, dimensions and bounds.

use super::Expr;
use crate::syntax::Ident;
use proc_macro2::Span;

/// The dimensions of an item.
#[derive(Clone, Debug)]
pub struct Dimensions {
    /// In order.
    pub list: Vec<Dimension>,
    /// Whether all of them could be read, names at least.
    pub complete: bool,
}

/// One name between `<` and `>` of a definition.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// Its name.
    pub name: Ident,
    /// What follows it.
    pub kind: DimensionKind,
}

/// The three forms of a dimension.
#[derive(Clone, Debug)]
pub enum DimensionKind {
    /// `dim`: passed by whoever uses the layer.
    Required,
    /// `hidden = 128`: a constant with a default.
    Default(Expr),
    /// `batch in 1..=256`: bound at each call (models only).
    Runtime(Bounds),
    /// Could not be read.
    Poison,
}

/// `low..high`, `low..=high`, with `step s` for a dimension.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The least value.
    pub low: Expr,
    /// The greatest value, or one more than it.
    pub high: Expr,
    /// Whether `high` itself is meant: `..=`.
    pub inclusive: bool,
    /// `step 16`.
    pub step: Option<Expr>,
    /// The `..`.
    pub span: Span,
}

/// A type.
#[derive(Clone, Debug)]
pub struct Type {
    /// The element's name, or the parentheses.
    pub span: Span,
    /// Which one.
    pub kind: TypeKind,
}

/// The kinds of types.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `u32`
    Scalar(Element),
    /// `f32[.., dim]`
    Tensor(TensorType),
    /// `(f32, u32[batch])`
    Tuple(Vec<Type>),
    /// Could not be read.
    Poison,
}

/// `f32[.., dim]`
#[derive(Clone, Debug)]
pub struct TensorType {
    /// `f32`
    pub element: Element,
    /// The `..` in front, for any leading axes.
    pub leading: Option<Span>,
    /// The sizes that are written out.
    pub axes: Vec<Expr>,
}

/// Types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// `f32`
    F32,
    /// `u32`
    U32,
    /// `i32`
    I32,
    /// `u8`
    U8,
    /// `bool`
    Bool,
}
