//! The nouns, as the description groups its operations.

use crate::http::route::{Nouns, Route};
use serde_json::{Value, json};

/// The noun of a route: what follows the version in its path.
pub(super) fn tag(route: &Route) -> &'static str {
    let rest = route.path.strip_prefix("/v1/");
    let noun = rest.and_then(|rest| rest.split('/').next());
    noun.unwrap_or(route.path)
}

/// Those of the nouns that these routes have.
///
/// # Panics
/// A noun has no text.
pub(super) fn of<'a>(nouns: Nouns, routes: impl Iterator<Item = &'a Route>) -> Vec<Value> {
    let used: Vec<&str> = routes.map(tag).collect();
    for noun in &used {
        assert!(
            nouns.iter().any(|(name, _)| name == noun),
            "say in api/mod.rs what {noun} are"
        );
    }
    let described = nouns.iter().filter(|(name, _)| used.contains(name));
    described
        .map(|(name, text)| json!({"name": name, "description": text}))
        .collect()
}
