//! Bounds of JSON that comes from outside.
//!
//! Not here: schemas (`tools::schema`) and values that PostgreSQL cannot keep (`store::runs::storable`).

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;

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

/// The place of the first key that stands twice in its object, in a text of JSON. Readers differ in which of the two counts
/// (RFC 8259, section 4), so whoever checks a text and whoever acts on it could see two values. None: no key does, or the text
/// is no JSON.
pub fn repeated_key(text: &[u8]) -> Option<String> {
    let (mut place, mut is_found) = ("$".to_owned(), false);
    let seen = Seen {
        place: &mut place,
        is_found: &mut is_found,
    };
    // What else is wrong with it, its reader says.
    let _ = seen.deserialize(&mut serde_json::Deserializer::from_slice(text));
    is_found.then_some(place)
}

/// Goes over a value whose keys are to stand once.
struct Seen<'a> {
    place: &'a mut String,
    is_found: &'a mut bool,
}

impl Seen<'_> {
    fn inner(&mut self) -> Seen<'_> {
        Seen {
            place: self.place,
            is_found: self.is_found,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seen<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seen<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let length = self.place.len();
        for index in 0_usize.. {
            self.place.push_str(&format!("[{index}]"));
            if items.next_element_seed(self.inner())?.is_none() {
                break;
            }
            self.place.truncate(length);
        }
        self.place.truncate(length);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        let (mut keys, length) = (HashSet::new(), self.place.len());
        while let Some(key) = fields.next_key::<String>()? {
            self.place.push('.');
            self.place.push_str(&key);
            if !keys.insert(key) {
                *self.is_found = true;
                return Err(A::Error::custom("a key stands twice"));
            }
            fields.next_value_seed(self.inner())?;
            self.place.truncate(length);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_that_stands_twice_is_found_wherever_it_is() {
        for (text, place) in [
            (r#"{"a":1,"a":1}"#, Some("$.a")),
            (r#"{"a":1,"\u0061":2}"#, Some("$.a")),
            (
                r#"{"a":[{},{"b":{"c":1,"d":[],"c":2}}]}"#,
                Some("$.a[1].b.c"),
            ),
            (r#"[[{"":1,"":2}]]"#, Some("$[0][0].")),
            (
                r#"{"a":{"b":1},"b":[{"a":1},{"a":"x"}],"A":null,"c":-1.5,"d":true}"#,
                None,
            ),
            (r#"{"a":1,"#, None),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(repeated_key(text.as_bytes()).as_deref(), place, "{text}");
        }
        // A number that a number's type cannot hold is read as text, not as an object of its own.
        assert_eq!(
            repeated_key(br#"{"a":123456789012345678901234567890,"b":1e400}"#),
            None
        );
    }

    #[test]
    fn levels_are_those_of_arrays_and_objects() {
        assert!(!is_nested_deeper(&json!(1), 0));
        assert!(is_nested_deeper(&json!([]), 0));
        assert!(!is_nested_deeper(&json!({"a": [1], "b": 2}), 2));
        assert!(is_nested_deeper(&json!({"a": 1, "b": [{}]}), 2));
    }
}
