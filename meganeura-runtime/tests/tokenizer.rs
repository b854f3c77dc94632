//! Tokenizers in GGUF files: text to tokens and back, special tokens, text while tokens come, wrong files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use meganeura_runtime::Error;
use meganeura_runtime::generate::Tokenizer;
use meganeura_runtime::testing::gguf::{GgufFile, array, strings};

/// The characters by which vocabularies write bytes.
fn alphabet() -> Vec<String> {
    let printable = |byte: u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut others = 0x100..;
    let code = |byte| if printable(byte) { byte } else { others.next().unwrap() };
    (0..256).map(code).map(|code| char::from_u32(code).unwrap().to_string()).collect()
}

/// Ids behind the 256 bytes.
const HE: u32 = 256;
const LL: u32 = 257;
const HELL: u32 = 258;
const SPACE_HE: u32 = 259;
const START: u32 = 260;
const STARTS: u32 = 261;
const USER: u32 = 262;

fn types(count: usize) -> Vec<u8> {
    let kind = |id: usize| match id as u32 {
        START | STARTS => 3i32,
        USER => 4,
        _ => 1,
    };
    array(5, count as u64, &(0..count).flat_map(|id| kind(id).to_le_bytes()).collect::<Vec<u8>>())
}

/// A vocabulary of all bytes and a few merges.
fn file(merges: &[&str]) -> GgufFile {
    let mut tokens = alphabet();
    tokens.extend(["he", "ll", "hell", "Ġhe", "<s>", "<s>s", "<user>"].map(String::from));
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    GgufFile::default()
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "smollm")
        .entry("tokenizer.ggml.tokens", 9, &strings(&tokens))
        .entry("tokenizer.ggml.token_type", 9, &types(tokens.len()))
        .entry("tokenizer.ggml.merges", 9, &strings(merges))
        .number("tokenizer.ggml.bos_token_id", START)
        .number("tokenizer.ggml.eos_token_id", STARTS)
}

const MERGES: &[&str] = &["h e", "l l", "Ġ he", "he ll"];

fn tokenizer() -> Tokenizer {
    Tokenizer::load(&file(MERGES).bytes()).unwrap()
}

fn byte(c: char) -> u32 {
    c as u32
}

#[test]
fn pieces_merge_by_rank_and_digits_stand_alone() {
    let tokenizer = tokenizer();
    assert_eq!(tokenizer.encode("hello"), [HELL, byte('o')]);
    // The space merges with `he` before `he` does with `ll`.
    assert_eq!(tokenizer.encode("hell hello"), [HELL, SPACE_HE, LL, byte('o')]);
    assert_eq!(tokenizer.encode("x 12"), [byte('x'), byte(' '), byte('1'), byte('2')]);
    assert_eq!(tokenizer.encode("é"), [0xc3, 0xa9]);
    assert_eq!(tokenizer.encode(""), [0; 0]);
    assert_eq!(
        (tokenizer.count(), tokenizer.id("hell"), tokenizer.id(" he"), tokenizer.id("zz")),
        (263, Some(HELL), Some(SPACE_HE), None)
    );
}

#[test]
fn special_tokens_are_found_in_texts_of_programs_alone() {
    let tokenizer = tokenizer();
    assert_eq!(tokenizer.encode("<s>he<s>she<user>"), [START, HE, STARTS, HE, USER]);
    assert_eq!(tokenizer.encode("é<s>é"), [0xc3, 0xa9, START, 0xc3, 0xa9]);
    let text: Vec<u32> = "<s>".chars().map(byte).collect();
    assert_eq!(tokenizer.encode_plain("<s><user>"), [&text[..], &[USER]].concat());
    assert_eq!(tokenizer.encode("<s"), text[..2]);
    assert_eq!(tokenizer.decode(&[START, HE, STARTS, USER]).unwrap(), "<s>he<s>s<user>");
}

#[test]
fn every_text_comes_back() {
    let tokenizer = tokenizer();
    for text in ["hello  world\r\n\t", "naïve 中文 🦀 \u{0}\u{7f}\u{a0}\u{ad}", "<s>he 2018's", "\u{fffd}", "e\u{301}"]
    {
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)).unwrap(), text);
        assert_eq!(tokenizer.decode(&tokenizer.encode_plain(text)).unwrap(), text);
        let mut stream = tokenizer.stream();
        let streamed: String = tokenizer.encode(text).into_iter().map(|token| stream.push(token).unwrap()).collect();
        assert_eq!((streamed.as_str(), stream.finish().as_str()), (text, ""));
    }
}

