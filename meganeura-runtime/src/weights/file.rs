//! Mapped files.

use crate::{Error, Result};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What a file contains.
pub(crate) enum FileBytes<'a> {
    Mapped(memmap2::Mmap),
    Given(&'a [u8]),
}

impl FileBytes<'_> {
    /// Maps a file.
    ///
    /// Saving puts a new file in place of the old one, so this stays what it was while the file is saved over.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let open = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a file, found a folder or a device"));
            }
            if metadata.len() == 0 {
                return Ok(Self::Given(&[]));
            }
            // SAFETY: a mapping is only unsound if the file changes beneath it. This crate never writes into a file
            // that exists, and the documentation of loading asks the same of other programs.
            #[allow(unsafe_code)]
            unsafe { memmap2::Mmap::map(&file) }.map(Self::Mapped)
        };
        open().map_err(|error| error_at("reading", path, error))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Given(bytes) => bytes,
        }
    }
}

pub(super) fn error_at(doing: &'static str, path: &Path, error: io::Error) -> Error {
    Error::File { doing, path: path.display().to_string(), source: Arc::new(error) }
}
