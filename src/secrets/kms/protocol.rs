//! What every vendor shares: the deadline, wrapped keys, failures, and the pieces of their JSON.

use crate::secret::Secret;
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// The deadline of one call: credentials, connection and repeats together.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// A wrapped data key. It is not secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapped {
    /// The name of the key that wrapped it: for `local` its id, for `cloud-a` the resource name of
    /// the key's version.
    pub key: String,
    /// The wrapped data key.
    pub bytes: Vec<u8>,
}

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The service does not let this process use the key.
    Refused,
    /// There is no such key, or none of the configured ones wrapped this.
    NotFound,
    /// The key is there but disabled, destroyed or not ready.
    KeyDisabled,
    /// The service is unreachable, overloaded or failing.
    Unreachable,
    /// The service did not answer in time.
    Timeout,
    /// A checksum did not match, twice: bytes changed in transit.
    Checksum,
    /// This process has no valid credentials for the service.
    Credentials,
    /// The ciphertext or its associated data is not what was wrapped.
    Altered,
    /// The answer violates the protocol, or the service calls the request invalid.
    Invalid,
}

/// Why a data key was not wrapped or opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KmsFailure {
    /// The kind, for the program.
    pub kind: Kind,
    /// A sentence for a person: service, key, what to do. It holds no secret.
    pub message: String,
}

impl KmsFailure {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for KmsFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for KmsFailure {}

/// A number that JSON carries as a number, or as a string if it has 64 bits.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(match value {
        serde_json::Value::Number(number) => number.as_u64().and_then(|n| n.try_into().ok()),
        serde_json::Value::String(text) => text.parse().ok(),
        _ => None,
    })
}

/// A secret inside JSON.
pub(super) fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// The part of a foreign text that messages may repeat: one plain word.
pub(super) fn word(text: &str) -> Option<&str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (!text.is_empty() && text.len() <= 64 && text.bytes().all(is_plain)).then_some(text)
}
