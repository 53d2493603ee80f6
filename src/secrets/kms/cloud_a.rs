//! Vendor `cloud-a`: Google Cloud KMS over REST.

use super::{Kind, KmsFailure, Wrapped, credentials};
use crate::error::Result;
use crate::ids::Clock;
use crate::outbound::Outbound;
use std::time::Duration;
use zeroize::Zeroizing;

/// The service's own address, where no other is set.
pub const BASE_URL: &str = "https://cloudkms.googleapis.com";
/// How long the name of the version that wraps now is believed.
pub const PRIMARY_AGE: Duration = Duration::from_secs(10);

/// How the service is reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// `SVC_SECRETS_KMS_BASE_URL`.
    pub base_url: String,
    /// The key that wraps.
    pub key: KeyName,
    /// Where access tokens come from.
    pub credentials: credentials::Options,
}

/// A symmetric key of Cloud KMS, by the four settings that name it.
#[derive(Debug, Clone)]
pub struct KeyName {
    /// `SVC_SECRETS_KMS_PROJECT_ID`.
    pub project: String,
    /// `SVC_SECRETS_KMS_LOCATION`.
    pub location: String,
    /// `SVC_SECRETS_KMS_KEYRING_ID`.
    pub key_ring: String,
    /// `SVC_SECRETS_KMS_KEY_ID`.
    pub key: String,
}

#[derive(Clone)]
pub struct CloudA;

fn unbuilt<T>() -> Result<T, KmsFailure> {
    Err(KmsFailure::new(Kind::Invalid, "cloud-a follows."))
}

impl CloudA {
    pub(super) fn new(_: Options, _: &Outbound, _: &Clock) -> Result<Self> {
        Ok(Self)
    }

    pub(super) fn wrap(&self, _: &[u8; 32], _: &[u8]) -> Result<Wrapped, KmsFailure> {
        unbuilt()
    }

    pub(super) fn unwrap(&self, _: &Wrapped, _: &[u8]) -> Result<Zeroizing<[u8; 32]>, KmsFailure> {
        unbuilt()
    }

    pub(super) fn is_current(&self, _: &str) -> Result<bool, KmsFailure> {
        unbuilt()
    }
}
