//! Labels of a run: keys and values that its caller gives at the start, by which runs are found again.
//!
//! A [`Labels`] is within its bounds, however it was made. A run's labels never change, and the runs below it have the
//! same. They stand in the run's row, to be read with it, and each also in `run_labels`, the order in which a list by label
//! reads.
//!
//! Not here: the statements that filter by them (`lists`).

use crate::error::Result;
use crate::store::{Columns, Parameter};
use postgres::Row;
use postgres::types::Json;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Labels of a run, at most.
pub const LABELS_MOST: usize = 16;
const KEY_CHARACTERS_MOST: usize = 63;
const VALUE_CHARACTERS_MOST: usize = 255;
const VALUE_PATTERN: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
const KEY_PATTERN: &str = "^[a-z0-9][a-z0-9._/-]{0,62}$";

/// Labels of a run, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Takes labels that are within the bounds.
    ///
    /// # Errors
    /// What is wrong, as a sentence's beginning: `expected …`.
    fn new(labels: BTreeMap<Key, Text>) -> Result<Self, String> {
        let count = labels.len();
        if count > LABELS_MOST {
            return Err(format!(
                "expected at most {LABELS_MOST} labels, got {count}"
            ));
        }
        let labels = labels.into_iter().map(|(key, value)| (key.0, value.0));
        Ok(Self(labels.collect()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a parameter of a statement: null without labels.
    pub(super) fn column(&self) -> Option<Json<&Self>> {
        (!self.is_empty()).then_some(Json(self))
    }

    /// The labels of a row.
    pub(super) fn of(row: &Row) -> Result<Self> {
        let labels: Option<Json<Self>> = row.column("labels")?;
        Ok(labels.map(|Json(labels)| labels).unwrap_or_default())
    }
}

/// Labels that a run is to have, all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelFilter {
    all: Labels,
    first: (String, String),
}

impl LabelFilter {
    /// The filter of these labels, if there are any. The first one leads the search.
    ///
    /// # Errors
    /// What is wrong, as a sentence's beginning: `expected …`.
    pub fn new(wanted: &[(String, String)]) -> Result<Option<Self>, String> {
        let Some(first) = wanted.first().cloned() else {
            return Ok(None);
        };
        let mut all = BTreeMap::new();
        for (key, value) in wanted {
            all.insert(Key::try_from(key.clone())?, Text::try_from(value.clone())?);
        }
        let all = Labels::new(all)?;
        if all.0.len() < wanted.len() {
            return Err("expected each key once: a run has one value of it".to_owned());
        }
        Ok(Some(Self { all, first }))
    }

    pub(super) fn all(&self) -> Json<&Labels> {
        Json(&self.all)
    }

    /// The key and the value that lead.
    pub(super) fn first(&self) -> [Parameter<'_>; 2] {
        [&self.first.0, &self.first.1]
    }
}

/// A label's key.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct Key(String);

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(key: String) -> Result<Self, String> {
        let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = |byte: u8| is_plain(&byte) || b"-_./".contains(&byte);
        let bytes = key.as_bytes();
        if bytes.len() <= KEY_CHARACTERS_MOST
            && bytes.first().is_some_and(is_plain)
            && key.bytes().all(fits)
        {
            return Ok(Self(key));
        }
        Err(format!(
            "expected keys of labels with 1 to {KEY_CHARACTERS_MOST} lowercase letters, digits and - _ . /, a letter or digit first"
        ))
    }
}

/// A label's value.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Text(String);

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(value: String) -> Result<Self, String> {
        if value.chars().count() <= VALUE_CHARACTERS_MOST && !value.chars().any(char::is_control) {
            return Ok(Self(value));
        }
        Err(format!(
            "expected a text of at most {VALUE_CHARACTERS_MOST} characters, none of them a control character"
        ))
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(BTreeMap::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Labels {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Labels".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "object",
            "maxProperties": LABELS_MOST,
            "propertyNames": {"pattern": KEY_PATTERN},
            "additionalProperties": {
                "type": "string",
                "maxLength": VALUE_CHARACTERS_MOST,
                "pattern": VALUE_PATTERN,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(labels: Value) -> Result<Labels, String> {
        serde_json::from_value(labels).map_err(|error| error.to_string())
    }

    #[test]
    fn labels_are_within_their_bounds() {
        let (long_key, long_value) = ("k".repeat(63), "é".repeat(255));
        for good in [
            json!({}),
            json!({"env": "prod", "team/app": "x:y=z", "0": ""}),
            json!({long_key.as_str(): long_value}),
        ] {
            assert_eq!(json!(read(good.clone()).unwrap()), good);
        }
        let too_long_key = format!("{long_key}k");
        let many: BTreeMap<String, &str> = (0..17).map(|n| (n.to_string(), "")).collect();
        for (bad, says) in [
            (json!({"": "x"}), "1 to 63"),
            (json!({"Env": "x"}), "expected keys"),
            (json!({"-a": "x"}), "expected keys"),
            (json!({"a:b": "x"}), "expected keys"),
            (json!({"é": "x"}), "expected keys"),
            (json!({too_long_key.as_str(): "x"}), "expected keys"),
            (json!({"a": format!("{long_value}é")}), "at most 255"),
            (json!({"a": "x\ny"}), "a control character"),
            (json!({"a": 1}), "expected a string"),
            (json!(many), "at most 16 labels, got 17"),
        ] {
            let said = read(bad.clone()).unwrap_err();
            assert!(said.contains(says), "{bad}: {said}");
        }
    }
}
