//! Values that PostgreSQL cannot keep unchanged: text from models and tools, where U+FFFD replaces
//! NUL; and points in time.
//!
//! `text` holds no NUL. `json` holds its escape, but no function reads a value that has one.

use serde_json::Value;
use std::borrow::Cow;
use time::OffsetDateTime;

const STAND_IN: &str = "\u{fffd}";

pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', STAND_IN))
    } else {
        Cow::Borrowed(text)
    }
}

pub(in crate::store) fn value(value: &Value) -> Cow<'_, Value> {
    if has_nul(value) {
        let mut value = value.clone();
        clean(&mut value);
        Cow::Owned(value)
    } else {
        Cow::Borrowed(value)
    }
}

/// The moment as it is read once it is written: in microseconds.
pub(super) fn moment(written: OffsetDateTime) -> OffsetDateTime {
    let beyond = written.nanosecond() % 1_000;
    written - time::Duration::nanoseconds(beyond.into())
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}

fn clean(value: &mut Value) {
    match value {
        Value::String(said) if said.contains('\0') => *said = said.replace('\0', STAND_IN),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => {
            for (name, mut value) in std::mem::take(fields) {
                clean(&mut value);
                fields.insert(text(&name).into_owned(), value);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_nul_is_left_anywhere() {
        let dirty = json!({"a\0": ["b\0", {"c": "\0\0"}], "d": 1});
        assert_eq!(
            *value(&dirty),
            json!({"a\u{fffd}": ["b\u{fffd}", {"c": "\u{fffd}\u{fffd}"}], "d": 1})
        );
        let plain = json!({"a": ["b", null]});
        assert!(matches!(value(&plain), Cow::Borrowed(_)));
        assert_eq!(text("a\0b"), "a\u{fffd}b");
    }

    #[test]
    fn fields_keep_their_order() {
        let written =
            json!({"zeta": 1, "b\0": {"long": "\0", "a": null}, "a": [{"yy": 1, "x": 2}]});
        assert_eq!(
            value(&written).to_string(),
            "{\"zeta\":1,\"b\u{fffd}\":{\"long\":\"\u{fffd}\",\"a\":null},\"a\":[{\"yy\":1,\"x\":2}]}"
        );
    }
}
