//! Tokens of `model!` to its tree.
//!
//! In: the tokens of one invocation, or of one item that travelled. Out: a `Source`, and every mistake of form in the
//! sink. Parsing recovers at statements, members and items, so the tree is there whatever the tokens are, with poison
//! where a mistake was reported; it never panics, and it never recurses deeper than the limits on nesting allow.
//! A model's entries with their parameters can be read from the tree even where bodies have mistakes.

mod ast;
mod attributes;
mod choices;
mod expressions;
mod functions;
mod height;
mod items;
mod literals;
mod loops;
mod members;
mod name;
mod operands;
mod parser;
mod statements;
mod tokens;
mod types;
pub(crate) mod written;

#[cfg(test)]
mod tests;

pub use ast::*;
pub use items::layer_names;
pub use name::Ident;

use crate::errors::Errors;
use proc_macro2::TokenStream;

/// Reads one invocation; never stops at the first mistake.
pub fn parse(tokens: TokenStream, errors: &mut Errors) -> Source {
    let mut statements = 0;
    parser::Parser::new(tokens, errors, &mut statements).source()
}
