//! The kernels of the CPU: a kernel description at known sizes becomes a [`Task`], which threads run part by part.
//!
//! What comes in are descriptions of `meganeura-shaders`, layouts and stretches of [`Memory`]; results are the same
//! bits whatever the number of threads, since parts are fixed by shapes. The interface is safe: a launch holds the
//! memories that it touches, and every stretch is checked before a kernel runs. Unsafe code is what disjoint parts of
//! one result, prefetching and the matrix product need, each block with its reason.

mod column_sum;
mod contract;
mod copy;
mod indexed;
pub mod level;
mod matvec;
pub mod memory;
mod product;
mod program;
mod rows;
pub mod task;
#[cfg(test)]
mod task_tests;
pub mod threads;
pub mod update;
pub mod view;

pub use memory::{Memory, Reading, Space};
pub use task::{Layout, Refusal, Task};
pub use threads::Threads;
pub use view::{Source, Target};
