//! One error type for everything that can go wrong while a program runs.
//!
//! Each variant names the thing, what was expected and what was found. None of them is a reason to panic: after
//! any of them but [`Error::DeviceLost`] the same device and model can be used again.

use crate::watch::NotFinite;
use std::sync::Arc;

/// What can go wrong at run time.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No device of this machine fits the request.
    #[error("no device that is {wanted}; found {found}")]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// The devices that exist, or why they cannot be listed.
        found: String,
    },
    /// The device stopped working: a driver crash, a reset or a failed allocation. Open it again.
    #[error("device `{device}` is lost: {reason}")]
    DeviceLost {
        /// The device's name.
        device: String,
        /// What it was doing, and the driver's words.
        reason: String,
    },
    /// An allocation would not fit; nothing was allocated.
    #[error("out of device memory: {what} needs {needed} bytes, {available} are available")]
    OutOfMemory {
        /// What was to be allocated.
        what: String,
        /// Its size in bytes.
        needed: u64,
        /// What the driver says is left, in bytes.
        available: u64,
    },
    /// Something is larger than the device, or the baseline device, allows.
    #[error("{what} exceeds the device limit `{limit}`: at most {allowed}, found {found}")]
    Limit {
        /// What is too large.
        what: String,
        /// The limit's name and unit.
        limit: &'static str,
        /// Its value.
        allowed: u64,
        /// The value that exceeds it.
        found: u64,
    },
    /// A kernel's text was refused, or a dispatch does not fit the kernel. This is a fault of the compiler.
    #[error("kernel `{kernel}`: {problem}")]
    Kernel {
        /// The kernel's name.
        kernel: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Two things that must live on one device do not.
    #[error("{what} lives on device `{found}`, expected `{expected}`")]
    OtherDevice {
        /// The thing.
        what: String,
        /// The device that the call runs on.
        expected: String,
        /// The device that the thing lives on.
        found: String,
    },
    /// Something that was passed does not fit: a length, a shape, a dimension out of its range.
    #[error("`{name}`: expected {expected}, found {found}")]
    Mismatch {
        /// The argument or tensor.
        name: String,
        /// What would fit.
        expected: String,
        /// What was passed.
        found: String,
    },
    /// A file could not be read or written.
    #[error("{doing} `{path}`: {source}")]
    File {
        /// `reading` or `writing`.
        doing: &'static str,
        /// The file.
        path: String,
        /// What the operating system says.
        source: Arc<std::io::Error>,
    },
    /// A step made a NaN or an infinity, on a device that was opened with `check_finite`. What followed did not run.
    #[error("{0}")]
    NotFinite(Box<NotFinite>),
    /// Stored weights do not fit the model; nothing was loaded.
    #[error("weights in {from} do not fit, {} found:{}", count(problems.len(), "problem"), listed(problems))]
    Weights {
        /// Where they come from.
        from: String,
        /// Every problem.
        problems: Vec<WeightProblem>,
    },
}

/// One thing that is wrong with stored weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightProblem {
    /// The header is not that of a safetensors or GGUF file.
    #[error("unreadable header: {0}")]
    Header(String),
    /// The file is not as long as its header says.
    #[error("expected {expected} bytes by its header, found {found}{}", cut_at(first_cut))]
    Length {
        /// Bytes that the header accounts for.
        expected: u64,
        /// Bytes that there are.
        found: u64,
        /// The first tensor that is not whole, if the file is too short.
        first_cut: Option<String>,
    },
    /// The model has a tensor that the file does not have.
    #[error("missing `{name}` {shape:?}")]
    Missing {
        /// The model's name for it.
        name: String,
        /// The model's shape of it.
        shape: Vec<usize>,
    },
    /// The file has a tensor that the model does not have.
    #[error("unexpected `{name}` {shape:?}{}", did_you_mean(nearest))]
    Unexpected {
        /// The name in the file, after renaming.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// A similar name of the model.
        nearest: Option<String>,
    },
    /// A tensor has another shape than the model's.
    #[error("`{name}`: expected shape {expected:?}, found {found:?}{}", transposed(expected, found))]
    Shape {
        /// The tensor.
        name: String,
        /// The model's shape.
        expected: Vec<usize>,
        /// The file's shape.
        found: Vec<usize>,
    },
    /// A tensor has elements that do not convert.
    #[error("`{name}`: expected elements that convert to f32, found {found}")]
    Type {
        /// The tensor.
        name: String,
        /// The file's type.
        found: String,
    },
    /// Two tensors have one name after renaming.
    #[error("`{first}` and `{second}` are both renamed to `{name}`")]
    Renamed {
        /// The common name.
        name: String,
        /// One name in the file.
        first: String,
        /// The other name in the file.
        second: String,
    },
    /// An index names a file that does not have the tensor.
    #[error("`{name}`: expected in `{file}` by the index, not found there")]
    NotInShard {
        /// The tensor.
        name: String,
        /// The file.
        file: String,
    },
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn listed(problems: &[WeightProblem]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or(String::new(), |name| format!(", similar to `{name}`"))
}

fn cut_at(tensor: &Option<String>) -> String {
    tensor.as_ref().map_or(String::new(), |name| format!("; `{name}` is cut off"))
}

fn transposed(expected: &[usize], found: &[usize]) -> &'static str {
    if found.len() == 2 && found.iter().rev().eq(expected) { " (the transpose)" } else { "" }
}
