//! Expressions back to text, as short as messages need them.

use proc_macro2::Span;

use crate::syntax::written::{expression, index};
use crate::syntax::{Expr, Ident, Index};

/// Longer text says less than a word.
const LIMIT: usize = 32;

/// The expression as the user may have written it, if it is short.
pub(super) fn short(expr: &Expr) -> Option<String> {
    let text = expression(expr)?;
    (text.chars().count() <= LIMIT).then_some(text)
}

/// A part of a local as the user may have written it.
pub(super) fn part_text(name: &str, indices: &[Index]) -> Option<String> {
    let indices: Option<Vec<String>> = indices.iter().map(index).collect();
    Some(format!("{name}[{}]", indices?.join(", "))).filter(|text| text.chars().count() <= LIMIT)
}

/// The text that an operand was written as.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// An expression.
    Expr(&'a Expr),
    /// The left side of `x += ..`.
    Name(&'a Ident),
}

impl Source<'_> {
    pub(super) fn span(self) -> Span {
        match self {
            Source::Expr(expr) => expr.span,
            Source::Name(name) => name.span,
        }
    }

    /// The text, or the name of its role where that is long.
    pub(super) fn text(self, role: &str) -> String {
        match self {
            Source::Expr(expr) => short(expr).unwrap_or_else(|| role.to_string()),
            Source::Name(name) => name.name.clone(),
        }
    }
}
