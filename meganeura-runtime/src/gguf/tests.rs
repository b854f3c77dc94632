#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::gguf::{GgufFile, array, string, strings};

fn refused(bytes: &[u8]) -> String {
    Header::read(bytes).unwrap_err()
}

#[test]
fn every_type_of_value_is_read() {
    let nested = array(9, 2, &[array(0, 3, &[1, 2, 255]), array(8, 1, &string("ü"))].concat());
    let file = GgufFile::default()
        .entry("u8", 0, &[200])
        .entry("i8", 1, &[0x80])
        .entry("u16", 2, &60_000u16.to_le_bytes())
        .entry("i16", 3, &(-30_000i16).to_le_bytes())
        .number("u32", u32::MAX)
        .entry("i32", 5, &i32::MIN.to_le_bytes())
        .entry("f32", 6, &0.1f32.to_le_bytes())
        .entry("yes", 7, &[1])
        .entry("no", 7, &[0])
        .text("text", "größer")
        .entry("nested", 9, &nested)
        .entry("u64", 10, &u64::MAX.to_le_bytes())
        .entry("i64", 11, &i64::MIN.to_le_bytes())
        .entry("f64", 12, &0.1f64.to_le_bytes())
        .entry("strings", 9, &strings(&["a", "", "c"]))
        .entry("empty", 9, &array(12, 0, &[]));
    for version in [2, 3] {
        let bytes = file.clone().version(version).bytes();
        let header = Header::read(&bytes).unwrap();
        let get = |key| header.get(key).unwrap();
        assert_eq!(get("u8"), Value::Unsigned(200));
        assert_eq!(get("i8"), Value::Signed(-128));
        assert_eq!(get("u16"), Value::Unsigned(60_000));
        assert_eq!(get("i16"), Value::Signed(-30_000));
        assert_eq!(get("u32"), Value::Unsigned(u32::MAX.into()));
        assert_eq!(get("i32"), Value::Signed(i32::MIN.into()));
        assert_eq!(get("f32"), Value::Float(0.1f32.into()));
        assert_eq!((get("yes").truth(), get("no").truth(), get("u8").truth()), (Some(true), Some(false), None));
        assert_eq!((get("text").text(), get("u8").text()), (Some("größer"), None));
        assert_eq!(get("u64").unsigned(), Some(u64::MAX));
        assert_eq!(get("i64"), Value::Signed(i64::MIN));
        assert_eq!((get("i64").unsigned(), get("u8").unsigned()), (None, Some(200)));
        assert_eq!(get("f64"), Value::Float(0.1));
        let list: Vec<_> = get("strings").array().unwrap().iter().map(|value| value.text().unwrap()).collect();
        assert_eq!(list, ["a", "", "c"]);
        assert_eq!(get("empty").array().unwrap().iter().count(), 0);
        let nested: Vec<Vec<Value<'_>>> =
            get("nested").array().unwrap().iter().map(|value| value.array().unwrap().iter().collect()).collect();
        assert_eq!(nested[0], [Value::Unsigned(1), Value::Unsigned(2), Value::Unsigned(255)]);
        assert_eq!(nested[1][0].text(), Some("ü"));
        assert!(header.get("none").is_none());
    }
}

#[test]
fn tensors_and_the_alignment_are_read() {
    let file = GgufFile::default().aligned(64).number("general.alignment", 64);
    let file = file.tensor("a", &[3, 2], 0, &[1; 24]).tensor("b", &[], 1, &[2; 2]).tensor("c", &[4, 3, 2, 1], 14, &[3]);
    let bytes = file.bytes();
    let header = Header::read(&bytes).unwrap();
    let (a, b, c) = (&header.tensors[0], &header.tensors[1], &header.tensors[2]);
    assert_eq!((a.name, &a.shape[..], a.kind, a.offset), ("a", &[3, 2][..], 0, 0));
    assert_eq!((b.name, &b.shape[..], b.kind, b.offset), ("b", &[][..], 1, 64));
    assert_eq!((c.name, &c.shape[..], c.kind, c.offset), ("c", &[4, 3, 2, 1][..], 14, 128));
    assert_eq!((header.data % 64, bytes[header.data as usize], header.alignment), (0, 1, 64));
    let plain = GgufFile::default().tensor("a", &[1], 0, &[7; 4]).bytes();
    assert_eq!(Header::read(&plain).unwrap().alignment, 32);
}

