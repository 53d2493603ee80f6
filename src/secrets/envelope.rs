//! Envelope encryption. Each version of a secret has a data key, which encrypts its value. The
//! key-management service wraps the data key.
//!
//! Format 1: AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits and the tag at the end.
//! The value and the wrapped data key have the same associated data: HMAC-SHA256 (RFC 2104) under
//! the AAD key, over format, tenant, environment, name, version, author and time
//! (`bound-secret-rows`). So a row that was moved, copied or altered does not decrypt, and nobody
//! without the AAD key can make one that does.
//!
//! Left out: protection against restoring an older state of the whole row.

use super::kms::{DEADLINE, Kind, Kms, KmsFailure, Wrapped};
use super::{SecretRef, Unreadable};
use crate::error::Error;
use crate::ids::Clock;
use crate::secret::{Secret, decoded};
use crate::store::secrets::Sealed;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

/// The format that new rows get.
const FORMAT: i16 = 1;

/// The identity of a version, to which its ciphertext is bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowIdentity<'a> {
    pub(super) tenant_id: Uuid,
    pub(super) at: &'a SecretRef,
    pub(super) version: i32,
    pub(super) created_by: Uuid,
    /// In whole microseconds, as PostgreSQL keeps it.
    pub(super) created_at: OffsetDateTime,
}

impl<'a> RowIdentity<'a> {
    /// The identity that a row claims.
    pub(super) fn of(tenant_id: Uuid, at: &'a SecretRef, sealed: &Sealed) -> Self {
        Self {
            tenant_id,
            at,
            version: sealed.version,
            created_by: sealed.created_by,
            created_at: sealed.created_at,
        }
    }

    /// Its associated data.
    fn bound(&self, key: &AadKey, format: i16) -> hmac::Tag {
        let micros = self.created_at.unix_timestamp_nanos() / 1000;
        let parts: [&[u8]; 8] = [
            b"agent-runtime secret",
            &format.to_be_bytes(),
            self.tenant_id.as_bytes(),
            self.at.environment.as_bytes(),
            self.at.name.as_bytes(),
            &self.version.to_be_bytes(),
            self.created_by.as_bytes(),
            &micros.to_be_bytes(),
        ];
        let mut context = hmac::Context::with_key(&key.0);
        for part in parts {
            // Each part is preceded by its length, so that two identities never have the same
            // encoding.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.sign()
    }
}

/// The key that binds rows to their identity (`SVC_SECRETS_AAD_KEY`).
#[derive(Clone)]
pub struct AadKey(hmac::Key);

impl AadKey {
    /// Takes the key.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Takes the key as settings hold it, in base64.
    ///
    /// # Errors
    /// It is not the base64 of 32 bytes.
    pub fn from_base64(text: &Secret) -> Result<Self, Error> {
        let bytes = decoded(text.expose(), 32);
        let key = bytes
            .as_deref()
            .and_then(|bytes| bytes.as_slice().try_into().ok());
        key.map(Self::new)
            .ok_or_else(|| Error::internal("the AAD key is not the base64 of 32 bytes"))
    }
}

impl std::fmt::Debug for AadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Which part kept a version from being opened.
pub(super) enum Unopened {
    /// The row.
    Row(String),
    /// The key-management service.
    Kms(KmsFailure),
}

impl From<Unopened> for Unreadable {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Row(sentence) => Self::Altered(sentence),
            Unopened::Kms(failure) if failure.kind == Kind::Altered => {
                Self::Altered(failure.message)
            }
            Unopened::Kms(failure) => Self::Unavailable(failure.message),
        }
    }
}

/// The keys of a deployment.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) kms: Kms,
    pub(super) aad: AadKey,
}

impl Keys {
    /// Seals a value for an identity that no row has, and opens it again: a self-test.
    pub(super) fn probe(&self, clock: &Clock) -> Result<(), String> {
        let at = SecretRef {
            environment: "probe".to_owned(),
            name: "PROBE".to_owned(),
        };
        let identity = RowIdentity {
            tenant_id: Uuid::nil(),
            at: &at,
            version: 1,
            created_by: Uuid::nil(),
            created_at: clock.now(),
        };
        let value = Secret::new(clock.new_id().to_string());
        let sealed = self.seal(&identity, &value);
        let sealed = sealed.map_err(|failure| failure.message)?;
        let opened = self.open(&identity, &sealed, DEADLINE);
        match opened.map_err(|unreadable| unreadable.sentence(&at))? == value {
            true => Ok(()),
            false => Err("What was sealed opened as something else.".to_owned()),
        }
    }

