//! The search for kernels: from a graph in normal form to a graph of chosen kernels.
//!
//! Every stretch of a block between two loops is a *region*: an e-graph of its own, solved once for all regions of the
//! same structure. Three decisions carry the search: pointwise code is a program inside a node, never a tree of nodes;
//! what is never worse is done before saturation, so that the e-graph holds only real choices; and what is searched is
//! the set of stored values. The result is a function of the graph alone, and reaching a limit is an error with a name.

mod bits;
mod choice;
pub mod cost;
pub mod dag;
pub mod dump;
pub mod lang;
mod link;
pub mod problem;
mod region;
mod rewrite;
pub mod rules;
pub mod saturate;
mod search;
pub mod solve;
pub mod templates;
mod write;

use crate::ir::Graph;
use crate::normalise::normalise;
pub use choice::{Choice, Choices, Piece, Rival};
pub use saturate::Limit;
pub use solve::Memo;

/// The graph with chosen kernels: the same stores, outputs and loops; every other node is a kernel, a launch of several,
/// or a view, copy or repetition that remained.
pub fn fuse(graph: &Graph) -> Result<Graph, Limit> {
    choose(&normalise(graph), &mut Memo::default())
}

/// The same for a graph in normal form; `memo` keeps what regions were solved before, for other entries of the model.
pub fn choose(graph: &Graph, memo: &mut Memo) -> Result<Graph, Limit> {
    write::chosen(graph, memo, None)
}

/// The text of the search: for each region the classes that were needed, their chosen nodes and costs.
pub fn dump(graph: &Graph) -> Result<String, Limit> {
    let mut text = String::new();
    write::chosen(&normalise(graph), &mut Memo::default(), Some(&mut text))?;
    Ok(text)
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
