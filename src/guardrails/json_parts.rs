//! The strings and numbers of a text of JSON, each where it stands, so that one can be replaced and the rest stays as it is, byte
//! for byte.

use std::ops::Range;

/// A string or a number.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its bytes, quotes included.
    pub(super) range: Range<usize>,
    /// What it says.
    pub(super) value: String,
}

/// The parts of an object or an array. None: the text is something else.
pub(super) fn parts(text: &str) -> Option<Vec<Part>> {
    let is_nested = text.trim_ascii_start().starts_with(['{', '[']);
    if !is_nested || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return None;
    }
    let bytes = text.as_bytes();
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        at += 1;
        match bytes[start] {
            b'"' => {
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                // A lone surrogate is no character.
                let value = serde_json::from_str(&text[start..at]);
                parts.push(Part {
                    range: start..at,
                    value: value.unwrap_or_else(|_| text[start..at].to_owned()),
                });
            }
            b'-' | b'0'..=b'9' => {
                let is_of_number =
                    |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                while bytes.get(at).is_some_and(is_of_number) {
                    at += 1;
                }
                parts.push(Part {
                    range: start..at,
                    value: text[start..at].to_owned(),
                });
            }
            _ => {}
        }
    }
    Some(parts)
}
