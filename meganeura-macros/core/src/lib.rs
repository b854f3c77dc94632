//! The compiler behind `meganeura::model!`: tokens in, tokens or errors out, with no rustc around it.

pub mod diag;
pub mod errors;
pub mod ir;
pub mod nearest;
pub mod ops;
pub mod syntax;
