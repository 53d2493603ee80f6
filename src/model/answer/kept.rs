//! Puts together the fields of an answer that the service does not know, from the pieces of a stream.
//!
//! Strings are appended, objects are merged field by field, entries of arrays by their `index`, and what is neither is replaced. A
//! null changes nothing. What is kept is bounded; how deep it is, the parser of JSON bounds.

use super::unfit::Unfit;
use serde_json::{Map, Value};

/// The most that is kept of an answer, in bytes as counted by `weight`.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;
/// What a value takes beside its text.
const NODE_BYTES: usize = 16;
/// The most entries of an array that are told apart by their index.
const MAX_ENTRIES: usize = 4096;

/// Fields that say what a thing is. They come whole, in each piece again, and the last one holds.
const LABELS: [&str; 10] = [
    "type", "id", "format", "role", "name", "model", "object", "status", "phase", "channel",
];
/// Fields of an entry without an index that have a piece of its text.
const TEXTS: [&str; 3] = ["thinking", "text", "summary"];

/// How much is kept, of all fields of an answer together.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    bytes: usize,
}

impl Keeper {
    /// Adds a piece of a field.
    pub(super) fn add(
        &mut self,
        fields: &mut Map<String, Value>,
        name: &str,
        piece: &Value,
    ) -> Result<(), Unfit> {
        if piece.is_null() {
            return Ok(());
        }
        match fields.get_mut(name) {
            Some(known) => self.merge(name, known, piece),
            None => {
                self.count(name.len() + weight(piece))?;
                fields.insert(name.to_owned(), clean(piece));
                Ok(())
            }
        }
    }

    fn merge(&mut self, name: &str, known: &mut Value, piece: &Value) -> Result<(), Unfit> {
        match (known, piece) {
            (_, Value::Null) => Ok(()),
            (Value::String(known), Value::String(piece)) => self.join(name, known, piece),
            (Value::Object(known), Value::Object(piece)) => {
                let mut pieces = piece.iter();
                pieces.try_for_each(|(name, piece)| self.add(known, name, piece))
            }
            (Value::Array(known), Value::Array(piece)) => {
                let mut pieces = piece.iter();
                pieces.try_for_each(|piece| self.enter(known, piece))
            }
            (known, piece) => {
                self.count(weight(piece))?;
                *known = clean(piece);
                Ok(())
            }
        }
    }

    fn join(&mut self, name: &str, known: &mut String, piece: &str) -> Result<(), Unfit> {
        let is_label = LABELS.contains(&name) || name.ends_with("_id") || name.ends_with("_type");
        // A signature that comes in each piece again is the same one.
        if piece.is_empty() || (name.contains("signature") && known == piece) {
            return Ok(());
        }
        self.count(piece.len())?;
        if is_label {
            known.clear();
        }
        known.push_str(&super::storable(piece));
        Ok(())
    }

    /// Adds an entry to an array, or merges it into the one that it continues.
    fn enter(&mut self, known: &mut Vec<Value>, piece: &Value) -> Result<(), Unfit> {
        let same = match piece.get("index").filter(|index| index.is_number()) {
            Some(index) => known
                .iter()
                .rposition(|entry| entry.get("index") == Some(index)),
            None => known
                .len()
                .checked_sub(1)
                .filter(|last| continues(&known[*last], piece)),
        };
        match same {
            Some(at) => self.merge("", &mut known[at], piece),
            None if known.len() == MAX_ENTRIES => Err(Unfit::TooLarge(
                "a field beside its text has more than 4096 entries",
            )),
            None => {
                self.count(weight(piece))?;
                known.push(clean(piece));
                Ok(())
            }
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), Unfit> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_KEPT_BYTES {
            return Err(Unfit::TooLarge(
                "its fields beside the text, such as reasoning, are longer than 4 MiB",
            ));
        }
        Ok(())
    }
}

/// Whether an entry without an index is a further piece of the one before it: of the same type, with text, and that one is not
/// signed yet.
fn continues(last: &Value, piece: &Value) -> bool {
    let is_signed = last["signature"]
        .as_str()
        .is_some_and(|signature| !signature.is_empty());
    let has_text = |entry: &Value| TEXTS.iter().any(|name| entry[*name].is_string());
    last["type"].is_string()
        && last["type"] == piece["type"]
        && (piece["id"].is_null() || last["id"] == piece["id"])
        && has_text(last)
        && (has_text(piece) || piece["signature"].is_string())
        && !is_signed
}

