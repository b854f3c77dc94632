//! Loading with named exceptions.

use super::{Rules, WeightSource};
use crate::Result;
use crate::device::Device;
use crate::session::{Model, Session};

/// Loads a model as `load` does, except for what is named; made by the model's `loader()`.
///
/// Patterns are dotted names in which `*` stands for any text.
#[derive(Debug)]
pub struct Loader<M> {
    model: &'static Model,
    rules: Rules,
    finish: fn(Session) -> M,
}

impl<M> Loader<M> {
    /// Without exceptions yet.
    #[doc(hidden)]
    pub fn new(model: &'static Model, finish: fn(Session) -> M) -> Loader<M> {
        Loader { model, rules: Rules::default(), finish }
    }

    /// The model's tensors that match need not be in the file; they begin as in a new model with seed 0.
    #[must_use]
    pub fn allow_missing(self, pattern: impl Into<String>) -> Loader<M> {
        Loader { rules: self.rules.allow_missing(pattern), ..self }
    }

    /// The file's tensors that match, after renaming, are ignored if the model does not have them.
    #[must_use]
    pub fn allow_unexpected(self, pattern: impl Into<String>) -> Loader<M> {
        Loader { rules: self.rules.allow_unexpected(pattern), ..self }
    }

    /// Names in the file that begin with `from` begin with `to` instead.
    #[must_use]
    pub fn rename(self, from: impl Into<String>, to: impl Into<String>) -> Loader<M> {
        Loader { rules: self.rules.rename(from, to), ..self }
    }

    /// Names in the file are replaced by what the function makes of them. Renamings apply in the order given.
    #[must_use]
    pub fn rename_with(self, name: impl Fn(&str) -> String + Send + Sync + 'static) -> Loader<M> {
        Loader { rules: self.rules.rename_with(name), ..self }
    }

    /// The model with the parameters of a file (a path or its bytes). Everything that does not fit is in one error.
    pub fn load<'a>(self, device: &Device, source: impl Into<WeightSource<'a>>) -> Result<M> {
        Ok((self.finish)(Session::load(device, self.model, source.into(), self.rules)?))
    }
}
