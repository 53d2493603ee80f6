//! Public run tokens: `svc_pt_`, base64url of a JSON payload, a dot, and base64url of an Ed25519
//! signature over everything before the dot. They are short-lived and read-only, for named runs of
//! one tenant.
//!
//! They are not stored, so they cannot be revoked, and live for [`LIFE_MOST`] at most.

use crate::error::{Code, Error, Result};
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// The prefix of every public run token.
pub const PREFIX: &str = "svc_pt_";

/// The longest life of a public run token.
pub const LIFE_MOST: Duration = Duration::from_secs(15 * 60);

/// Runs that one token can name.
pub const RUNS_MOST: usize = 50;

const PAYLOAD_VERSION: u8 = 1;

/// The claims of a valid public run token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicToken {
    /// The tenant of the runs.
    pub tenant_id: Uuid,
    /// The runs it opens.
    pub run_ids: Vec<Uuid>,
    /// When it expires.
    pub expires_at: OffsetDateTime,
}

#[derive(Serialize, Deserialize)]
struct Payload {
    v: u8,
    tenant: Uuid,
    runs: Vec<Uuid>,
    /// Unix seconds.
    exp: i64,
}

/// Makes and verifies public run tokens with the deployment's key.
pub struct Signer {
    key: SigningKey,
    public: VerifyingKey,
}

fn refused() -> Error {
    Error::new(
        Code::Unauthenticated,
        "The public run token is not valid, or has ended. Mint a new one.",
    )
}

impl Signer {
    /// A key of this process only: tokens become invalid with a restart.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn ephemeral() -> Result<Self> {
        let mut bytes = zeroize::Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map_err(Error::internal)?;
        Ok(Self::from_key(SigningKey::from_bytes(&bytes)))
    }

    /// The operator's key.
    pub fn from_key(key: SigningKey) -> Self {
        let public = key.verifying_key();
        Self { key, public }
    }

    /// Mints a token.
    ///
    /// # Errors
    /// Never in practice: the payload always serializes.
    pub fn mint(&self, token: &PublicToken) -> Result<Secret> {
        let payload = Payload {
            v: PAYLOAD_VERSION,
            tenant: token.tenant_id,
            runs: token.run_ids.clone(),
            exp: token.expires_at.unix_timestamp(),
        };
        let json = serde_json::to_vec(&payload).map_err(Error::internal)?;
        let signed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
        let signature = self.key.sign(signed.as_bytes());
        Ok(Secret::new(format!(
            "{signed}.{}",
            URL_SAFE_NO_PAD.encode(signature.to_bytes())
        )))
    }

    /// Verifies a token.
    ///
    /// # Errors
    /// `unauthenticated`, whatever is wrong with it.
    pub fn verify(&self, token: &str, now: OffsetDateTime) -> Result<PublicToken> {
        let (signed, signature) = token.split_once('.').ok_or_else(refused)?;
        let bytes = URL_SAFE_NO_PAD.decode(signature).map_err(|_| refused())?;
        let signature = Signature::from_slice(&bytes).map_err(|_| refused())?;
        self.public
            .verify_strict(signed.as_bytes(), &signature)
            .map_err(|_| refused())?;
        let encoded = signed.strip_prefix(PREFIX).ok_or_else(refused)?;
        let json = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| refused())?;
        let payload: Payload = serde_json::from_slice(&json).map_err(|_| refused())?;
        let expires_at = OffsetDateTime::from_unix_timestamp(payload.exp).map_err(|_| refused())?;
        if payload.v != PAYLOAD_VERSION || expires_at <= now {
            return Err(refused());
        }
        Ok(PublicToken {
            tenant_id: payload.tenant,
            run_ids: payload.runs,
            expires_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> PublicToken {
        PublicToken {
            tenant_id: Uuid::from_u128(1),
            run_ids: vec![Uuid::from_u128(2)],
            expires_at: OffsetDateTime::UNIX_EPOCH + Duration::from_secs(1000),
        }
    }

    #[test]
    fn a_token_says_what_was_signed_until_it_ends() {
        let signer = Signer::ephemeral().unwrap();
        let token = signer.mint(&sample()).unwrap();
        let now = OffsetDateTime::UNIX_EPOCH;
        assert_eq!(signer.verify(token.expose(), now).unwrap(), sample());
        let late = now + Duration::from_secs(1000);
        assert!(signer.verify(token.expose(), late).is_err());
        let other = Signer::ephemeral().unwrap();
        assert!(other.verify(token.expose(), now).is_err());
    }

    #[test]
    fn every_changed_byte_is_refused() {
        let signer = Signer::ephemeral().unwrap();
        let token = signer.mint(&sample()).unwrap();
        for at in 0..token.expose().len() {
            let mut bytes = token.expose().as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(
                signer.verify(&changed, OffsetDateTime::UNIX_EPOCH).is_err(),
                "byte {at}"
            );
        }
    }
}
