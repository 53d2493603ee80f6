//! Secrets of tenants: values that go in through the API and never come out of it.
//!
//! Not here: the routes (`api::secrets`), the rows (`store::secrets`), and the type that holds a value
//! in memory (`secret`).

pub mod kms;

use crate::error::Result;
use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::secret::Secret;
use crate::store::Store;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Which secret: specification section 2.6, `secretRef`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRef {
    /// The environment that it belongs to.
    #[serde(rename = "envName")]
    pub environment: String,
    /// Its name in the environment.
    pub name: String,
}

/// Why a secret cannot be read: a sentence for a person, without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The environment has no secret of that name.
    NotFound,
    /// What is stored was moved, copied or altered, or belongs to another key.
    Altered(String),
    /// A part that is needed does not answer or refuses; the sentence says which.
    Unavailable(String),
}

/// Where secrets live (`SVC_SECRETS_BACKEND`).
#[derive(Debug)]
pub enum Options {
    /// Nowhere.
    Off,
}

/// The secrets of all tenants. Cheap to clone.
#[derive(Clone)]
pub struct Secrets;

impl Secrets {
    /// Opens the backend.
    ///
    /// # Errors
    /// The backend's settings are no use.
    pub fn new(_: Options, _: &Store, _: &Outbound, _: &Clock, _: slog::Logger) -> Result<Self> {
        Ok(Self)
    }

    /// Whether there is a backend.
    pub fn is_on(&self) -> bool {
        false
    }

    /// The value that stands.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn resolve(&self, _: Uuid, _: &SecretRef) -> Result<Secret, Unreadable> {
        Err(Unreadable::NotFound)
    }

    /// What signs now: the value that stands, then the one before it while that was superseded less
    /// than a day ago.
    ///
    /// # Errors
    /// Why the one that stands cannot be read.
    pub fn signing(&self, _: Uuid, _: &SecretRef) -> Result<Vec<Secret>, Unreadable> {
        Err(Unreadable::NotFound)
    }
}