fn weight(value: &Value) -> usize {
    NODE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(entries) => entries.iter().map(weight).sum(),
            Value::Object(fields) => fields.iter().map(|(name, v)| name.len() + weight(v)).sum(),
            _ => 0,
        }
}

/// The value without NUL, which PostgreSQL cannot store.
fn clean(value: &Value) -> Value {
    match value {
        Value::String(text) => super::storable(text).into(),
        Value::Array(entries) => entries.iter().map(clean).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (super::storable(name), clean(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(pieces: &[Value]) -> Value {
        let (mut keeper, mut fields) = (Keeper::default(), Map::new());
        for piece in pieces {
            keeper.add(&mut fields, "field", piece).unwrap();
        }
        fields.remove("field").unwrap_or(Value::Null)
    }

    #[test]
    fn pieces_are_put_together() {
        for (pieces, whole) in [
            (vec![json!("a"), json!(""), json!("a")], json!("aa")),
            (vec![json!(null)], json!(null)),
            (vec![json!(1), json!(null), json!(2)], json!(2)),
            (
                vec![
                    json!([{"type": "reasoning.text", "index": 0, "text": "a", "format": "f"}]),
                    json!([{"type": "reasoning.text", "index": 0, "text": "b", "format": "f"}]),
                    json!([{"type": "reasoning.encrypted", "index": 1, "data": "x"}]),
                    json!([{"type": "reasoning.text", "index": 0, "signature": "s"}]),
                ],
                json!([
                    {"type": "reasoning.text", "index": 0, "text": "ab", "format": "f", "signature": "s"},
                    {"type": "reasoning.encrypted", "index": 1, "data": "x"},
                ]),
            ),
            (
                vec![
                    json!([{"type": "thinking", "thinking": "a", "signature": null}]),
                    json!([{"type": "thinking", "thinking": "b", "signature": ""}]),
                    json!([{"type": "thinking", "thinking": "", "signature": "s"}]),
                    json!([{"type": "thinking", "thinking": "c", "signature": "t"}]),
                    json!([{"type": "redacted_thinking", "data": "x"}]),
                    json!([{"type": "redacted_thinking", "data": "y"}]),
                ],
                json!([
                    {"type": "thinking", "thinking": "ab", "signature": "s"},
                    {"type": "thinking", "thinking": "c", "signature": "t"},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "redacted_thinking", "data": "y"},
                ]),
            ),
            (
                vec![
                    json!({"google": {"thought_signature": "SIG"}}),
                    json!({"google": {"thought_signature": "SIG"}}),
                ],
                json!({"google": {"thought_signature": "SIG"}}),
            ),
            (vec![json!("a\0b")], json!("a\u{fffd}b")),
        ] {
            assert_eq!(merged(&pieces), whole, "{pieces:?}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut keeper, mut fields) = (Keeper::default(), Map::new());
        let mut add = |piece: &Value| keeper.add(&mut fields, "field", piece);
        let megabyte = json!("x".repeat(1024 * 1024));
        let outcome = (0..5).try_for_each(|_| add(&megabyte));
        assert!(matches!(outcome, Err(Unfit::TooLarge(_))));
        let (mut keeper, mut fields) = (Keeper::default(), Map::new());
        let many: Vec<Value> = (0..5000).map(|index| json!({"index": index})).collect();
        let mut add = |piece: Value| keeper.add(&mut fields, "field", &piece);
        let outcome = add(json!([])).and_then(|()| add(json!(many)));
        assert!(matches!(outcome, Err(Unfit::TooLarge(_))));
        // 50,000 tokens of reasoning, one by one, are no more than their text.
        let (mut keeper, mut fields) = (Keeper::default(), Map::new());
        for _ in 0..50_000 {
            keeper.add(&mut fields, "field", &json!(" tok")).unwrap();
        }
        assert_eq!(fields["field"].as_str().map(str::len), Some(200_000));
    }
}
