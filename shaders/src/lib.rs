//! What the compiler and the runtime of meganeura share: dimensions, row programs and the pointwise registry, kernel
//! descriptions, the schedule's types and, behind the feature `generate`, the WGSL of the kernels.

pub mod arena;
pub mod dim;
#[cfg(feature = "generate")]
pub mod generate;
pub mod kernel;
pub mod math;
pub mod pointwise;
pub mod prog;
pub mod reference;
pub mod schedule;
pub mod table;
pub mod update;
