//! Members and functions.

use super::{Attributes, Block, Bounds, Expr, Type, Visibility};
use crate::syntax::Ident;
use proc_macro2::Span;

/// A member of a layer or model.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its attributes.
    pub attributes: Attributes,
    /// What it is.
    pub kind: MemberKind,
}

/// The kinds of members.
#[derive(Clone, Debug)]
pub enum MemberKind {
    /// `let head = dim / heads;`
    Let(Constant),
    /// `fc1: Linear<..>`, `blocks: [Block<..>; depth]`
    Layer(SubLayer),
    /// `param`, `buffer` or `state`
    Tensor(TensorMember),
    /// `if bias { .. } else { .. }`
    If(MemberIf),
    /// `fn`
    Function(Function),
    /// Could not be read; kept by name, so that its uses stay silent.
    Poison(Option<Ident>),
}

/// `let name = value`
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its name.
    pub name: Ident,
    /// An expression over constants.
    pub value: Expr,
}

/// A layer inside a layer or model.
#[derive(Clone, Debug)]
pub struct SubLayer {
    /// The member's name.
    pub name: Ident,
    /// Which layer.
    pub layer: LayerUse,
    /// The length, where it is an array.
    pub count: Option<Expr>,
}

/// `Linear<784, hidden, bias = false>`
#[derive(Clone, Debug)]
pub struct LayerUse {
    /// The layer's name.
    pub name: Ident,
    /// Positional ones first.
    pub arguments: Vec<Argument>,
}

/// An argument of a layer or of a call.
#[derive(Clone, Debug)]
pub struct Argument {
    /// `bias` in `bias = false`; nothing for a positional one.
    pub name: Option<Ident>,
    /// What is passed.
    pub value: Expr,
}

/// A tensor that a layer or model owns.
#[derive(Clone, Debug)]
pub struct TensorMember {
    /// `param`, `buffer` or `state`.
    pub role: TensorRole,
    /// Its name.
    pub name: Ident,
    /// A tensor or a scalar.
    pub ty: Type,
    /// The initialiser; a `state` has none.
    pub initialiser: Option<Expr>,
}

/// What a tensor member is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorRole {
    /// Trained, stored.
    Param,
    /// Stored, not trained.
    Buffer,
    /// Lives from call to call, not stored.
    State,
}

/// Members on a condition.
#[derive(Clone, Debug)]
pub struct MemberIf {
    /// The word `if`.
    pub span: Span,
    /// `if` and each `else if`: condition and members.
    pub branches: Vec<(Expr, Vec<Member>)>,
    /// Members of the `else`.
    pub otherwise: Option<Vec<Member>>,
}

/// `fn` with its body.
#[derive(Clone, Debug)]
pub struct Function {
    /// An entry where it is not private and stands in a model.
    pub visibility: Visibility,
    /// Its name.
    pub name: Ident,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// What follows `->`.
    pub result: Option<Type>,
    /// Its statements; poison where there was none.
    pub body: Block,
}

/// `x: f32[batch, 784]`, `pos: u32 in 0..max_seq`
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: Type,
    /// The range of a scalar.
    pub bounds: Option<Bounds>,
}
