//! What one or several files hold, safetensors or GGUF: names, types, shapes and where the bytes lie.
//!
//! GGUF's names are the published ones here. Every range in a container lies within its file; what does not is a problem and is left out.

use super::WeightSource;
use super::convert::to_f32;
use super::file::FileBytes;
use super::kind::Kind;
use super::published::{Order, published};
use crate::error::WeightProblem;
use crate::gguf;
use crate::{Error, Result};
use safetensors::tensor::Metadata;
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
    pub(super) kind: Kind,
    pub(super) shape: Vec<usize>,
    order: Order,
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

    /// Whether two tensors are one that is stored twice.
    pub(super) fn same(&self, one: &str, other: &str) -> bool {
        let Some((a, b)) = self.tensors.get(one).zip(self.tensors.get(other)) else { return false };
        let bytes = |stored: &Stored| self.files[stored.file].bytes().get(stored.range.clone());
        (a.kind, &a.shape, a.order) == (b.kind, &b.shape, b.order) && bytes(a) == bytes(b)
    }

    /// Reads elements of a tensor from element `first` on as f32; false if there are too few or they do not convert.
    pub(super) fn read(&self, name: &str, first: usize, into: &mut [f32]) -> bool {
        let Some(stored) = self.tensors.get(name) else { return false };
        let Some(bytes) = self.files[stored.file].bytes().get(stored.range.clone()) else { return false };
        let row = stored.elements() / stored.shape.first().copied().unwrap_or(1).max(1);
        if stored.order == Order::Same || row == 0 {
            return to_f32(stored.kind, bytes, first, into);
        }
        if first.checked_add(into.len()).is_none_or(|end| end > stored.elements()) {
            return false;
        }
        let (mut at, mut rest) = (first, into);
        while !rest.is_empty() {
            let (part, after) = rest.split_at_mut((row - at % row).min(rest.len()));
            if !to_f32(stored.kind, bytes, stored.order.stored(at / row) * row + at % row, part) {
                return false;
            }
            at += part.len();
            rest = after;
        }
        true
    }

    fn add(&mut self, file: FileBytes<'a>, problems: &mut Vec<WeightProblem>) {
        if file.bytes().starts_with(&gguf::MAGIC) {
            self.add_gguf(&file, problems);
        } else {
            self.add_safetensors(&file, problems);
        }
        self.files.push(file);
    }

    fn add_gguf(&mut self, file: &FileBytes<'a>, problems: &mut Vec<WeightProblem>) {
        let added = gguf::Header::read(file.bytes()).and_then(|header| {
            let places = gguf_places(&header)?;
            let found = file.bytes().len() as u64;
            let expected = places.iter().map(|place| place.end).max().unwrap_or(header.data);
            if expected > found {
                let cut = header.tensors.iter().zip(&places).filter(|(_, place)| place.end > found);
                let first_cut = cut.min_by_key(|(_, place)| place.start).map(|(tensor, _)| tensor.name.to_string());
                problems.push(WeightProblem::Length { expected, found, first_cut });
            }
            let mut tensors = BTreeMap::new();
            for (tensor, place) in header.tensors.iter().zip(places) {
                let size = |size: &u64| usize::try_from(*size).map_err(|error| format!("`{}`: {error}", tensor.name));
                let shape = tensor.shape.iter().map(size).collect::<Result<Vec<usize>, String>>()?;
                let (name, order) = published(&header, tensor.name, shape.first().copied().unwrap_or(1))?;
                // What does not fit an address is not within the file, which is a problem by now.
                let range = usize::try_from(place.start).unwrap_or(0)..usize::try_from(place.end).unwrap_or(0);
                let stored = Stored { kind: Kind::of_gguf(tensor.kind), shape, order, file: self.files.len(), range };
                if tensors.insert(name.clone(), stored).is_some() {
                    return Err(format!("expected tensors whose names differ, found `{name}` twice"));
                }
            }
            Ok(tensors)
        });
        match added {
            Ok(tensors) => self.tensors.extend(tensors),
            Err(reason) => problems.push(WeightProblem::Header(reason)),
        }
    }

    fn add_safetensors(&mut self, file: &FileBytes<'a>, problems: &mut Vec<WeightProblem>) {
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
                    let (kind, order) = (Kind::of_safetensors(info.dtype), Order::Same);
                    self.tensors.insert(name.clone(), Stored { kind, shape: info.shape, order, file: index, range });
                }
            }
        }
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

/// Where the bytes of each tensor of a GGUF file lie; nothing of tensors of types that do not convert, whose sizes are
/// not known. Tensors that overlap are refused.
fn gguf_places(header: &gguf::Header<'_>) -> Result<Vec<Range<u64>>, String> {
    let parts = header.get("split.count").and_then(gguf::Value::unsigned).unwrap_or(1);
    if parts > 1 {
        return Err(format!("expected a whole model, found one of {parts} parts; merge them first"));
    }
    let mut places = Vec::with_capacity(header.tensors.len());
    for tensor in &header.tensors {
        let (name, shape) = (tensor.name, &tensor.shape);
        let far = || format!("`{name}` {shape:?}: expected a place within 2^64 bytes, found offset {}", tensor.offset);
        let start = header.data.checked_add(tensor.offset).ok_or_else(far)?;
        let elements = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size)).ok_or_else(far)?;
        let Some((block, bytes)) = Kind::of_gguf(tensor.kind).block() else {
            places.push(start..start);
            continue;
        };
        let (row, block) = (shape.last().copied().unwrap_or(1), block as u64);
        if row % block != 0 {
            let kind = Kind::of_gguf(tensor.kind);
            return Err(format!("`{name}`: expected rows of whole blocks of {block} elements of {kind}, found {row}"));
        }
        let bytes = (elements / block).checked_mul(bytes as u64).ok_or_else(far)?;
        places.push(start..start.checked_add(bytes).ok_or_else(far)?);
    }
    let mut order: Vec<(&Range<u64>, &str)> =
        places.iter().zip(header.tensors.iter().map(|tensor| tensor.name)).collect();
    order.retain(|(place, _)| !place.is_empty());
    order.sort_by_key(|(place, _)| place.start);
    match order.windows(2).find(|pair| pair[0].0.end > pair[1].0.start) {
        Some(pair) => {
            Err(format!("expected tensors apart from each other, found `{}` within `{}`", pair[1].1, pair[0].1))
        }
        None => Ok(places),
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
