//! Values of the metadata.

use super::cursor::Cursor;
use std::fmt;

/// Arrays in arrays are followed this far.
const DEEPEST: usize = 4;

/// A value; numbers of all widths are the widest of their sort.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    /// Mostly UTF-8, which nobody guarantees.
    String(&'a [u8]),
    Array(Array<'a>),
}

/// Values of one type, still in the file; they were checked when the header was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Array<'a> {
    kind: u32,
    count: u64,
    bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// Reads a value of a type; arrays are passed over element by element.
    pub(super) fn read(cursor: &mut Cursor<'a>, what: &str, kind: u32) -> Result<Value<'a>, String> {
        Value::nested(cursor, what, kind, 0)
    }

    fn nested(cursor: &mut Cursor<'a>, what: &str, kind: u32, depth: usize) -> Result<Value<'a>, String> {
        Ok(match kind {
            0 => Value::Unsigned(u8::from_le_bytes(cursor.array(what)?).into()),
            1 => Value::Signed(i8::from_le_bytes(cursor.array(what)?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(cursor.array(what)?).into()),
            3 => Value::Signed(i16::from_le_bytes(cursor.array(what)?).into()),
            4 => Value::Unsigned(cursor.u32(what)?.into()),
            5 => Value::Signed(i32::from_le_bytes(cursor.array(what)?).into()),
            6 => Value::Float(f32::from_le_bytes(cursor.array(what)?).into()),
            7 => match cursor.array(what)? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [other] => return Err(format!("`{what}`: expected a truth value of 0 or 1, found {other}")),
            },
            8 => Value::String(cursor.string(what)?),
            9 => {
                if depth == DEEPEST {
                    return Err(format!("`{what}`: expected arrays at most {DEEPEST} deep, found more"));
                }
                let (kind, count) = (cursor.u32(what)?, cursor.u64(what)?);
                let start = cursor.clone();
                match width(kind) {
                    Some(width) => {
                        let length = count.checked_mul(width);
                        cursor.take(length.unwrap_or(u64::MAX), what)?;
                    }
                    // Each element has at least one byte or is refused, so that this ends with the file.
                    None => {
                        for _ in 0..count {
                            Value::nested(cursor, what, kind, depth + 1)?;
                        }
                    }
                }
                Value::Array(Array { kind, count, bytes: start.until(cursor) })
            }
            10 => Value::Unsigned(cursor.u64(what)?),
            11 => Value::Signed(i64::from_le_bytes(cursor.array(what)?)),
            12 => Value::Float(f64::from_le_bytes(cursor.array(what)?)),
            other => return Err(format!("`{what}`: expected a type of value from 0 to 12, found {other}")),
        })
    }

    /// A number that is whole and not negative.
    pub(crate) fn unsigned(self) -> Option<u64> {
        match self {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// A truth value.
    pub(crate) fn truth(self) -> Option<bool> {
        if let Value::Bool(value) = self { Some(value) } else { None }
    }

    /// A string of UTF-8.
    pub(crate) fn text(self) -> Option<&'a str> {
        if let Value::String(bytes) = self { str::from_utf8(bytes).ok() } else { None }
    }

    /// An array.
    pub(crate) fn array(self) -> Option<Array<'a>> {
        if let Value::Array(array) = self { Some(array) } else { None }
    }
}

impl<'a> Array<'a> {
    /// Its values in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = Value<'a>> {
        let mut cursor = Cursor::new(self.bytes);
        (0..self.count).map_while(move |_| Value::read(&mut cursor, "", self.kind).ok())
    }
}

/// Bytes of a number.
fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(value) => write!(f, "{value}"),
            Value::Signed(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::String(bytes) => write!(f, "`{}`", String::from_utf8_lossy(bytes)),
            Value::Array(array) => write!(f, "{} values", array.count),
        }
    }
}
