//! Keys for the secrets backend `postgres` with the vendor `local`.

use agent_runtime::secrets::{AadKey, KEPT_FOR, Options, PostgresOptions, kms};
use std::time::Duration;
use zeroize::Zeroizing;

/// The keys of a deployment.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) local: [u8; 32],
    pub(crate) previous: Option<[u8; 32]>,
    pub(crate) aad: [u8; 32],
    pub(crate) kept_for: Duration,
}

/// A fresh key.
pub(crate) fn key() -> [u8; 32] {
    let mut key = [0; 32];
    getrandom::fill(&mut key).unwrap();
    key
}

impl Keys {
    /// Fresh ones.
    pub(crate) fn new() -> Self {
        Self {
            local: key(),
            previous: None,
            aad: key(),
            kept_for: KEPT_FOR,
        }
    }

    /// The same with another key that wraps; the one before it still opens.
    pub(crate) fn rotated(&self) -> Self {
        Self {
            local: key(),
            previous: Some(self.local),
            ..*self
        }
    }

    /// As a server takes them.
    pub(crate) fn options(&self) -> Options {
        let local = |key: [u8; 32]| kms::LocalKey::new(Zeroizing::new(key));
        Options::Postgres(Box::new(PostgresOptions {
            kms: kms::Options::Local {
                key: local(self.local),
                previous: self.previous.map(local),
            },
            aad_key: AadKey::new(&self.aad),
            kept_for: self.kept_for,
        }))
    }
}