#[test]
fn a_header_cut_anywhere_is_refused() {
    let file =
        GgufFile::default().text("k", "v").entry("n", 9, &array(9, 2, &[array(0, 1, &[5]), strings(&["x"])].concat()));
    let bytes = file.tensor("a", &[2, 1], 0, &[0; 8]).bytes();
    let end = Header::read(&bytes).unwrap();
    // Behind the last number of the last tensor only padding is missing, and the data.
    let whole = bytes.windows(4).position(|window| window == [b'a', 2, 0, 0]).unwrap() + 1 + 4 + 16 + 4 + 8;
    assert!((whole as u64) < end.data && end.tensors.len() == 1);
    for cut in 0..whole {
        let message = refused(&bytes[..cut]);
        assert!(message.contains("expected") && message.contains("found"), "{cut}: {message}");
    }
    for cut in whole..=bytes.len() {
        assert_eq!(Header::read(&bytes[..cut]).unwrap().tensors, end.tensors, "{cut}");
    }
}

#[test]
fn numbers_that_promise_more_than_there_is_are_refused_without_allocating() {
    let file = GgufFile::default().text("k", "v").tensor("a", &[1], 0, &[0; 4]);
    for count in [u64::MAX, 1 << 62, 1 << 40] {
        assert!(refused(&file.counted(count, 1)).contains("to the end of the file"), "{count}");
        assert!(refused(&file.counted(1, count)).contains("found"), "{count}");
    }
    for (kind, count) in
        [(0, u64::MAX), (12, u64::MAX / 8 + 1), (12, 1 << 61), (8, u64::MAX), (9, 1 << 50), (7, 1 << 63)]
    {
        let bytes = GgufFile::default().entry("k", 9, &array(kind, count, &[0; 24])).bytes();
        assert!(refused(&bytes).starts_with("`k`"), "{kind} {count}: {}", refused(&bytes));
    }
    let long = [&u64::MAX.to_le_bytes()[..], b"abc"].concat();
    assert!(refused(&GgufFile::default().entry("k", 8, &long).bytes()).contains("expected 18446744073709551615 bytes"));
}

#[test]
fn deep_arrays_are_refused() {
    let nest = |depth| (0..depth).fold(array(0, 1, &[1]), |inner, _| array(9, 1, &inner));
    assert!(Header::read(&GgufFile::default().entry("k", 9, &nest(3)).bytes()).is_ok());
    assert!(refused(&GgufFile::default().entry("k", 9, &nest(4)).bytes()).contains("at most 4 deep"));
    assert!(refused(&GgufFile::default().entry("k", 9, &nest(100_000)).bytes()).contains("at most 4 deep"));
}

#[test]
fn wrong_headers_are_refused_with_what_is_wrong() {
    let file = GgufFile::default().tensor("a", &[1], 0, &[0; 4]);
    let version = |version| refused(&file.clone().version(version).bytes());
    assert_eq!(version(1), "expected version 2 or 3, found 1");
    assert_eq!(version(4), "expected version 2 or 3, found 4");
    assert_eq!(version(3u32.swap_bytes()), "expected a little-endian file, found big-endian");
    assert!(refused(b"GGML\x03\0\0\0").starts_with("expected `GGUF`, found"));
    for (file, message) in [
        (file.clone().entry("k", 13, &[0; 8]), "`k`: expected a type of value from 0 to 12, found 13"),
        (file.clone().entry("k", 7, &[2]), "`k`: expected a truth value of 0 or 1, found 2"),
        (file.clone().text("k", "v").text("k", "w"), "expected keys that differ, found `k` twice"),
        (file.clone().tensor("a", &[1], 0, &[0; 4]), "expected tensors whose names differ, found `a` twice"),
        (file.clone().tensor_at("b", &[1; 5], 0, 0), "`b`: expected at most 4 axes, found 5"),
        (file.clone().tensor_at("b", &[1], 0, 16), "`b`: expected its data at a multiple of 32 bytes, found it at 16"),
        (
            file.clone().number("general.alignment", 0),
            "`general.alignment`: expected a multiple of 8 up to 2^30, found 0",
        ),
        (
            file.clone().number("general.alignment", 12),
            "`general.alignment`: expected a multiple of 8 up to 2^30, found 12",
        ),
        (
            file.clone().text("general.alignment", "x"),
            "`general.alignment`: expected a multiple of 8 up to 2^30, found `x`",
        ),
    ] {
        assert_eq!(refused(&file.bytes()), message);
    }
    let mut name = file.bytes();
    let at = name.windows(9).position(|window| window == [1, 0, 0, 0, 0, 0, 0, 0, b'a']).unwrap() + 8;
    name[at] = 0xff;
    assert!(refused(&name).contains("expected UTF-8"));
}

#[test]
fn no_byte_changed_makes_it_panic() {
    let file = GgufFile::default().number("general.alignment", 32).entry("n", 9, &strings(&["x", "y"]));
    let bytes = file.tensor("a", &[2, 1], 0, &[0; 8]).tensor("b", &[32], 8, &[0; 34]).bytes();
    let mut refusals = 0;
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at].wrapping_add(1)] {
            let mut changed = bytes.clone();
            changed[at] = value;
            refusals += usize::from(Header::read(&changed).is_err());
        }
    }
    assert!(refusals > bytes.len(), "{refusals}");
}
