//! Arguments of calls, against a schema of the author.

use super::finding::Finding;
use crate::json::{SENT_NESTING_MOST, is_nested_deeper};
use jsonschema::Validator;
use serde_json::Value;

/// Arguments that do not fit a schema.
pub(super) fn misfit(schema: &Validator, text: &str) -> Option<Finding> {
    let whole = |kind| {
        Some(Finding {
            range: 0..text.len(),
            kind,
        })
    };
    let arguments = match text.trim_ascii() {
        "" => "{}",
        text => text,
    };
    match serde_json::from_str::<Value>(arguments) {
        Err(_) => whole("arguments that are no JSON"),
        Ok(value) if is_nested_deeper(&value, SENT_NESTING_MOST) => {
            whole("arguments that nest too deep")
        }
        Ok(value) if !schema.is_valid(&value) => whole("arguments that do not fit"),
        Ok(_) => None,
    }
}
