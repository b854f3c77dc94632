//! What things mean: interpreters in f64 of graphs and of schedules, and a judge of schedules by brute force.

pub mod graph;
pub mod oracle;
pub mod schedule;
pub mod trace;
