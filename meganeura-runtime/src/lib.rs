//! The runtime: devices, memory, weights, data and the replay of what `model!` emits.
//!
//! Nothing here knows a model. What comes in is plain data: schedules with their shader texts, buffers and byte
//! offsets; what a user passes is checked before anything runs and never panics. A GPU replays the shaders, the CPU
//! the kernel descriptions of the same schedule.

#[doc(hidden)]
pub mod arguments;
mod data;
#[doc(hidden)]
pub mod device;
mod error;
pub mod generate;
mod gguf;
#[doc(hidden)]
pub mod init;
mod optimizer;
mod parameters;
mod picture;
mod pool;
mod random;
#[doc(hidden)]
pub mod replay;
mod schedule;
mod session;
#[doc(hidden)]
pub mod storage;
mod tensor;
#[cfg(feature = "testing")]
pub mod testing;
mod trainer;
mod watch;
pub mod weights;

pub use arguments::IntoArgument;
pub use data::{Batch, Batches, DataLoader, Rows};
pub use device::{Device, DeviceInfo, DeviceKind, DeviceOptions};
pub use error::{Error, WeightProblem};
pub use optimizer::{Adam, AdamW, Optimizer, Sgd};
pub use picture::Picture;
pub use schedule::Schedule;
pub use session::Trace;
pub use tensor::{Element, Tensor, Values};
pub use trainer::{Gradients, Loss};
pub use watch::{NotFinite, Profile, StepTime};
pub use weights::{Loader, WeightSource};

/// What generated code needs.
#[doc(hidden)]
pub mod __private {
    pub use crate::session::{AnyArgument, Entry, Model, Parameter, Session, argument, scalar};
    pub use crate::trainer::Trainer;
    pub use std::path::Path;
}

/// What every fallible call of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;
