//! A place in the bytes of a file that only moves forward and never past the end.

/// Bytes, and how many of them were read.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, position: 0 }
    }

    pub(super) fn position(&self) -> u64 {
        self.position as u64
    }

    /// The next bytes; `what` names them if there are fewer.
    pub(super) fn take(&mut self, length: u64, what: &str) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.position..];
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(taken) => {
                self.position += taken.len();
                Ok(taken)
            }
            None => Err(format!(
                "`{what}` at byte {}: expected {length} bytes, found {} to the end of the file",
                self.position,
                rest.len()
            )),
        }
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// What lies between this place and a later one.
    pub(super) fn until(&self, later: &Cursor<'a>) -> &'a [u8] {
        &self.bytes[self.position..later.position]
    }

    /// A length, and as many bytes.
    pub(super) fn string(&mut self, what: &str) -> Result<&'a [u8], String> {
        let length = self.u64(what)?;
        self.take(length, what)
    }

    /// A string of UTF-8.
    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, String> {
        let position = self.position;
        let bytes = self.string(what)?;
        str::from_utf8(bytes).map_err(|error| format!("`{what}` at byte {position}: expected UTF-8, found {error}"))
    }
}
