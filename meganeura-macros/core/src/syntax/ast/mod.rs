//! What the parser produces: the text of one invocation as a tree, with the spans that errors and generated code need.
//!
//! Poison (`Poison` variants, `Block::poison`, `Dimensions::complete`) stands where a mistake was reported. Whoever meets
//! it stays silent. Nothing here is checked beyond its form: names, arities and values are for `resolve`.

mod expressions;
mod items;
mod members;
mod statements;
mod types;

pub use expressions::*;
pub use items::*;
pub use members::*;
pub use statements::*;
pub use types::*;
