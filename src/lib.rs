//! Neural networks that are compiled while your crate compiles.
//!
//! [`model!`] takes layers and models in a small language, checks every shape, differentiates, searches for the best
//! fusion with equality saturation, and leaves a static schedule of kernels with specialised shaders in your program.
//! The runtime replays that schedule on any GPU with Vulkan, or on the CPU where there is none: nothing is planned or
//! compiled when the program starts.
#![doc = ""]
#![doc = include_str!("../docs/first-model.md")]

pub use meganeura_runtime::generate;
pub use meganeura_runtime::{
    Adam, AdamW, Batch, DataLoader, Device, DeviceInfo, DeviceKind, DeviceOptions, Error, Gradients, IntoArgument,
    Loader, Loss, NotFinite, Optimizer, Picture, Profile, Result, Schedule, Sgd, StepTime, Tensor, Trace, Values,
    WeightProblem, WeightSource,
};

/// Layers and models in meganeura's language; item position, braces.
///
/// The language is described in `docs/language.md` of the repository.
#[macro_export]
macro_rules! model {
    ($($tokens:tt)*) => { $crate::__private::__model! { [$crate] $($tokens)* } };
}

/// What generated code needs; not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use meganeura_macros::{__item, __model};
    pub use meganeura_runtime::__private as v1;
}

/// The examples of the language's page, compiled.
#[cfg(doctest)]
#[doc = include_str!("../docs/language.md")]
struct LanguagePage;
