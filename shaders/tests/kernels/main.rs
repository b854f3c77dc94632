//! The generated kernels on a Vulkan device against the f64 reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]
// The device is driven directly: its buffers are mapped memory.
#![allow(unsafe_code)]

mod case;
mod contract;
mod device;
mod indexed;
mod launch;
mod pointwise;
mod programs;
mod rows;
