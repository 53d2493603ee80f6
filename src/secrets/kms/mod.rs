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
mod protocol;
mod refusal;
mod tokens;

pub use cloud_a::{BASE_URL, KeyName, Options as CloudAOptions, PRIMARY_AGE};
pub use credentials::{File as CredentialsFile, METADATA_URL, Options as CredentialsOptions};
pub use local::Key as LocalKey;

use crate::config;
use crate::error::Result;
use crate::ids::Clock;
use crate::outbound::Outbound;
pub use protocol::{DEADLINE, Kind, KmsFailure, Wrapped};
use protocol::{number, secret, word};
use std::time::Duration;
use zeroize::Zeroizing;

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
