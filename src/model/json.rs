//! Parses JSON as model servers write it.
//!
//! Text that is JSON is read as it is. Where that fails, a lone surrogate is replaced, `NaN` and infinities become null, and line
//! ends in strings are escaped. How many values a text has is bounded before it is read, and so is how deep it is.

use serde_json::Value;

/// The most values of one text.
const MAX_VALUES: usize = 500_000;
/// A text up to this length has fewer.
const SMALL_BYTES: usize = 256 * 1024;
/// Words that JSON does not have.
const NO_NUMBERS: [&str; 4] = ["-Infinity", "Infinity", "NaN", "nan"];

/// Why a text cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is no JSON.
    Invalid,
    /// It has too many values.
    TooMany,
}

/// The value of a text.
pub(super) fn parse(text: &str) -> Result<Value, Unread> {
    if text.len() > SMALL_BYTES && values(text) > MAX_VALUES {
        return Err(Unread::TooMany);
    }
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&mended(text)))
        .map_err(|_| Unread::Invalid)
}

/// At least as many as the values of the text.
pub(super) fn values(text: &str) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Follows the brackets of a JSON text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Brackets {
    depth: usize,
    in_string: bool,
    escaped: bool,
    has_begun: bool,
    is_broken: bool,
}

impl Brackets {
    /// Adds a piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => {
                    self.depth += 1;
                    self.has_begun = true;
                }
                b'}' | b']' if !self.in_string => match self.depth.checked_sub(1) {
                    Some(depth) => self.depth = depth,
                    None => self.is_broken = true,
                },
                _ => {}
            }
        }
    }

    /// Adds a piece as far as it closes the first bracket; returns how far that is.
    pub(super) fn close_in(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, byte) in piece.iter().enumerate() {
            self.push(std::slice::from_ref(byte));
            if matches!(byte, b'}' | b']') && self.are_closed() {
                return Some(at + 1);
            }
        }
        None
    }

    /// Whether each bracket is closed, and there was one.
    pub(super) fn are_closed(&self) -> bool {
        self.has_begun && self.depth == 0 && !self.in_string && !self.is_broken
    }
}

fn mended(text: &str) -> String {
    let mut mended = String::with_capacity(text.len() + 64);
    let (mut rest, mut in_string) = (text, false);
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            '"' => {
                in_string = !in_string;
                mended.push(c);
            }
            '\\' if in_string => {
                let (piece, length) = escape(rest);
                mended.push_str(piece);
                used = length;
            }
            '\n' if in_string => mended.push_str("\\n"),
            '\r' if in_string => mended.push_str("\\r"),
            '\t' if in_string => mended.push_str("\\t"),
            c if in_string && c.is_ascii_control() => mended.push(' '),
            _ if in_string => mended.push(c),
            _ => match NO_NUMBERS.iter().find(|word| rest.starts_with(**word)) {
                Some(word) => {
                    mended.push_str("null");
                    used = word.len();
                }
                None => mended.push(c),
            },
        }
        rest = &rest[used..];
    }
    mended
}

/// An escape as it may stand, and its length in the text.
fn escape(rest: &str) -> (&str, usize) {
    let unit = |at: usize| {
        let digits = rest.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    match unit(0) {
        Some(0xd800..0xdc00) if matches!(unit(6), Some(0xdc00..0xe000)) => (&rest[..12], 12),
        Some(0xd800..0xe000) => ("\\ufffd", 6),
        Some(_) => (&rest[..6], 6),
        None => {
            let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            (&rest[..length], length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_is_nearly_json_is_read() {
        for (text, value) in [
            (
                r#"{"a":"Hi \ud83d there"}"#,
                json!({"a": "Hi \u{fffd} there"}),
            ),
            (r#"{"a":"\udc00\ud83d\ude00"}"#, json!({"a": "\u{fffd}😀"})),
            (r#"{"a":"\ud83d\\u0041"}"#, json!({"a": "\u{fffd}\\u0041"})),
            (
                r#"{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN"}"#,
                json!({"a": null, "b": [null, null], "c": "NaN"}),
            ),
            ("{\"a\":\"x\ny\"}", json!({"a": "x\ny"})),
        ] {
            assert_eq!(parse(text), Ok(value), "{text}");
        }
        assert_eq!(parse("{\"a\":"), Err(Unread::Invalid));
        assert_eq!(parse("\\"), Err(Unread::Invalid));
    }

    #[test]
    fn values_and_depth_are_bounded() {
        let many = format!("[{}0]", "0,".repeat(600_000));
        assert_eq!(parse(&many), Err(Unread::TooMany));
        let deep = "[".repeat(200_000);
        assert_eq!(parse(&deep), Err(Unread::Invalid));
        let text = json!("[,".repeat(600_000)).to_string();
        assert!(parse(&text).is_ok());
    }

    proptest! {
        #[test]
        fn json_is_read_as_it_is_and_nothing_panics(text in "[\\\\u0-9a-fD\"{}:,\\[\\]N \n]{0,60}") {
            let read = parse(&text);
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(read, Ok(value));
            }
        }
    }
}
