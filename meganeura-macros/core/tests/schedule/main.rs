//! Schedules of graphs with loops: what they cost, what they mean, and that broken ones are found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod hazards;
