//! The commercial license key: its content, and whether it is valid. Offline.
//!
//! A key is `svc_lk_`, base64url of its claims in JSON, `.`, and base64url of the Ed25519 signature
//! over everything before the dot, prefix included. It is valid if one of the trusted public keys
//! made the signature, and exactly as long as its claims say.
//!
//! Only the keys that the build took from a file (`build/license_keys.rs`) are trusted. No setting, feature or
//! test switch adds one. Functions take the trusted keys as a value, so that tests pass their own;
//! the binary passes [`TrustedKeys::compiled_in`].
//!
//! No text of this module repeats the key.

use crate::ids::rfc3339;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::DecodePrivateKey;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

include!(concat!(env!("OUT_DIR"), "/license_keys.rs"));

/// The prefix of every license key (specification, section 1.3).
pub const PREFIX: &str = "svc_lk_";
/// How long before a key's expiry the warnings begin.
pub const WARN_AHEAD: Duration = Duration::days(30);
/// How far the issuer's clock may be ahead of this one.
const CLOCK_SKEW: Duration = Duration::days(1);
/// The longest grace that a license may give itself, in days.
const MAX_GRACE_DAYS: u16 = 366;
/// The longest license key.
const MAX_BYTES: usize = 16 * 1024;
/// The format that this version reads and writes.
pub const FORMAT_VERSION: u32 = 1;

/// The claims of a license key. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// The format's version, [`FORMAT_VERSION`].
    pub v: u32,
    /// The license's id, from the issuer.
    pub id: String,
    /// The licensee.
    pub licensee: String,
    /// When it was issued.
    #[serde(with = "rfc3339")]
    pub issued_at: OffsetDateTime,
    /// When it expires.
    #[serde(with = "rfc3339")]
    pub expires_at: OffsetDateTime,
    /// For how many days after that a server still takes it, with a warning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub grace_days: u16,
    /// What it covers beyond the server itself, if anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
const fn is_zero(days: &u16) -> bool {
    *days == 0
}

/// The public keys that a license key may be signed with.
#[derive(Debug, Clone, Default)]
pub struct TrustedKeys(Vec<[u8; 32]>);

impl TrustedKeys {
    /// The keys of this build, which the binary passes.
    pub fn compiled_in() -> Self {
        Self(COMPILED_IN.to_vec())
    }

    /// These keys, for tests. A test fails if the service's own code calls it.
    pub fn of(keys: &[[u8; 32]]) -> Self {
        Self(keys.to_vec())
    }
}

/// The present time relative to a license's period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// Before it.
    NotYet,
    /// Within it.
    Valid,
    /// Within its last 30 days.
    EndsSoon,
    /// After it, within the grace that the license gives itself.
    Grace,
    /// After it and its grace.
    Expired,
}

/// Why a license key is not valid. The text follows the setting's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not have the form above.
    Malformed,
    /// Its claims have a version that this binary does not know.
    UnknownVersion,
    /// No trusted key made the signature.
    BadSignature,
    /// It is dated in the future.
    NotYet,
    /// It has expired, and its grace has passed.
    Expired,
    /// `sign` got something that is not an Ed25519 private key.
    BadSigningKey,
    /// `sign` got claims that no server would accept.
    BadClaims,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Malformed => "is not a license key (it may have been cut short)",
            Self::UnknownVersion => "is of a format that needs a newer version of this server",
            Self::BadSignature => "was not signed by a key that this build trusts",
            Self::NotYet => "is dated in the future (is the clock right?)",
            Self::Expired => "has expired",
            Self::BadSigningKey => "the signing key is not an Ed25519 private key in PKCS#8 PEM",
            Self::BadClaims => {
                "the claims need an id, a licensee, an expiry after the time of issue, and a grace of 366 days at most"
            }
        })
    }
}

impl std::error::Error for Fault {}

/// The output of `license inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// The claims. Not to be trusted unless `signatureValid`.
    pub claims: Claims,
    /// Whether a trusted key made the signature.
    pub signature_valid: bool,
    /// The time relative to its period.
    pub term: Term,
}

impl Claims {
    /// The time relative to this license's period.
    pub fn term(&self, now: OffsetDateTime) -> Term {
        if now + CLOCK_SKEW < self.issued_at {
            Term::NotYet
        } else if now < self.expires_at.saturating_sub(WARN_AHEAD) {
            Term::Valid
        } else if now < self.expires_at {
            Term::EndsSoon
        } else if now < self.ends_at() {
            Term::Grace
        } else {
            Term::Expired
        }
    }

