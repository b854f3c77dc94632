//! The compiler behind `meganeura::model!`: tokens in, tokens or errors out, with no rustc around it.

pub mod autodiff;
pub mod diag;
pub mod egraph;
pub mod emit;
pub mod errors;
pub mod evaluation;
mod explain;
#[cfg(test)]
mod fuzz;
pub mod interp;
pub mod ir;
pub mod lower;
pub mod nearest;
pub mod normalise;
pub mod ops;
pub mod pipeline;
pub mod prune;
pub mod resolve;
pub mod schedule;
pub mod sharing;
pub mod syntax;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod unused;
pub mod watch;
