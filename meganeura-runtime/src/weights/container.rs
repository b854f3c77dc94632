//! What one or several safetensors files hold: names, types, shapes and where the bytes lie.
//!
//! Every range in a container lies within its file; what does not is a problem and is left out.

use super::WeightSource;
use super::file::FileBytes;
use crate::error::WeightProblem;
use crate::{Error, Result};
use safetensors::tensor::{Dtype, Metadata};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Longer headers are not headers.
const MAX_HEADER: u64 = 100_000_000;

pub(super) struct Container<'a> {
    files: Vec<FileBytes<'a>>,
    tensors: BTreeMap<String, Stored>,
}

#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) kind: Dtype,
    pub(super) shape: Vec<usize>,
    file: usize,
    range: Range<usize>,
}

impl Stored {
    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

impl<'a> Container<'a> {
    /// Opens a source; the problems are those of its headers and lengths.
    pub(super) fn open(source: &WeightSource<'a>) -> Result<(Self, Vec<WeightProblem>)> {
        let mut container = Self { files: Vec::new(), tensors: BTreeMap::new() };
        let mut problems = Vec::new();
        match source {
            WeightSource::Bytes(bytes) => container.add(FileBytes::Given(bytes), &mut problems),
            WeightSource::Path(path) if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("json")) => {
                container.add_shards(path, &mut problems)?;
            }
            WeightSource::Path(path) => container.add(FileBytes::open(path)?, &mut problems),
        }
        Ok((container, problems))
    }

    pub(super) fn tensors(&self) -> &BTreeMap<String, Stored> {
        &self.tensors
    }

    pub(super) fn stored(&self, name: &str) -> Option<&Stored> {
        self.tensors.get(name)
    }

    pub(super) fn bytes(&self, name: &str) -> Option<(Dtype, &[u8])> {
        let stored = self.tensors.get(name)?;
        Some((stored.kind, self.files[stored.file].bytes().get(stored.range.clone())?))
    }

    fn add(&mut self, file: FileBytes<'a>, problems: &mut Vec<WeightProblem>) {
        let index = self.files.len();
        match read_header(file.bytes()) {
            Err(reason) => problems.push(WeightProblem::Header(reason)),
            Ok((start, metadata)) => {
                let found = file.bytes().len();
                let expected = start + metadata.data_len();
                let names = metadata.offset_keys();
                let info = |name: &String| metadata.info(name).cloned();
                if expected != found {
                    let end = |name: &&String| info(name).is_some_and(|info| start + info.data_offsets.1 > found);
                    let first_cut = names.iter().find(end).cloned();
                    problems.push(WeightProblem::Length { expected: expected as u64, found: found as u64, first_cut });
                }
                for (name, info) in names.iter().filter_map(|name| Some((name, info(name)?))) {
                    let range = start + info.data_offsets.0..start + info.data_offsets.1;
                    let stored = Stored { kind: info.dtype, shape: info.shape, file: index, range };
                    self.tensors.insert(name.clone(), stored);
                }
            }
        }
        self.files.push(file);
    }

    /// An index is JSON with a `weight_map` from names to files beside it.
    fn add_shards(&mut self, path: &Path, problems: &mut Vec<WeightProblem>) -> Result<()> {
        let refuse = |reason: String| Error::Weights {
            from: format!("`{}`", path.display()),
            problems: vec![WeightProblem::Header(reason)],
        };
        let index = FileBytes::open(path)?;
        let index: serde_json::Value =
            serde_json::from_slice(index.bytes()).map_err(|error| refuse(format!("invalid JSON: {error}")))?;
        let Some(map) = index.get("weight_map").and_then(|map| map.as_object()) else {
            return Err(refuse("expected an object `weight_map`, found none".to_string()));
        };
        let mut files: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
        for (name, file) in map {
            let Some(file) = file.as_str() else {
                return Err(refuse(format!("expected a file name for `{name}`, found {file}")));
            };
            if Path::new(file).components().count() != 1 || file.contains("..") {
                return Err(refuse(format!("expected a file beside the index for `{name}`, found `{file}`")));
            }
            files.entry(file).or_default().push(name);
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for (file, names) in files {
            let before = problems.len();
            let index = self.files.len();
            self.add(FileBytes::open(&folder.join(file))?, problems);
            if problems.len() > before {
                continue;
            }
            for name in names {
                if self.tensors.get(name).is_none_or(|stored| stored.file != index) {
                    problems.push(WeightProblem::NotInShard { name: name.clone(), file: file.to_string() });
                }
            }
        }
        Ok(())
    }
}

/// The header, and where the data begins: eight bytes of length, then JSON, which may be padded.
fn read_header(bytes: &[u8]) -> Result<(usize, Metadata), String> {
    let short = || format!("expected at least 8 bytes of length, found {}", bytes.len());
    let (length, rest) = bytes.split_first_chunk().ok_or_else(short)?;
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER || length > rest.len() as u64 {
        return Err(format!("expected a header within {} bytes, found a length of {length}", rest.len()));
    }
    let length = length as usize;
    let json = rest[..length].trim_ascii_end();
    // Some writers pad with zeros rather than spaces.
    let zeros = json.iter().rev().take_while(|&&byte| byte == 0).count();
    let metadata = serde_json::from_slice(&json[..json.len() - zeros]).map_err(|error| error.to_string())?;
    Ok((8 + length, metadata))
}
