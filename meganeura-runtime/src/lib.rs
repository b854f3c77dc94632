//! The runtime: devices, memory, weights, data and the replay of what `model!` emits.
//!
//! Nothing here knows a model. What comes in is plain data: buffers and byte offsets, WGSL texts, words and
//! grids; what a user passes is checked before anything is recorded and never panics.

mod arguments;
pub mod device;
mod error;
mod memory;
mod pool;
pub mod replay;
mod tensor;

pub use arguments::IntoArgument;
pub use device::{Device, DeviceInfo, DeviceKind};
pub use error::Error;
pub use tensor::{Element, Tensor};

/// What every fallible call of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;
