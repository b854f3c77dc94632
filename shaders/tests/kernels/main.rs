//! Kernels against their f64 reference, each case on every device: the generated shaders on Vulkan, the recipes of the
//! CPU with one thread and with three.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]
// The device is driven directly: its buffers are mapped memory.
#![allow(unsafe_code)]

mod case;
mod contract;
mod devices;
mod indexed;
mod launch;
mod pointwise;
mod programs;
mod rows;
mod tolerance;
mod vulkan;