    /// When servers stop taking it: at its expiry, or after the grace that its own text gives.
    pub fn ends_at(&self) -> OffsetDateTime {
        let grace = Duration::days(self.grace_days.into());
        self.expires_at.saturating_add(grace)
    }

    /// The warning, at the start and while the server runs, if the license expires soon or has expired.
    pub fn warning(&self, now: OffsetDateTime) -> Option<String> {
        let expires_at = rfc3339::text(self.expires_at);
        match self.term(now) {
            Term::EndsSoon => Some(format!(
                "The license ends at {expires_at}. Put a new key into SVC_LICENSE_KEY before that."
            )),
            Term::Grace => Some(format!(
                "The license ended at {expires_at}. The server starts with it until {}; put a new \
                 key into SVC_LICENSE_KEY.",
                rfc3339::text(self.ends_at())
            )),
            Term::Expired => Some(format!(
                "The license ended at {expires_at}. The server does not start again with it: put a \
                 new key into SVC_LICENSE_KEY."
            )),
            Term::NotYet | Term::Valid => None,
        }
    }

    fn sensible(&self) -> bool {
        let short = |text: &String| (1..=200).contains(&text.chars().count());
        short(&self.id)
            && short(&self.licensee)
            && self.issued_at < self.expires_at
            && self.grace_days <= MAX_GRACE_DAYS
            && self.features.len() <= 100
            && self.features.iter().all(short)
    }
}

/// The claims of a license key that is valid now.
///
/// # Errors
/// Why it is not valid.
pub fn verify(text: &str, trusted: &TrustedKeys, now: OffsetDateTime) -> Result<Claims, Fault> {
    let parts = Parts::of(text)?;
    if !parts.signed_by(trusted) {
        return Err(Fault::BadSignature);
    }
    let claims = parts.claims()?;
    match claims.term(now) {
        Term::NotYet => Err(Fault::NotYet),
        Term::Expired => Err(Fault::Expired),
        Term::Valid | Term::EndsSoon | Term::Grace => Ok(claims),
    }
}

/// The claims of a license key, and whether it is valid.
///
/// # Errors
/// The text is not a license key at all.
pub fn inspect(
    text: &str,
    trusted: &TrustedKeys,
    now: OffsetDateTime,
) -> Result<Inspection, Fault> {
    let parts = Parts::of(text)?;
    let claims = parts.claims()?;
    Ok(Inspection {
        signature_valid: parts.signed_by(trusted),
        term: claims.term(now),
        claims,
    })
}

/// A license key with these claims, signed with an Ed25519 private key (PKCS#8 PEM, RFC 8410).
///
/// # Errors
/// The key is not one, or no server would accept the claims.
pub fn sign(claims: &Claims, pkcs8_pem: &str) -> Result<String, Fault> {
    let key = SigningKey::from_pkcs8_pem(pkcs8_pem.trim()).map_err(|_| Fault::BadSigningKey)?;
    if claims.v != FORMAT_VERSION || !claims.sensible() {
        return Err(Fault::BadClaims);
    }
    let json = serde_json::to_vec(claims).map_err(|_| Fault::BadClaims)?;
    let signed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
    let signature = key.sign(signed.as_bytes()).to_bytes();
    let text = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
    if text.len() > MAX_BYTES {
        return Err(Fault::BadClaims);
    }
    Ok(text)
}

/// A parsed license key whose signature is not checked yet.
struct Parts<'a> {
    signed: &'a str,
    json: Vec<u8>,
    signature: Signature,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, Fault> {
        Self::read(text).ok_or(Fault::Malformed)
    }

    fn read(text: &'a str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let (signed, signature) = text.split_once('.')?;
        let json = URL_SAFE_NO_PAD.decode(signed.strip_prefix(PREFIX)?).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Self {
            signed,
            json,
            signature: Signature::from_slice(&signature).ok()?,
        })
    }

    fn signed_by(&self, trusted: &TrustedKeys) -> bool {
        trusted.0.iter().any(|bytes| {
            VerifyingKey::from_bytes(bytes).is_ok_and(|key| {
                key.verify_strict(self.signed.as_bytes(), &self.signature)
                    .is_ok()
            })
        })
    }

    fn claims(&self) -> Result<Claims, Fault> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let version: Version = serde_json::from_slice(&self.json).map_err(|_| Fault::Malformed)?;
        if version.v != FORMAT_VERSION {
            return Err(Fault::UnknownVersion);
        }
        serde_json::from_slice(&self.json)
            .ok()
            .filter(Claims::sensible)
            .ok_or(Fault::Malformed)
    }
}

#[cfg(test)]
pub(in crate::config) mod tests;
