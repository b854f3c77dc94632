//! Bytes of tokens as text, also while they come.

use super::Tokenizer;
use crate::Result;

/// The character by which a byte is written in a vocabulary: itself where it is printable in Latin-1, and otherwise
/// the next one from U+0100 on.
pub(super) const ALPHABET: [char; 256] = {
    let mut alphabet = ['\0'; 256];
    let (mut byte, mut next) = (0, 0x100);
    while byte < 256 {
        let printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let code = if printable { byte as u32 } else { next };
        alphabet[byte] = match char::from_u32(code) {
            Some(c) => c,
            None => '\0',
        };
        next += !printable as u32;
        byte += 1;
    }
    alphabet
};

/// The bytes that a text in that alphabet stands for; other characters stand for themselves.
pub(super) fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        // All of the alphabet is below U+0144.
        match (c < '\u{144}').then(|| ALPHABET.iter().position(|of| *of == c)).flatten() {
            Some(byte) => bytes.push(byte as u8),
            None => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

/// Text from tokens that come one by one: a character comes out when its last byte is there.
#[derive(Clone, Debug)]
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    pending: Vec<u8>,
}

impl<'a> TextStream<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> TextStream<'a> {
        TextStream { tokenizer, pending: vec![] }
    }

    /// The text that is complete with a token; U+FFFD stands for bytes that are no UTF-8. Fails if it is no token.
    pub fn push(&mut self, token: u32) -> Result<String> {
        self.pending.extend(self.tokenizer.bytes(token)?);
        let mut text = String::new();
        let mut start = 0;
        for chunk in self.pending.utf8_chunks() {
            let (valid, invalid) = (chunk.valid(), chunk.invalid());
            text.push_str(valid);
            start += valid.len();
            let unfinished = start + invalid.len() == self.pending.len() && is_beginning(invalid);
            if !invalid.is_empty() && !unfinished {
                text.push(char::REPLACEMENT_CHARACTER);
                start += invalid.len();
            }
        }
        self.pending.drain(..start);
        Ok(text)
    }

    /// What is left: U+FFFD if the last character is not complete.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}

/// Whether more bytes can make a character of these.
fn is_beginning(bytes: &[u8]) -> bool {
    !bytes.is_empty() && str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_has_each_byte_once() {
        assert_eq!(
            [0, 10, 32, 33, 127, 160, 173, 255].map(|byte| ALPHABET[byte]),
            ['Ā', 'Ċ', 'Ġ', '!', 'ġ', 'ł', 'Ń', 'ÿ']
        );
        for (byte, c) in ALPHABET.iter().enumerate() {
            assert_eq!(bytes_of(&c.to_string()), [byte as u8]);
        }
        assert_eq!(bytes_of("aĠ中"), "a 中".as_bytes());
    }
}
