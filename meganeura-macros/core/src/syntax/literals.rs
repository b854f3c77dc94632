//! Numbers and strings, as `proc_macro2::Literal` prints them.

use super::ast::{ExprKind, Text};
use super::parser::Parsed;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Literal, Span};

/// What a literal stands for, and whether it carries a minus, as literals that macros make may.
pub(super) fn value(literal: &Literal) -> Parsed<(bool, ExprKind)> {
    let text = literal.to_string();
    let span = literal.span();
    if let Some(value) = string(&text) {
        return Ok((false, ExprKind::Text(value)));
    }
    let (negative, digits) = text.strip_prefix('-').map_or((false, text.as_str()), |digits| (true, digits));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(Error::new(span, diag::not_a_value(&text)));
    }
    number(digits, span).map(|kind| (negative, kind))
}

pub(super) fn text(literal: &Literal) -> Option<Text> {
    string(&literal.to_string()).map(|value| Text { value, span: literal.span() })
}

fn number(digits: &str, span: Span) -> Parsed<ExprKind> {
    let radix = match digits.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    let too_large = || Error::new(span, diag::number_too_large());
    let with_suffix = |number: &str, suffix: &str| Err(Error::new(span, diag::number_suffix(number, suffix)));
    if radix != 10 {
        let rest = &digits[2..];
        let end = rest.find(|char: char| char != '_' && !char.is_digit(radix)).unwrap_or(rest.len());
        let (whole, suffix) = rest.split_at(end);
        if !suffix.is_empty() {
            return with_suffix(&digits[..2 + end], suffix);
        }
        return u64::from_str_radix(&whole.replace('_', ""), radix).map(ExprKind::Int).map_err(|_| too_large());
    }
    let end = decimal_length(digits);
    let (number, suffix) = digits.split_at(end);
    if !suffix.is_empty() {
        return with_suffix(number.trim_end_matches('_'), suffix);
    }
    let plain = number.replace('_', "");
    if plain.bytes().all(|byte| byte.is_ascii_digit()) {
        return plain.parse().map(ExprKind::Int).map_err(|_| too_large());
    }
    match plain.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(ExprKind::Float(value)),
        _ => Err(too_large()),
    }
}

/// How much of a decimal literal is the number; the rest is its suffix.
fn decimal_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = |mut at: usize| {
        while bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_') {
            at += 1;
        }
        at
    };
    let mut at = run(0);
    if bytes.get(at) == Some(&b'.') {
        at = run(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = run(at + 1 + sign);
        if bytes[at + 1 + sign..end].iter().any(u8::is_ascii_digit) {
            return end;
        }
    }
    at
}

/// The value of `"..."` or `r#"..."#`; nothing for other literals.
fn string(text: &str) -> Option<String> {
    if let Some(raw) = text.strip_prefix('r') {
        let bare = raw.trim_start_matches('#');
        let hashes = &raw[..raw.len() - bare.len()];
        return Some(bare.strip_prefix('"')?.strip_suffix(hashes)?.strip_suffix('"')?.to_owned());
    }
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut value = String::new();
    let mut chars = inner.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\\' {
            value.push(char);
            continue;
        }
        match chars.next()? {
            'n' => value.push('\n'),
            'r' => value.push('\r'),
            't' => value.push('\t'),
            '0' => value.push('\0'),
            'x' => {
                let code: String = chars.by_ref().take(2).collect();
                value.push(char::from(u8::from_str_radix(&code, 16).ok()?));
            }
            'u' => {
                let code: String = chars.by_ref().skip(1).take_while(|char| *char != '}').collect();
                value.push(char::from_u32(u32::from_str_radix(&code.replace('_', ""), 16).ok()?)?);
            }
            '\n' => while chars.next_if(|char| char.is_whitespace()).is_some() {},
            other => value.push(other),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn parsed(text: &str) -> Result<(bool, ExprKind), String> {
        value(&text.parse().unwrap()).map_err(|error| error.message)
    }

    #[test]
    fn integers_keep_every_bit_and_floats_are_exact() {
        for (text, expected) in
            [("0", 0), ("1_000", 1000), ("0x1F", 31), ("0b1_01", 5), ("0o17", 15), ("18446744073709551615", u64::MAX)]
        {
            assert!(matches!(parsed(text), Ok((false, ExprKind::Int(value))) if value == expected), "{text}");
        }
        for (text, expected) in [("1e-5", 1e-5), ("0.1", 0.1), ("2.", 2.0), ("1_0.5E+3", 10500.0), ("1E3", 1000.0)] {
            assert!(matches!(parsed(text), Ok((false, ExprKind::Float(value))) if value == expected), "{text}");
        }
    }

    #[test]
    fn literals_that_macros_make_negative_keep_their_sign() {
        assert!(matches!(value(&Literal::i64_unsuffixed(-3)), Ok((true, ExprKind::Int(3)))));
    }

    #[test]
    fn suffixes_and_numbers_out_of_range_are_mistakes() {
        let suffix = "numbers have no type suffix here: write `1`, not `1u32`";
        assert_eq!(parsed("1u32").unwrap_err(), suffix);
        assert_eq!(parsed("1_u32").unwrap_err(), suffix);
        assert_eq!(parsed("1.5f32").unwrap_err(), "numbers have no type suffix here: write `1.5`, not `1.5f32`");
        assert_eq!(parsed("0x1u8").unwrap_err(), "numbers have no type suffix here: write `0x1`, not `0x1u8`");
        assert_eq!(parsed("18446744073709551616").unwrap_err(), "this number is too large");
        assert_eq!(parsed("1e999").unwrap_err(), "this number is too large");
        assert_eq!(parsed("'a'").unwrap_err(), "expected a number or a value, found `'a'`");
        assert_eq!(parsed("b\"a\"").unwrap_err(), "expected a number or a value, found `b\"a\"`");
    }

    #[test]
    fn strings_resolve_their_escapes() {
        let parsed = |literal: &str| text(&literal.parse::<Literal>().unwrap()).unwrap().value;
        assert_eq!(parsed(r#""a.b""#), "a.b");
        assert_eq!(parsed(r#""\"\\\n\x41\u{00_e9}""#), "\"\\\nA\u{e9}");
        assert_eq!(parsed("\"a\\\n   b\""), "ab");
        assert_eq!(parsed(r##"r#"a"\n"#"##), "a\"\\n");
    }
}
