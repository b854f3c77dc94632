//! Tokens of text, by the vocabulary that a GGUF file brings: byte pair encoding over bytes.
//!
//! In: the file's metadata, which is checked as a whole. Out: ids for text and text for ids. Special tokens in a text
//! are found before it is split, the longest first.

use super::TextStream;
use super::bpe::Bpe;
use super::split::Split;
use super::text::bytes_of;
use crate::error::WeightProblem;
use crate::gguf::{Array, Header, Value};
use crate::weights::{FileBytes, WeightSource};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// Text to tokens and back.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    /// The bytes of each token.
    tokens: Vec<Box<[u8]>>,
    /// Texts that are one token wherever they stand, the longest first.
    special: Vec<Special>,
    split: Split,
    bpe: Bpe,
    begin: Option<u32>,
    end: Option<u32>,
    template: Option<String>,
}

#[derive(Clone, Debug)]
struct Special {
    text: Box<[u8]>,
    id: u32,
    /// Steers a model, so that plain text does not have it.
    control: bool,
}

/// Numbers of sorts of tokens: ordinary, and those that are found in a text as they are.
const NORMAL: u64 = 1;
const CONTROL: u64 = 3;
const USER: u64 = 4;

impl Tokenizer {
    /// The tokenizer in a GGUF file, a path or its bytes.
    ///
    /// Fails with [`Error::Mismatch`], which names the entry, if the file has none or one of another sort.
    pub fn load<'a>(source: impl Into<WeightSource<'a>>) -> Result<Tokenizer> {
        let source = source.into();
        let file = match &source {
            WeightSource::Path(path) => FileBytes::open(path)?,
            WeightSource::Bytes(bytes) => FileBytes::Given(bytes),
        };
        let problem =
            |reason| Error::Weights { from: source.to_string(), problems: vec![WeightProblem::Header(reason)] };
        Tokenizer::from_header(&Header::read(file.bytes()).map_err(problem)?)
    }

    fn from_header(header: &Header<'_>) -> Result<Tokenizer> {
        let refuse = |key: &str, expected: String, found: String| Error::Mismatch { name: key.into(), expected, found };
        let one_of = |key: &str, names: &[&str]| {
            let value = header.get(key);
            let found = value.map_or("none".to_string(), |value| value.to_string());
            let at = names.iter().position(|name| value.and_then(Value::text) == Some(name));
            at.ok_or_else(|| refuse(key, format!("one of {}", names.join(", ")), found))
        };
        one_of("tokenizer.ggml.model", &["gpt2"])?;
        let names: Vec<&str> = Split::NAMES.iter().map(|(name, _)| *name).collect();
        let split = Split::NAMES[one_of("tokenizer.ggml.pre", &names)?].1;
        let array = |key: &str| -> Result<Array<'_>> {
            let found = header.get(key);
            let expected = || refuse(key, "an array".into(), found.map_or("none".into(), |value| value.to_string()));
            found.and_then(Value::array).ok_or_else(expected)
        };
        let key = "tokenizer.ggml.tokens";
        let text = |(id, value): (usize, Value<'_>)| -> Result<Box<str>> {
            let expected = || refuse(key, "strings of UTF-8".into(), format!("{value} as token {id}"));
            value.text().map(Box::from).ok_or_else(expected)
        };
        let texts = array(key)?.iter().enumerate().map(text).collect::<Result<Vec<Box<str>>>>()?;
        let count = u32::try_from(texts.len()).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| refuse(key, "1 to 2^32 - 1 tokens".into(), texts.len().to_string()))?;
        let key = "tokenizer.ggml.token_type";
        let kinds: Vec<u64> = match header.get(key) {
            None => vec![NORMAL; texts.len()],
            Some(_) => array(key)?.iter().map(|kind| kind.unsigned().unwrap_or(0)).collect(),
        };
        if kinds.len() != texts.len() {
            return Err(refuse(key, format!("{} values", texts.len()), kinds.len().to_string()));
        }
        // Of tokens with one text the first counts.
        let mut ids = BTreeMap::new();
        for (id, text) in (0..count).zip(&texts) {
            ids.entry(&**text).or_insert(id);
        }
        let key = "tokenizer.ggml.merges";
        let bpe = Bpe::new(&ids, array(key)?.iter().map(Value::text))
            .map_err(|found| refuse(key, "pairs of tokens with a space between".into(), found))?;
        let mut special = vec![];
        for ((id, text), kind) in (0..count).zip(&texts).zip(&kinds) {
            if matches!(*kind, CONTROL | USER) && !text.is_empty() && ids.get(&**text) == Some(&id) {
                special.push(Special { text: text.as_bytes().into(), id, control: *kind == CONTROL });
            }
        }
        special.sort_by_key(|special| std::cmp::Reverse(special.text.len()));
        let id = |key: &str| -> Result<Option<u32>> {
            let Some(value) = header.get(key) else { return Ok(None) };
            let id = value.unsigned().and_then(|id| u32::try_from(id).ok()).filter(|id| *id < count);
            id.map(Some).ok_or_else(|| refuse(key, format!("a token below {count}"), value.to_string()))
        };
        let begins = header.get("tokenizer.ggml.add_bos_token").and_then(Value::truth).unwrap_or(false);
        let begin = id("tokenizer.ggml.bos_token_id")?.filter(|_| begins);
        let end = id("tokenizer.ggml.eos_token_id")?;
        let bytes = |text: &str, kind: &u64| match *kind {
            NORMAL => bytes_of(text).into(),
            _ => text.as_bytes().into(),
        };
        let tokens = texts.iter().zip(&kinds).map(|(text, kind)| bytes(text, kind)).collect();
        let template = header.get("tokenizer.chat_template").and_then(Value::text).map(str::to_string);
        Ok(Tokenizer { tokens, special, split, bpe, begin, end, template })
    }

    /// The tokens of a text. Special tokens in it are tokens: for text that a program wrote.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_with(text, true)
    }

    /// The tokens of a text in which special tokens that steer a model are text: for what others wrote.
    pub fn encode_plain(&self, text: &str) -> Vec<u32> {
        self.encode_with(text, false)
    }

    fn encode_with(&self, text: &str, control: bool) -> Vec<u32> {
        let mut starts = [false; 256];
        let special: Vec<&Special> = self.special.iter().filter(|special| control || !special.control).collect();
        special.iter().for_each(|special| starts[usize::from(special.text[0])] = true);
        let mut tokens = vec![];
        let plain = |text: &str, tokens: &mut Vec<u32>| {
            self.split.pieces(text).into_iter().for_each(|piece| self.bpe.encode(piece, tokens));
        };
        let (mut start, mut at) = (0, 0);
        while at < text.len() {
            let rest = &text.as_bytes()[at..];
            let found =
                starts[usize::from(rest[0])].then(|| special.iter().find(|special| rest.starts_with(&special.text)));
            match found.flatten() {
                // A special token begins and ends where characters do, and so does what is between two.
                Some(special) => {
                    plain(&text[start..at], &mut tokens);
                    tokens.push(special.id);
                    at += special.text.len();
                    start = at;
                }
                None => at += 1,
            }
        }
        plain(&text[start..], &mut tokens);
        tokens
    }

    /// The text of tokens, special ones too; U+FFFD stands for bytes that are no UTF-8. Fails if one is no token.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        let mut bytes = vec![];
        for token in tokens {
            bytes.extend(self.bytes(*token)?);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Text while tokens come.
    pub fn stream(&self) -> TextStream<'_> {
        TextStream::new(self)
    }

    /// The id of a token whose text, or whose bytes, are these.
    pub fn id(&self, text: &str) -> Option<u32> {
        (0u32..).zip(&self.tokens).find(|(_, token)| ***token == *text.as_bytes()).map(|(id, _)| id)
    }

    /// How many tokens there are.
    pub fn count(&self) -> usize {
        self.tokens.len()
    }

    /// The token that stands before a text, if the model wants one there.
    pub fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// The token that ends a text or a turn.
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    /// The template of conversations, as the file has it (Jinja); it is not run here.
    pub fn chat_template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    pub(super) fn bytes(&self, token: u32) -> Result<&[u8]> {
        let missing = || Error::Mismatch {
            name: "token".into(),
            expected: format!("an id below {}", self.tokens.len()),
            found: token.to_string(),
        };
        self.tokens.get(token as usize).map(|bytes| &**bytes).ok_or_else(missing)
    }
}