    /// Seals a value for this identity.
    pub(super) fn seal(
        &self,
        identity: &RowIdentity<'_>,
        value: &Secret,
    ) -> Result<Sealed, KmsFailure> {
        let aad = identity.bound(&self.aad, FORMAT);
        let (mut data_key, mut nonce) = (Zeroizing::new([0; 32]), [0; NONCE_LEN]);
        random(data_key.as_mut_slice())?;
        random(&mut nonce)?;
        // Room for the tag: a buffer that grows would leave an unwiped copy of the value behind.
        let text = value.expose().as_bytes();
        let mut buffer = Zeroizing::new(Vec::with_capacity(text.len() + AES_256_GCM.tag_len()));
        buffer.extend_from_slice(text);
        cipher(&data_key)
            .and_then(|cipher| {
                let nonce = Nonce::assume_unique_for_key(nonce);
                cipher.seal_in_place_append_tag(nonce, Aad::from(aad.as_ref()), &mut *buffer)
            })
            .map_err(|_| failed("The value cannot be encrypted."))?;
        let wrapped = self.kms.wrap(&data_key, aad.as_ref())?;
        Ok(Sealed {
            version: identity.version,
            format: FORMAT,
            nonce: nonce.to_vec(),
            ciphertext: std::mem::take(&mut *buffer),
            wrapping_key: wrapped.key,
            wrapped_data_key: wrapped.bytes,
            created_by: identity.created_by,
            created_at: identity.created_at,
        })
    }

    /// Opens a sealed row of this identity within `within`.
    pub(super) fn open(
        &self,
        identity: &RowIdentity<'_>,
        sealed: &Sealed,
        within: Duration,
    ) -> Result<Secret, Unreadable> {
        let (data_key, aad) = self.data_key(identity, sealed, within)?;
        let opened = open_with(&data_key, &aad, sealed);
        opened.ok_or_else(|| Unreadable::Altered(altered(identity)))
    }

    /// Wraps the data key of a row anew, after checking that the row's value opens with it.
    pub(super) fn rewrap(
        &self,
        identity: &RowIdentity<'_>,
        sealed: &Sealed,
    ) -> Result<impl FnOnce() -> Result<Wrapped, KmsFailure>, Unopened> {
        let (data_key, aad) = self.data_key(identity, sealed, DEADLINE)?;
        if open_with(&data_key, &aad, sealed).is_none() {
            return Err(Unopened::Row(altered(identity)));
        }
        Ok(move || self.kms.wrap(&data_key, aad.as_ref()))
    }

    fn data_key(
        &self,
        identity: &RowIdentity<'_>,
        sealed: &Sealed,
        within: Duration,
    ) -> Result<(Zeroizing<[u8; 32]>, hmac::Tag), Unopened> {
        if sealed.format != FORMAT {
            let why = format!(
                "It has format {}, which this version of the program does not know.",
                sealed.format
            );
            return Err(Unopened::Row(unreadable(identity, &why)));
        }
        let aad = identity.bound(&self.aad, sealed.format);
        let wrapped = Wrapped {
            key: sealed.wrapping_key.clone(),
            bytes: sealed.wrapped_data_key.clone(),
        };
        let unwrapped = self.kms.unwrap(&wrapped, aad.as_ref(), within);
        let data_key = unwrapped.map_err(|failure| {
            Unopened::Kms(KmsFailure {
                kind: failure.kind,
                message: unreadable(identity, &failure.message),
            })
        })?;
        Ok((data_key, aad))
    }
}

fn altered(identity: &RowIdentity<'_>) -> String {
    unreadable(identity, "Its row was moved, copied or altered.")
}

fn unreadable(identity: &RowIdentity<'_>, why: &str) -> String {
    format!(
        "The secret {}, version {}, cannot be read. {why}",
        identity.at, identity.version
    )
}

fn open_with(data_key: &[u8; 32], aad: &hmac::Tag, sealed: &Sealed) -> Option<Secret> {
    let nonce = Nonce::try_assume_unique_for_key(&sealed.nonce).ok()?;
    let mut buffer = Zeroizing::new(sealed.ciphertext.clone());
    let plain = cipher(data_key)
        .and_then(|cipher| cipher.open_in_place(nonce, Aad::from(aad.as_ref()), &mut buffer))
        .ok()?;
    std::str::from_utf8(plain).ok().map(Secret::new)
}

fn cipher(data_key: &[u8; 32]) -> Result<LessSafeKey, ring::error::Unspecified> {
    UnboundKey::new(&AES_256_GCM, data_key).map(LessSafeKey::new)
}

fn random(bytes: &mut [u8]) -> Result<(), KmsFailure> {
    getrandom::fill(bytes).map_err(|_| failed("The system gives no random bytes."))
}

fn failed(message: &str) -> KmsFailure {
    KmsFailure {
        kind: Kind::Invalid,
        message: message.to_owned(),
    }
}
