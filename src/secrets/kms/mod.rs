//! Key-management services. They wrap the data key of each secret version, and open it again.
//!
//! A wrapped data key names the key that wrapped it, and opens only under that key and with the
//! same associated data. Every failure names the service and the key and says what to do. No
//! message holds key material or free text of the service. A call takes [`DEADLINE`] at most,
//! credentials included.
//!
//! Vendors: `local`, a key file for hosts without a network, and `cloud-a`, Google Cloud KMS over
//! REST (specification section 1.3).
//!
//! Not here: data keys and what they encrypt (`secrets::envelope`), settings (`config`).

mod cloud_a;
mod connections;
mod credentials;
mod local;
mod refusal;
mod tokens;

pub use cloud_a::{BASE_URL, KeyName, Options as CloudAOptions, PRIMARY_AGE};
pub use credentials::{File as CredentialsFile, METADATA_URL, Options as CredentialsOptions};
pub use local::Key as LocalKey;

use crate::config;
use crate::error::Result;
use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::secret::Secret;
use serde::{Deserialize, Deserializer};
use std::time::Duration;
use zeroize::Zeroizing;

/// The deadline of one call: credentials, connection and repeats together.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Which service wraps (`SVC_SECRETS_BACKEND_KMS`), and how it is reached.
#[derive(Debug, Clone)]
pub enum Options {
    /// `local`: a key file of this host.
    Local {
        /// `SVC_SECRETS_LOCAL_KEY_PATH`: the key that wraps.
        key: LocalKey,
        /// `SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH`: it only opens.
        previous: Option<LocalKey>,
    },
    /// `cloud-a`.
    CloudA(CloudAOptions),
}

impl Options {
    /// As the settings say.
    ///
    /// # Errors
    /// A key is no use.
    pub fn from_settings(kms: &config::Kms) -> Result<Self> {
        Ok(match kms {
            config::Kms::Local { key, previous } => Self::Local {
                key: LocalKey::from_base64(key)?,
                previous: previous.as_ref().map(LocalKey::from_base64).transpose()?,
            },
            config::Kms::CloudA {
                key: [project, location, key_ring, key],
                credentials,
                base_url,
                metadata_url,
            } => Self::CloudA(CloudAOptions {
                base_url: base_url.clone(),
                key: KeyName {
                    project: project.expose().to_owned(),
                    location: location.expose().to_owned(),
                    key_ring: key_ring.expose().to_owned(),
                    key: key.expose().to_owned(),
                },
                credentials: CredentialsOptions {
                    file: credentials
                        .clone()
                        .map(|(path, setting)| CredentialsFile { path, setting }),
                    metadata_url: metadata_url.clone(),
                },
            }),
        })
    }
}

/// A key-management service. Clones share its connections and its credentials.
#[derive(Clone)]
pub enum Kms {
    /// A key file of this host.
    Local(local::Local),
    /// Google Cloud KMS.
    CloudA(cloud_a::CloudA),
}

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
    /// Prepares the service without connecting, so that the server starts while the service is
    /// unreachable.
    ///
    /// # Errors
    /// The base URL or the file of credentials cannot be used.
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
    /// [`KmsFailure`]: nothing was wrapped, and the call may be repeated.
    pub fn wrap(&self, data_key: &[u8; 32], aad: &[u8]) -> Result<Wrapped, KmsFailure> {
        match self {
            Self::Local(local) => local.wrap(data_key, aad),
            Self::CloudA(cloud) => cloud.wrap(data_key, aad),
        }
    }

    /// Opens a wrapped data key within `within`, at most [`DEADLINE`]. Never print the result:
    /// `Zeroizing` shows its content.
    ///
    /// # Errors
    /// [`KmsFailure`]; of kind [`Kind::Altered`] if `wrapped` or `aad` is not what was wrapped.
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

    /// Whether new data keys are wrapped under the key of this name ([`Wrapped::key`]). A rotation
    /// elsewhere is noticed after [`PRIMARY_AGE`] at the latest.
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

/// A number that JSON carries as a number, or as a string if it has 64 bits.
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

/// The part of a foreign text that messages may repeat: one plain word.
fn word(text: &str) -> Option<&str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (!text.is_empty() && text.len() <= 64 && text.bytes().all(is_plain)).then_some(text)
}
