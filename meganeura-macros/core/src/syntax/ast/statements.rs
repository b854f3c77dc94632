//! Blocks and statements.

use super::{BinaryOp, Bounds, Expr, Index};
use crate::syntax::Ident;
use proc_macro2::Span;

/// `{ statements; tail }`
#[derive(Clone, Debug)]
pub struct Block {
    /// In order.
    pub statements: Vec<Statement>,
    /// The value, where there is no `;` behind the last expression.
    pub tail: Option<Tail>,
    pub(in crate::syntax) height: u32,
}

/// The value of a block; it has a number like a statement.
#[derive(Clone, Debug)]
pub struct Tail {
    /// Its place in the function.
    pub number: u32,
    /// The value.
    pub value: Expr,
}

/// A statement of a function.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its place in the function, from 1, those inside loops and branches counted after the one that holds them.
    pub number: u32,
    /// Its first token.
    pub span: Span,
    /// What it does.
    pub kind: StatementKind,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `let x = ..;`, `let mut x = ..;`, `let (a, b) = ..;`
    Let(Pattern, Expr),
    /// `x = ..;`, `x += ..;`, `state[a..b] = ..;`
    Assign(Assign),
    /// `for .. in .. { .. }`
    For(Box<For>),
    /// `if .. { .. } else { .. }` without a value
    If(If),
    /// `f(x);`
    Expr(Expr),
    /// Could not be read; the names that it would have bound.
    Poison(Vec<Ident>),
}

/// What a `let` binds.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `x`, `mut x`
    Name(Binding),
    /// `(a, b)`
    Tuple(Vec<Binding>, Span),
}

/// A name that a `let` binds.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The name.
    pub name: Ident,
    /// Whether it may be assigned to.
    pub mutable: bool,
}

/// An assignment.
#[derive(Clone, Debug)]
pub struct Assign {
    /// The local, buffer or state.
    pub name: Ident,
    /// The part of it: `[a..b]`.
    pub index: Option<Vec<Index>>,
    /// The operator of `+=` and its like.
    pub operator: Option<BinaryOp>,
    /// The `=` or `+=`.
    pub span: Span,
    /// The new value.
    pub value: Expr,
}

/// A loop.
#[derive(Clone, Debug)]
pub struct For {
    /// The word `for`.
    pub span: Span,
    /// What it runs over.
    pub over: Over,
    /// What it repeats.
    pub body: Block,
}

/// The four forms of a loop.
#[derive(Clone, Debug)]
pub enum Over {
    /// `for block in blocks`
    Each {
        /// `block`
        item: Ident,
        /// `blocks`
        array: Expr,
    },
    /// `for (i, block) in blocks`
    Numbered {
        /// `i`
        index: Ident,
        /// `block`
        item: Ident,
        /// `blocks`
        array: Expr,
    },
    /// `for (a, b) in (self_layers, cross_layers)`: as many of the one as of the other
    Together {
        /// `a`, `b`
        items: Vec<Ident>,
        /// `self_layers`, `cross_layers`
        arrays: Vec<Expr>,
    },
    /// `for i in 0..n`
    Range {
        /// `i`
        index: Ident,
        /// `0..n`, without a step
        bounds: Bounds,
    },
    /// Could not be read; the names that it would have bound.
    Poison(Vec<Ident>),
}

/// A choice on constants.
#[derive(Clone, Debug)]
pub struct If {
    /// The word `if`.
    pub span: Span,
    /// `if` and each `else if`: condition and block.
    pub branches: Vec<(Expr, Block)>,
    /// The `else`; always there where the choice is a value.
    pub otherwise: Option<Block>,
}
