//! Replay: a schedule's bytes and shader texts become work for a device.
//!
//! [`Program`] decodes an entry once and keeps its pipelines; `recipe` evaluates the schedule at the dimensions of
//! a call; [`Replayer`] is what a kind of device does with a recipe. Nothing here knows a model or an operation.

mod gpu;
mod program;
mod recipe;

pub use gpu::GpuReplayer;
pub use program::{Call, Copy, Program, Replayer, Stretch};
pub use recipe::{Command, Facts, Point, Recipe, bytes};
