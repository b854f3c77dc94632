//! Expressions.

use super::{Argument, If};
use crate::syntax::Ident;
use proc_macro2::Span;

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its main token: the operator, the name of what is called or accessed, the literal, the brackets.
    pub span: Span,
    /// Which one.
    pub kind: ExprKind,
    pub(in crate::syntax) height: u32,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `128`
    Int(u64),
    /// `1e-5`
    Float(f64),
    /// `true`
    Bool(bool),
    /// `"bij,bjk->bik"`
    Text(String),
    /// A local, dimension, member or function.
    Name(Ident),
    /// `-x`, `!mask`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `fc1(x)`, `softmax(x, axis = -1)`, `blocks[0](x)`: what is called is a `Name`, `Index` or `Field`.
    Call(Box<Expr>, Vec<Argument>),
    /// `x.relu()`, `layer.encode(x)`
    Method(Box<Expr>, Ident, Vec<Argument>),
    /// `embed.weight`
    Field(Box<Expr>, Ident),
    /// `x[a..b, 0]`
    Index(Box<Expr>, Vec<Index>),
    /// `[a, b]`
    Array(Vec<Expr>),
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `_` as an element of an array: the one size that `reshape` finds out
    Hole,
    /// `if flag { a } else { b }`
    If(Box<If>),
    /// Could not be read.
    Poison,
}

/// What stands between the brackets of `x[..]`, for one axis.
#[derive(Clone, Debug)]
pub enum Index {
    /// `x[0]`, `x[-1]`, `w[ids]`
    At(Expr),
    /// `x[a..b]`, `x[..b]`, `x[a..]`, `x[..]`
    Slice {
        /// From the start without it.
        start: Option<Expr>,
        /// To the end without it.
        end: Option<Expr>,
        /// Whether `end` itself is meant: `..=`.
        inclusive: bool,
        /// The `..`.
        span: Span,
    },
}

/// Operators in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Negate,
    /// `!`
    Not,
}

/// Operators between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `|`
    Or,
    /// `&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `@`
    MatMul,
}
