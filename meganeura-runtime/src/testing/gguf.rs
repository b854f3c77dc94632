//! Writes GGUF files, also wrong ones.

/// A file in the making; tensors lie one behind the other at multiples of 32 bytes unless that is changed.
#[derive(Clone, Debug)]
pub struct GgufFile {
    version: u32,
    alignment: usize,
    entries: Vec<Vec<u8>>,
    tensors: Vec<(Vec<u8>, u64)>,
    data: Vec<u8>,
}

impl Default for GgufFile {
    fn default() -> GgufFile {
        GgufFile { version: 3, alignment: 32, entries: vec![], tensors: vec![], data: vec![] }
    }
}

/// A length, and the bytes.
pub fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// An array's type, count and elements.
pub fn array(kind: u32, count: u64, elements: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &count.to_le_bytes(), elements].concat()
}

/// An array of strings.
pub fn strings(texts: &[&str]) -> Vec<u8> {
    array(8, texts.len() as u64, &texts.iter().flat_map(|text| string(text)).collect::<Vec<u8>>())
}

impl GgufFile {
    /// Of another version.
    pub fn version(self, version: u32) -> GgufFile {
        GgufFile { version, ..self }
    }

    /// With its tensors at multiples of so many bytes, which is not written by itself.
    pub fn aligned(self, alignment: usize) -> GgufFile {
        GgufFile { alignment, ..self }
    }

    /// With an entry of the metadata: its key, the number of its type and its bytes.
    pub fn entry(mut self, key: &str, kind: u32, value: &[u8]) -> GgufFile {
        self.entries.push([&string(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    /// With an entry that is a string.
    pub fn text(self, key: &str, value: &str) -> GgufFile {
        self.entry(key, 8, &string(value))
    }

    /// With an entry that is a number of 32 bits.
    pub fn number(self, key: &str, value: u32) -> GgufFile {
        self.entry(key, 4, &value.to_le_bytes())
    }

    /// With a tensor, its outermost axis first, behind those before it.
    pub fn tensor(mut self, name: &str, shape: &[u64], kind: u32, data: &[u8]) -> GgufFile {
        self.data.resize(self.data.len().next_multiple_of(self.alignment), 0);
        let offset = self.data.len() as u64;
        self.data.extend(data);
        self.tensor_at(name, shape, kind, offset)
    }

    /// With a tensor whose data is said to lie somewhere.
    pub fn tensor_at(mut self, name: &str, shape: &[u64], kind: u32, offset: u64) -> GgufFile {
        let sizes = shape.iter().rev().flat_map(|size| size.to_le_bytes());
        let info = [string(name), (shape.len() as u32).to_le_bytes().to_vec(), sizes.collect()].concat();
        self.tensors.push(([&info[..], &kind.to_le_bytes()].concat(), offset));
        self
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        self.counted(self.tensors.len() as u64, self.entries.len() as u64)
    }

    /// The bytes of a file that says that it has so many tensors and entries.
    pub fn counted(&self, tensors: u64, entries: u64) -> Vec<u8> {
        let mut bytes =
            [&b"GGUF"[..], &self.version.to_le_bytes(), &tensors.to_le_bytes(), &entries.to_le_bytes()].concat();
        self.entries.iter().for_each(|entry| bytes.extend(entry));
        for (info, offset) in &self.tensors {
            bytes.extend(info);
            bytes.extend(offset.to_le_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(self.alignment), 0);
        bytes.extend(&self.data);
        bytes
    }
}
