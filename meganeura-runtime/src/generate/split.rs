//! Text in pieces that no token crosses.
//!
//! In: text without special tokens. Out: its pieces, which together are the text. What GPT-2 does is, at each place,
//! the first that matches of: `'s 't 're 've 'm 'll 'd`; a run of letters, of numbers, or of what is neither nor
//! white space, each with one space before it if there is one; white space up to the last of it that something
//! follows; white space.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// How text is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// As GPT-2 does.
    Gpt2,
    /// Each number character alone, and what lies between them as GPT-2 does.
    Digits,
}

impl Split {
    /// `tokenizer.ggml.pre` of those that are known.
    pub(super) const NAMES: &[(&str, Split)] =
        &[("gpt-2", Split::Gpt2), ("smollm", Split::Digits), ("starcoder", Split::Digits), ("refact", Split::Digits)];

    /// The pieces in order.
    pub(super) fn pieces(self, text: &str) -> Vec<&str> {
        let mut pieces = vec![];
        match self {
            Split::Gpt2 => gpt2(text, &mut pieces),
            Split::Digits => {
                let mut start = 0;
                for (at, digit) in text.char_indices().filter(|(_, c)| c.is_numeric()) {
                    gpt2(&text[start..at], &mut pieces);
                    start = at + digit.len_utf8();
                    pieces.push(&text[at..start]);
                }
                gpt2(&text[start..], &mut pieces);
            }
        }
        pieces
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    Other,
}

fn class(c: char) -> Class {
    if c.is_whitespace() {
        Class::Space
    } else if c.is_numeric() {
        Class::Number
    } else if c.is_ascii() {
        if c.is_ascii_alphabetic() { Class::Letter } else { Class::Other }
    } else if c.general_category_group() == GeneralCategoryGroup::Letter {
        // The standard library's alphabetic characters are more: vowel signs, letter-like numbers, circled letters.
        Class::Letter
    } else {
        Class::Other
    }
}

fn gpt2<'a>(text: &'a str, pieces: &mut Vec<&'a str>) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"].iter().find(|end| rest.starts_with(**end)) {
            Some(end) => end.len(),
            None if class(first) != Class::Space => run(rest, class(first)),
            None => {
                let behind = &rest[first.len_utf8()..];
                match behind.chars().next().map(class) {
                    Some(next) if first == ' ' && next != Class::Space => 1 + run(behind, next),
                    _ => spaces(rest),
                }
            }
        };
        let (piece, after) = rest.split_at(length);
        pieces.push(piece);
        rest = after;
    }
}

/// Bytes of the characters of one class that a text begins with.
fn run(text: &str, of: Class) -> usize {
    text.find(|c| class(c) != of).unwrap_or(text.len())
}

/// Bytes of the white space that a text begins with, without the last character if something follows; at least one.
fn spaces(text: &str) -> usize {
    let all = run(text, Class::Space);
    match text[..all].char_indices().next_back() {
        Some((last, _)) if last > 0 && all < text.len() => last,
        _ => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_of_the_expression() {
        for (text, pieces) in [
            ("", vec![]),
            ("Hello world", vec!["Hello", " world"]),
            ("I'm, they'll we've'd", vec!["I", "'m", ",", " they", "'ll", " we", "'ve", "'d"]),
            ("don 't", vec!["don", " '", "t"]),
            ("it'S", vec!["it", "'", "S"]),
            ("a  b", vec!["a", " ", " b"]),
            ("a   b  ", vec!["a", "  ", " b", "  "]),
            ("a\n b", vec!["a", "\n", " b"]),
            ("a\n\nb", vec!["a", "\n", "\n", "b"]),
            (" \n", vec![" \n"]),
            ("\tx", vec!["\t", "x"]),
            ("x 12a3 !?=1", vec!["x", " 12", "a", "3", " !?=", "1"]),
            ("naïve Ελλ 中文。", vec!["naïve", " Ελλ", " 中文", "。"]),
            // A vowel sign is a mark, no letter; ² and Ⅳ are numbers; a no-break space is white but no space.
            ("कि", vec!["क", "ि"]),
            ("x²Ⅳ", vec!["x", "²Ⅳ"]),
            ("a\u{a0}b", vec!["a", "\u{a0}", "b"]),
            ("a \u{a0}b", vec!["a", " ", "\u{a0}", "b"]),
            ("ⓐ", vec!["ⓐ"]),
        ] {
            assert_eq!(Split::Gpt2.pieces(text), pieces, "{text:?}");
        }
    }

    #[test]
    fn digits_stand_alone_and_end_what_is_before_them() {
        for (text, pieces) in [
            ("x 12a", vec!["x", " ", "1", "2", "a"]),
            ("a  3", vec!["a", "  ", "3"]),
            ("2018-01", vec!["2", "0", "1", "8", "-", "0", "1"]),
            ("½ 's", vec!["½", " '", "s"]),
        ] {
            assert_eq!(Split::Digits.pieces(text), pieces, "{text:?}");
        }
    }
}
