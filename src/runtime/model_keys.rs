//! The operator's API keys for model providers: by name, each for one origin.
//!
//! A tenant chooses a provider's base URL and names one of the operator's keys. The key is sent
//! only to the origin that the operator listed for it, so naming it does not reveal it to a host of
//! the tenant's choice.

use crate::config::Settings;
use crate::error::{Error, Result};
use crate::secret::Secret;
use std::collections::HashMap;
use url::{Origin, Url};

/// The keys that the operator listed.
#[derive(Debug, Clone, Default)]
pub struct ModelKeys(HashMap<String, Key>);

#[derive(Debug, Clone)]
struct Key {
    origin: Origin,
    secret: Secret,
}

impl ModelKeys {
    /// As the settings say.
    ///
    /// # Errors
    /// Internal: an origin is no URL.
    pub fn from_settings(settings: &Settings) -> Result<Self> {
        let mut keys = Self::default();
        for key in &settings.model_keys {
            let origin = Url::parse(key.origin.text()).map_err(Error::internal)?;
            keys.add(&key.name, &origin, key.key.clone());
        }
        Ok(keys)
    }

    /// Adds a key for the origin (scheme, host and port) of `url`.
    pub fn add(&mut self, name: impl Into<String>, url: &Url, secret: Secret) {
        let origin = url.origin();
        self.0.insert(name.into(), Key { origin, secret });
    }

    /// The names of all, in order.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Whether the operator listed a key of that name for the origin of `url`.
    ///
    /// # Errors
    /// A sentence that says what is wrong, for the client and for a run's failure message.
    pub fn check(&self, name: &str, url: &str) -> Result<(), String> {
        self.of(name, url).map(drop)
    }

    /// The key of that name, for a request to `url`.
    ///
    /// # Errors
    /// A sentence that says what is wrong, for the client and for a run's failure message.
    pub(super) fn of(&self, name: &str, url: &str) -> Result<&Secret, String> {
        let Some(key) = self.0.get(name) else {
            return Err(format!(
                "The model provider names the API key {name}, which the operator has not listed."
            ));
        };
        let fits = Url::parse(url).is_ok_and(|url| url.origin() == key.origin);
        if !fits {
            return Err(format!(
                "The API key {name} is listed for {}, and is not sent to another origin.",
                key.origin.ascii_serialization()
            ));
        }
        Ok(&key.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_its_own_origin_alone() {
        let mut keys = ModelKeys::default();
        let listed = Url::parse("https://models.example/v1").unwrap();
        keys.add("main", &listed, Secret::new("k"));
        for good in [
            "https://models.example/other",
            "https://MODELS.example:443/v1",
        ] {
            keys.check("main", good).unwrap();
        }
        for bad in [
            "http://models.example/v1",
            "https://models.example:8443/v1",
            "https://models.example.evil/v1",
            "https://models.example@evil/v1",
            "not a url",
        ] {
            let sentence = keys.check("main", bad).unwrap_err();
            assert!(sentence.contains("https://models.example"), "{sentence}");
        }
        assert!(keys.check("other", "https://models.example/v1").is_err());
    }
}
