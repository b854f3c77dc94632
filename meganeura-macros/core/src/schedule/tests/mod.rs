//! Schedules of graphs with loops: what they cost, what they mean, and that broken ones are found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod build;
mod cases;
pub(crate) mod check;
mod faults;
mod fused;
mod guards;
mod hazards;
mod loops;
mod plan;
mod random;
mod table;
