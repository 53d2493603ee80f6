//! Text from models and tools as Postgres takes it: a NUL, which neither `text` nor `jsonb` holds,
//! is replaced by U+FFFD.

use serde_json::Value;
use std::borrow::Cow;

const STAND_IN: &str = "\u{fffd}";

pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', STAND_IN))
    } else {
        Cow::Borrowed(text)
    }
}

pub(super) fn value(value: &Value) -> Cow<'_, Value> {
    if has_nul(value) {
        let mut value = value.clone();
        clean(&mut value);
        Cow::Owned(value)
    } else {
        Cow::Borrowed(value)
    }
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
}
