//! The compiler behind `meganeura::model!`: tokens in, tokens or errors out, with no rustc around it.

pub mod ir;
pub mod ops;
