//! The version numbers of bodies, for whatever has versions.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

const LENGTH_MOST: usize = 100;

/// A version as Semantic Versioning 2.0.0 writes it, without build metadata: two versions that differ
/// in that alone have one precedence, and neither would be the latest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SemanticVersion(pub(super) semver::Version);

impl<'de> Deserialize<'de> for SemanticVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        semver::Version::parse(&text)
            .ok()
            .filter(|version| version.build.is_empty() && text.len() <= LENGTH_MOST)
            .map(Self)
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "expected a semantic version such as 1.2.3 or 2.0.0-rc.1, without build metadata, of at most {LENGTH_MOST} characters"
                ))
            })
    }
}

impl JsonSchema for SemanticVersion {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "SemanticVersion".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "string",
            "minLength": 5,
            "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$",
            "maxLength": LENGTH_MOST,
            "examples": ["1.2.3", "2.0.0-rc.1"],
        })
    }
}

/// The version to be live.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["version"]))]
#[schemars(example = serde_json::json!({"version": "1.0.0"}))]
pub(super) struct Promotion {
    /// Null: none is live.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(super) version: Option<SemanticVersion>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_semantic() {
        let long = format!("1.0.0-{}", "a".repeat(94));
        for good in ["0.1.0", "1.2.3", "2.0.0-rc.1", &long] {
            assert!(
                serde_json::from_value::<SemanticVersion>(json!(good)).is_ok(),
                "{good}"
            );
        }
        let too_long = format!("1.0.0-{}", "a".repeat(95));
        for bad in [
            "",
            "1",
            "1.2",
            "v1.2.3",
            "01.2.3",
            "1.2.3+build",
            " 1.2.3",
            &too_long,
        ] {
            assert!(
                serde_json::from_value::<SemanticVersion>(json!(bad)).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_promotion_says_what_is_live_even_if_nothing_is() {
        let read = serde_json::from_value::<Promotion>;
        assert!(read(json!({})).is_err());
        assert!(read(json!({"version": null})).unwrap().version.is_none());
        assert!(read(json!({"version": "1.0.0"})).unwrap().version.is_some());
    }
}
