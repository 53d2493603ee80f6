//! Bounds of JSON that comes from outside.
//!
//! Not here: schemas (`tools::schema`) and values that PostgreSQL cannot keep (`store::runs::storable`).

use serde_json::Value;

/// How deep what a model or a reviewer sends may be nested. What keeps it puts it into values of its own, and a reader of JSON
/// takes 127 levels.
pub const SENT_NESTING_MOST: usize = 64;

/// Whether a value has more levels of arrays and objects than so many.
pub fn is_nested_deeper(value: &Value, most: usize) -> bool {
    let is_deeper = |inner: &Value| is_nested_deeper(inner, most - 1);
    match value {
        Value::Array(items) => most == 0 || items.iter().any(is_deeper),
        Value::Object(fields) => most == 0 || fields.values().any(is_deeper),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn levels_are_those_of_arrays_and_objects() {
        assert!(!is_nested_deeper(&json!(1), 0));
        assert!(is_nested_deeper(&json!([]), 0));
        assert!(!is_nested_deeper(&json!({"a": [1], "b": 2}), 2));
        assert!(is_nested_deeper(&json!({"a": 1, "b": [{}]}), 2));
    }
}
