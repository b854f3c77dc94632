//! Saving: a complete file or none.
//!
//! Everything is written to a temporary file in the same folder, which is flushed to the disk and then renamed over
//! the target. Whatever fails, the target is as it was and the temporary file is gone; who has the old file open or
//! mapped keeps it.

use super::file::error_at;
use crate::Result;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A tensor to be saved as f32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the file; each name comes once.
    pub name: String,
    /// Its sizes.
    pub shape: Vec<usize>,
}

/// Saves tensors as safetensors. `read(index, first, values)` fills in elements of one from element `first` on; it is
/// called in order, and its errors end the saving.
pub fn save(
    path: impl AsRef<Path>,
    entries: &[Entry],
    mut read: impl FnMut(usize, usize, &mut [f32]) -> Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    let failed = |error: io::Error| error_at("writing", path, error);
    let header = header(entries).map_err(failed)?;
    let temporary = Temporary::create(path).map_err(failed)?;
    let mut writer = BufWriter::with_capacity(1 << 20, &temporary.file);
    writer.write_all(&(header.len() as u64).to_le_bytes()).and_then(|()| writer.write_all(&header)).map_err(failed)?;
    let mut values = vec![0.0; 1 << 18];
    for (index, entry) in entries.iter().enumerate() {
        let elements: usize = entry.shape.iter().product();
        for first in (0..elements).step_by(values.len()) {
            let length = values.len().min(elements - first);
            let values = &mut values[..length];
            read(index, first, values)?;
            for value in values.iter() {
                writer.write_all(&value.to_le_bytes()).map_err(failed)?;
            }
        }
    }
    writer.flush().map_err(failed)?;
    drop(writer);
    temporary.put_at(path).map_err(failed)
}

fn header(entries: &[Entry]) -> io::Result<Vec<u8>> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(invalid(format!("expected distinct names, found `{}` twice", twice[0])));
    }
    let mut end = 0usize;
    let mut tensors = Vec::with_capacity(entries.len());
    for Entry { name, shape } in entries {
        let start = end;
        let bytes = shape.iter().try_fold(4usize, |bytes, &size| bytes.checked_mul(size));
        end = bytes
            .and_then(|bytes| start.checked_add(bytes))
            .ok_or_else(|| invalid(format!("`{name}` is too large")))?;
        let info = TensorInfo { dtype: Dtype::F32, shape: shape.clone(), data_offsets: (start, end) };
        tensors.push((name.clone(), info));
    }
    // Other readers look for this entry before they accept a file.
    let format = HashMap::from([("format".to_string(), "pt".to_string())]);
    let metadata = Metadata::new(Some(format), tensors).map_err(|error| invalid(error.to_string()))?;
    let mut header = serde_json::to_vec(&metadata)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// A file that is removed unless it is put in its place.
struct Temporary {
    file: File,
    path: Option<PathBuf>,
}

impl Temporary {
    fn create(target: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected the path of a file"));
        };
        // One that another process left behind has the same name only if it had the same id.
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut temporary = OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".{}-{count}.tmp", std::process::id()));
            let path = target.with_file_name(temporary);
            match File::options().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { file, path: Some(path) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn put_at(mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
        }
        self.path = None;
        sync_folder(target);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && let Err(error) = fs::remove_file(path)
        {
            log::warn!("temporary file `{}` stays: {error}", path.display());
        }
    }
}

/// Makes the renaming last through a loss of power, where the system can; the file itself is complete either way.
fn sync_folder(target: &Path) {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        log::debug!("folder `{}` is not flushed: {error}", folder.display());
    }
}