#[test]
fn a_character_comes_out_with_its_last_byte() {
    let tokenizer = tokenizer();
    let mut stream = tokenizer.stream();
    let pushed: Vec<String> = [byte('a'), 0xf0, 0x9f, 0xa6, 0x80, HE].map(|token| stream.push(token).unwrap()).to_vec();
    assert_eq!(pushed, ["a", "", "", "", "🦀", "he"]);
    // What can be no character is replaced at once, and what follows is kept.
    let pushed: Vec<String> =
        [0xf0, 0x9f, byte('x'), 0x80, 0xff, 0xc3].map(|token| stream.push(token).unwrap()).to_vec();
    assert_eq!(pushed, ["", "", "\u{fffd}x", "\u{fffd}", "\u{fffd}", ""]);
    assert!(matches!(stream.push(263), Err(Error::Mismatch { .. })));
    assert_eq!(stream.finish(), "\u{fffd}");
    assert_eq!(tokenizer.decode(&[0xf0, 0x9f, byte('x'), 0xc3]).unwrap(), "\u{fffd}x\u{fffd}");
    assert!(tokenizer.decode(&[u32::MAX]).unwrap_err().to_string().contains("an id below 263, found 4294967295"));
}

#[test]
fn begin_end_and_template_are_those_of_the_file() {
    let plain = tokenizer();
    assert_eq!((plain.begin(), plain.end(), plain.chat_template()), (None, Some(STARTS), None));
    let file = file(MERGES).entry("tokenizer.ggml.add_bos_token", 7, &[1]).text("tokenizer.chat_template", "{{ x }}");
    let other = Tokenizer::load(&file.bytes()).unwrap();
    assert_eq!((other.begin(), other.chat_template()), (Some(START), Some("{{ x }}")));
}

#[test]
fn wrong_files_are_refused_with_the_entry_that_is_wrong() {
    let refused = |file: GgufFile| match Tokenizer::load(&file.bytes()).unwrap_err() {
        Error::Mismatch { name, expected, found } => format!("{name}: {expected}: {found}"),
        other => panic!("{other}"),
    };
    assert_eq!(refused(GgufFile::default()), "tokenizer.ggml.model: one of gpt2: none");
    let model = |name| GgufFile::default().text("tokenizer.ggml.model", name);
    assert_eq!(refused(model("llama")), "tokenizer.ggml.model: one of gpt2: `llama`");
    let pre = model("gpt2").text("tokenizer.ggml.pre", "qwen2");
    assert_eq!(refused(pre), "tokenizer.ggml.pre: one of gpt-2, smollm, starcoder, refact: `qwen2`");
    let gpt2 = || model("gpt2").text("tokenizer.ggml.pre", "gpt-2");
    assert_eq!(refused(gpt2()), "tokenizer.ggml.tokens: an array: none");
    let empty = gpt2().entry("tokenizer.ggml.tokens", 9, &strings(&[]));
    assert_eq!(refused(empty), "tokenizer.ggml.tokens: 1 to 2^32 - 1 tokens: 0");
    let numbers = gpt2().entry("tokenizer.ggml.tokens", 9, &array(0, 2, &[1, 2]));
    assert_eq!(refused(numbers), "tokenizer.ggml.tokens: strings of UTF-8: 1 as token 0");
    let tokens = || gpt2().entry("tokenizer.ggml.tokens", 9, &strings(&["a", "b", "ab"]));
    assert_eq!(refused(tokens()), "tokenizer.ggml.merges: an array: none");
    assert_eq!(
        refused(tokens().entry("tokenizer.ggml.token_type", 9, &types(4))),
        "tokenizer.ggml.token_type: 3 values: 4"
    );
    let merges = tokens().entry("tokenizer.ggml.merges", 9, &strings(&["a b", "b a"]));
    assert_eq!(refused(merges), "tokenizer.ggml.merges: pairs of tokens with a space between: `b a` as merge 1");
    let end = file(MERGES).number("tokenizer.ggml.padding", 0);
    assert!(Tokenizer::load(&end.bytes()).is_ok());
    let whole = tokens().entry("tokenizer.ggml.merges", 9, &strings(&["a b"])).number("tokenizer.ggml.eos_token_id", 3);
    assert_eq!(refused(whole), "tokenizer.ggml.eos_token_id: a token below 3: 3");
    assert!(matches!(Tokenizer::load(b"GGUF"), Err(Error::Weights { .. })));
    assert!(matches!(Tokenizer::load("no/such.gguf"), Err(Error::File { .. })));
}
