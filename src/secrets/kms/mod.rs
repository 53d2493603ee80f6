//! Key-management services: what wraps the data key of each secret version, and opens it again.
//!
//! A data key leaves here wrapped, with the name of the key that wrapped it, and comes back only
//! with the same associated data and under that key. Every failure says which service and which key
//! it is about and what to do; none holds key material or what a service wrote freely. A call takes
//! [`DEADLINE`] at the most, its credentials included.
//!
//! Vendors: `local`, a key file (ours: a host without a network has no other), and `cloud-a`, Google
//! Cloud KMS over REST. Specification section 1.3.
//!
//! Not here: data keys themselves and what they encrypt (`secrets::envelope`); settings (`config`).

mod cloud_a;
mod connections;
mod credentials;
mod local;
mod refusal;
mod tokens;

pub use cloud_a::{BASE_URL, KeyName, Options as CloudAOptions, PRIMARY_AGE};
pub use credentials::{File as CredentialsFile, METADATA_URL, Options as CredentialsOptions};
pub use local::Key as LocalKey;

use crate::error::Result;
use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::secret::Secret;
use serde::{Deserialize, Deserializer};
use std::time::Duration;
use zeroize::Zeroizing;

/// How long one call may take in all: credentials, connection, repeats.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Which service wraps (`SVC_SECRETS_BACKEND_KMS`), and how it is reached.
#[derive(Debug, Clone)]
pub enum Options {
    /// `local`: a key file of this host.
    Local {
        /// `SVC_SECRETS_LOCAL_KEY_PATH`: what wraps.
        key: LocalKey,
        /// `SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH`: it opens what it wrapped and wraps no more.
        previous: Option<LocalKey>,
    },
    /// `cloud-a`.
    CloudA(CloudAOptions),
}

/// A key-management service. Clones share its connections and its credentials.
#[derive(Clone)]
pub enum Kms {
    /// A key file of this host.
    Local(local::Local),
    /// Google Cloud KMS.
    CloudA(cloud_a::CloudA),
}

/// A data key as it is stored. It is no secret.
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
    /// The service is away, overloaded or out of order.
    Unreachable,
    /// The service took too long.
    Timeout,
    /// A checksum says that bytes changed on the way, twice.
    Checksum,
    /// This process has no credentials for the service, or bad ones.
    Credentials,
    /// What is to be opened, or what it is bound to, is not what was wrapped.
    Altered,
    /// The service answered something else than its protocol says, or took the request for invalid.
    Invalid,
}

/// Why a data key was not wrapped or opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KmsFailure {
    /// The kind, for the program.
    pub kind: Kind,
    /// A sentence for a person: which service, which key, what to do. Without secrets.
    pub message: String,
}

impl KmsFailure {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
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

impl Kms {
    /// Opens the service. Nothing is connected yet, so that the server starts while it is away.
    ///
    /// # Errors
    /// The options are of no use whatever the service says: a base URL or a file of credentials
    /// that cannot be read.
    pub fn new(options: Options, outbound: &Outbound, clock: &Clock) -> Result<Self> {
        match options {
            Options::Local { key, previous } => {
                local::Local::new(&key, previous.as_ref()).map(Self::Local)
            }
            Options::CloudA(options) => {
                cloud_a::CloudA::new(options, outbound, clock).map(Self::CloudA)
            }
        }
    }

    /// Wraps a data key, bound to `aad`.
    ///
    /// # Errors
    /// [`KmsFailure`]: nothing was wrapped, and the same call may be made again.
    pub fn wrap(&self, data_key: &[u8; 32], aad: &[u8]) -> Result<Wrapped, KmsFailure> {
        match self {
            Self::Local(local) => local.wrap(data_key, aad),
            Self::CloudA(cloud) => cloud.wrap(data_key, aad),
        }
    }

    /// Opens a wrapped data key, in this time and not more than [`DEADLINE`]. The key is not to be
    /// shown: `Zeroizing` prints what it holds.
    ///
    /// # Errors
    /// [`KmsFailure`]; of kind [`Kind::Altered`] when `wrapped` or `aad` is not what was wrapped.
    pub fn unwrap(
        &self,
        wrapped: &Wrapped,
        aad: &[u8],
        within: Duration,
    ) -> Result<Zeroizing<[u8; 32]>, KmsFailure> {
        match self {
            Self::Local(local) => local.unwrap(wrapped, aad),
            Self::CloudA(cloud) => cloud.unwrap(wrapped, aad, within),
        }
    }

    /// Whether what is wrapped now is wrapped under the key of this name, as [`Wrapped::key`] has
    /// it. A rotation made elsewhere is seen after [`PRIMARY_AGE`] at the latest.
    ///
    /// # Errors
    /// [`KmsFailure`]: the service did not say.
    pub fn is_current(&self, key: &str) -> Result<bool, KmsFailure> {
        match self {
            Self::Local(local) => Ok(local.is_current(key)),
            Self::CloudA(cloud) => cloud.is_current(key),
        }
    }
}

/// A number that JSON carries as a number or, being of 64 bits, as a string. Anything else is none.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(match value {
        serde_json::Value::Number(number) => number.as_u64().and_then(|n| n.try_into().ok()),
        serde_json::Value::String(text) => text.parse().ok(),
        _ => None,
    })
}

/// A secret inside JSON.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// What may be repeated of what another program wrote: one plain word.
fn word(text: &str) -> Option<&str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (!text.is_empty() && text.len() <= 64 && text.bytes().all(is_plain)).then_some(text)
}
