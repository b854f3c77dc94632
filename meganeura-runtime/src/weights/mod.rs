//! Weights of models in files: safetensors, in one file or in shards with an index, and GGUF.
//!
//! What comes in is a path or bytes and what a model expects; what goes out are named f32 tensors that are known to
//! be complete. All checks happen before the first element is read and all their problems are in one error, so
//! nothing is ever half loaded. Files are mapped, not read; saving never writes into an existing file.

mod blocks;
mod check;
mod container;
mod convert;
mod file;
mod kind;
mod loader;
mod published;
mod rules;
mod save;

pub(crate) use file::FileBytes;
pub use loader::Loader;
pub use rules::Rules;
pub(crate) use rules::matches;
pub use save::{Entry, save};

use crate::{Error, Result};
use container::Container;
use std::path::{Path, PathBuf};

/// A tensor that a model wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its dotted path.
    pub name: String,
    /// Its sizes.
    pub shape: Vec<usize>,
}

/// Where weights come from: a path (a `.safetensors` file, the `.json` index of its shards, or a `.gguf` file), or the
/// bytes of a file, as `include_bytes!` gives them. What a file is shows in its first bytes, not in its name.
///
/// Files are mapped, so no other program may shorten one or write into it while it is loaded; replacing it is fine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WeightSource<'a> {
    /// A file.
    Path(PathBuf),
    /// What a file contains.
    Bytes(&'a [u8]),
}

/// Weights that fit a model.
pub struct Weights<'a> {
    container: Container<'a>,
    /// For each expected tensor its name in the container; none where it may be missing and is.
    names: Vec<Option<String>>,
}

impl<'a> Weights<'a> {
    /// Opens weights and checks them against what is expected, with the exceptions of `rules`.
    ///
    /// Fails with [`Error::File`] if a file cannot be opened and with [`Error::Weights`], which lists every problem,
    /// if they do not fit.
    pub fn open(source: impl Into<WeightSource<'a>>, expected: &[Expected], rules: &Rules) -> Result<Self> {
        let source = source.into();
        let from = source.to_string();
        let refuse = |problems| Error::Weights { from: from.clone(), problems };
        let (container, mut problems) = Container::open(&source)?;
        let names = check::check(&container, expected, rules, &mut problems);
        if problems.is_empty() { Ok(Self { container, names }) } else { Err(refuse(problems)) }
    }

    /// Whether expected tensor `index` is there; only one that may be missing can be absent.
    pub fn has(&self, index: usize) -> bool {
        self.names.get(index).is_some_and(Option::is_some)
    }

    /// Reads elements of expected tensor `index` from element `first` on as f32; false if it is absent.
    pub fn read(&self, index: usize, first: usize, into: &mut [f32]) -> bool {
        let Some(Some(name)) = self.names.get(index) else { return false };
        self.container.read(name, first, into)
    }

    /// All elements of expected tensor `index`; none if it is absent.
    pub fn to_vec(&self, index: usize) -> Option<Vec<f32>> {
        let name = self.names.get(index)?.as_ref()?;
        let mut values = vec![0.0; self.container.stored(name)?.elements()];
        self.read(index, 0, &mut values).then_some(values)
    }
}

impl std::fmt::Debug for Weights<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Weights({} tensors)", self.names.iter().flatten().count())
    }
}

impl std::fmt::Display for WeightSource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(f, "`{}`", path.display()),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
        }
    }
}

impl From<PathBuf> for WeightSource<'_> {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}

impl From<&Path> for WeightSource<'_> {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_path_buf())
    }
}

impl From<&PathBuf> for WeightSource<'_> {
    fn from(path: &PathBuf) -> Self {
        Self::Path(path.clone())
    }
}

impl From<&str> for WeightSource<'_> {
    fn from(path: &str) -> Self {
        Self::Path(path.into())
    }
}

impl From<String> for WeightSource<'_> {
    fn from(path: String) -> Self {
        Self::Path(path.into())
    }
}

impl From<&String> for WeightSource<'_> {
    fn from(path: &String) -> Self {
        Self::Path(path.into())
    }
}

impl<'a> From<&'a [u8]> for WeightSource<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for WeightSource<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for WeightSource<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}
