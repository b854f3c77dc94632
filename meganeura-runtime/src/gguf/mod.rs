//! The container of GGUF files: what the header of one says, checked against the bytes that there are.
//!
//! In: the bytes of a file, versions 2 and 3, little-endian. Out: metadata and the places of tensors; strings and
//! arrays stay in the file. Counts and lengths are numbers that anybody may have written: nothing is allocated by
//! them, only by entries that were read, and no place is outside of what its numbers reach without overflow.

mod cursor;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use value::{Array, Value};

use cursor::Cursor;
use std::collections::BTreeMap;

/// What a file begins with.
pub(crate) const MAGIC: [u8; 4] = *b"GGUF";

/// More axes than the format has.
const MOST_AXES: u32 = 4;

/// What a header says.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    metadata: BTreeMap<&'a str, Value<'a>>,
    /// In the order of the file.
    pub(crate) tensors: Vec<Tensor<'a>>,
    /// Where the data of tensors begins; it may be behind the end of the file.
    pub(crate) data: u64,
    /// Places of tensors are multiples of it.
    pub(crate) alignment: u64,
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tensor<'a> {
    pub(crate) name: &'a str,
    /// The outermost axis first; the file has them the other way.
    pub(crate) shape: Vec<u64>,
    /// The number of the type of its elements.
    pub(crate) kind: u32,
    /// Bytes from where the data begins.
    pub(crate) offset: u64,
}

impl<'a> Header<'a> {
    /// Reads the header of a file.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Header<'a>, String> {
        let mut cursor = Cursor::new(bytes);
        let magic: [u8; 4] = cursor.array("the magic")?;
        if magic != MAGIC {
            return Err(format!("expected `GGUF`, found {magic:?}"));
        }
        match cursor.u32("the version")? {
            2 | 3 => {}
            version if version.swap_bytes() <= 3 => {
                return Err("expected a little-endian file, found big-endian".into());
            }
            version => return Err(format!("expected version 2 or 3, found {version}")),
        }
        let (tensor_count, entry_count) = (cursor.u64("the number of tensors")?, cursor.u64("the number of entries")?);
        let mut metadata = BTreeMap::new();
        for _ in 0..entry_count {
            let key = cursor.text("a key")?;
            let kind = cursor.u32(key)?;
            if metadata.insert(key, Value::read(&mut cursor, key, kind)?).is_some() {
                return Err(format!("expected keys that differ, found `{key}` twice"));
            }
        }
        let mut tensors = vec![];
        for _ in 0..tensor_count {
            tensors.push(Tensor::read(&mut cursor)?);
        }
        let mut header = Header { metadata, tensors, data: cursor.position(), alignment: 32 };
        if let Some(value) = header.get("general.alignment") {
            let alignment = value.unsigned().filter(|bytes| (1..=1 << 30).contains(bytes) && bytes % 8 == 0);
            header.alignment = alignment
                .ok_or_else(|| format!("`general.alignment`: expected a multiple of 8 up to 2^30, found {value}"))?;
        }
        header.data = header.data.next_multiple_of(header.alignment);
        let mut names: Vec<&str> = header.tensors.iter().map(|tensor| tensor.name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("expected tensors whose names differ, found `{}` twice", twice[0]));
        }
        match header.tensors.iter().find(|tensor| tensor.offset % header.alignment != 0) {
            Some(Tensor { name, offset, .. }) => {
                let alignment = header.alignment;
                Err(format!("`{name}`: expected its data at a multiple of {alignment} bytes, found it at {offset}"))
            }
            None => Ok(header),
        }
    }

    /// An entry of the metadata.
    pub(crate) fn get(&self, key: &str) -> Option<Value<'a>> {
        self.metadata.get(key).copied()
    }
}

impl<'a> Tensor<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Tensor<'a>, String> {
        let name = cursor.text("the name of a tensor")?;
        let axes = cursor.u32(name)?;
        if axes > MOST_AXES {
            return Err(format!("`{name}`: expected at most {MOST_AXES} axes, found {axes}"));
        }
        let mut shape = (0..axes).map(|_| cursor.u64(name)).collect::<Result<Vec<u64>, String>>()?;
        shape.reverse();
        Ok(Tensor { name, shape, kind: cursor.u32(name)?, offset: cursor.u64(name)? })
    }
}
