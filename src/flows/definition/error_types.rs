//! The types of errors: which are the same, and which are caught but never raised.

use super::fault::{Code, Fault};
use std::collections::BTreeSet;

/// What the types of errors have in common in every release of the language, whatever their host.
const TYPES: &str = "/spec/1.0.0/errors/";
/// As [`TYPES`], in the conformance kit of the language.
const OLDER_TYPES: &str = "/dsl/errors/types/";
/// The host of the language's types.
const HOST: &str = "serverlessworkflow.io";

/// The types of the language, and whether the service itself raises errors of the type.
const STANDARD: [(&str, bool); 8] = [
    ("validation", true),
    ("expression", true),
    ("communication", true),
    ("timeout", true),
    ("authorization", true),
    ("runtime", true),
    ("authentication", false),
    ("configuration", false),
];

/// The types that a definition names.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// Those of `errors.with`, with their places.
    pub(super) caught: Vec<(String, String)>,
    /// Those of `raise` that are written out.
    pub(super) raised: BTreeSet<String>,
    /// A type is computed, or comes from another flow.
    pub(super) may_raise_others: bool,
}

/// A type of the language without its host; another one whole. Errors of equal types match.
pub fn kind_of(uri: &str) -> &str {
    if let Some((_, kind)) = uri.split_once(TYPES) {
        return kind;
    }
    let older = uri.split_once(OLDER_TYPES).map(|(_, kind)| kind);
    let is_standard = |kind: &&str| STANDARD.iter().any(|(standard, _)| standard == kind);
    older.filter(is_standard).unwrap_or(uri)
}

/// Whether a type looks like one of the language: a word, or a URI of its host or with its path.
fn is_of_language(uri: &str) -> bool {
    let Some((_, rest)) = uri.split_once("://") else {
        return !uri.contains(':');
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let below = host.strip_suffix(HOST);
    below.is_some_and(|below| below.is_empty() || below.ends_with('.')) || uri.contains(TYPES)
}

impl Types {
    /// A warning for each type that is caught and that nothing raises.
    pub(super) fn warnings(self) -> Vec<Fault> {
        if self.may_raise_others {
            return Vec::new();
        }
        let raised = STANDARD.iter().filter(|(_, is_raised)| *is_raised);
        let raised: Vec<&str> = raised.map(|(kind, _)| *kind).collect();
        let is_raised = |uri: &str| {
            let mut own = self.raised.iter();
            raised.contains(&kind_of(uri)) || own.any(|own| kind_of(own) == kind_of(uri))
        };
        let never = self.caught.iter();
        let never = never.filter(|(uri, _)| is_of_language(uri) && !is_raised(uri));
        let never = never.map(|(uri, path)| {
            let said = format!("Nothing raises an error of the type `{uri}`.");
            Fault::new(path, Code::BadValue, said).hint(format!(
                "The service raises errors of the types {}.",
                raised.join(", ")
            ))
        });
        never.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_types_have_one_kind_whatever_their_host_and_age() {
        for uri in [
            "timeout",
            "https://serverlessworkflow.io/spec/1.0.0/errors/timeout",
            "https://another.example/spec/1.0.0/errors/timeout",
            "https://serverlessworkflow.io/dsl/errors/types/timeout",
            "https://open-workflow.example/dsl/errors/types/timeout",
        ] {
            assert_eq!(kind_of(uri), "timeout", "{uri}");
        }
        for uri in [
            "https://serverlessworkflow.io/dsl/errors/types/mine",
            "https://example.com/timeout",
            "https://example.com/dsl/errors/types/timeout/more",
        ] {
            assert_eq!(kind_of(uri), uri);
        }
    }

    #[test]
    fn types_of_the_language_are_known() {
        for uri in [
            "communicaton",
            "https://serverlessworkflow.io/errors/not-found",
            "https://www.serverlessworkflow.io",
            "https://another.example/spec/1.0.0/errors/mine",
        ] {
            assert!(is_of_language(uri), "{uri}");
        }
        for uri in [
            "https://example.com/errors/busy",
            "https://notserverlessworkflow.io/errors/x",
            "https://example.com/serverlessworkflow.io",
            "urn:example:busy",
        ] {
            assert!(!is_of_language(uri), "{uri}");
        }
    }
}
