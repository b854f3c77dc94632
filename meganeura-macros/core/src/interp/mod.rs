//! Interpreters in f64: what is computed, free of how.

pub mod graph;
