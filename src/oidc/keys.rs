//! A provider's signing keys (RFC 7517), and which of them may have signed a token.
//!
//! Guarantees: a key serves one family of algorithms alone, whatever the token says. A key that the provider lists no more
//! serves for a day, so that a rotation refuses nobody.

use super::exchange::{Exchange, expect_ok, read};
use super::fault::Fault;
use crate::outbound::Response;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;
use url::Url;

/// How long a key serves that the provider lists no more.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// Keys of a provider that are looked at; those after them are left out.
const MOST: usize = 100;

pub(super) const WHAT: &str = "The provider's list of keys (jwks_uri)";

/// The algorithms that are taken.
pub(super) const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("RS256", Algorithm::RS256),
    ("PS256", Algorithm::PS256),
    ("ES256", Algorithm::ES256),
    ("EdDSA", Algorithm::EdDSA),
];

#[derive(Deserialize)]
struct Listed {
    keys: Vec<Value>,
}

/// A key that verifies.
#[derive(Clone)]
pub(super) struct Key {
    id: Option<String>,
    /// The algorithms that it may have signed with.
    algorithms: Vec<Algorithm>,
    pub(super) decoding: DecodingKey,
    listed_at: OffsetDateTime,
}

/// The keys of a provider.
pub(super) struct Keys {
    keys: Vec<Key>,
    pub(super) fetched_at: OffsetDateTime,
}

/// Fetches the keys.
pub(super) fn fetch(exchange: &mut Exchange<'_>, url: &Url) -> Result<Response, Fault> {
    let answer = exchange.get(WHAT, url.as_str(), &[])?;
    expect_ok(WHAT, answer)
}

impl Keys {
    /// The keys of an answer, and those that were listed within the last day.
    pub(super) fn of(
        answer: &Response,
        before: Option<&Self>,
        now: OffsetDateTime,
    ) -> Result<Self, Fault> {
        let listed: Listed = read(WHAT, &answer.body)?;
        let listed = listed.keys.into_iter().take(MOST);
        let mut keys: Vec<Key> = listed.filter_map(|value| key(value, now)).collect();
        let kept = before.into_iter().flat_map(|before| &before.keys);
        let kept: Vec<Key> = kept
            .filter(|old| {
                let is_listed = keys.iter().any(|key| key.id == old.id);
                old.id.is_some() && !is_listed && old.listed_at + KEPT_FOR > now
            })
            .take(MOST)
            .cloned()
            .collect();
        keys.extend(kept);
        Ok(Self {
            keys,
            fetched_at: now,
        })
    }

    /// Whether they may be used although no newer ones can be had.
    pub(super) fn serve(&self, now: OffsetDateTime) -> bool {
        self.fetched_at + KEPT_FOR > now
    }

    /// Those that may have signed with this algorithm: by the key's id, or of a token without one, all that are listed now.
    pub(super) fn fitting<'k>(
        &'k self,
        id: Option<&'k str>,
        algorithm: Algorithm,
        now: OffsetDateTime,
    ) -> impl Iterator<Item = &'k Key> {
        let fits = move |key: &&Key| {
            key.algorithms.contains(&algorithm)
                && key.listed_at + KEPT_FOR > now
                && match id {
                    Some(id) => key.id.as_deref() == Some(id),
                    None => key.listed_at == self.fetched_at,
                }
        };
        self.keys.iter().filter(fits)
    }

    /// How many keys serve, for whoever checks the provider.
    pub(super) fn count(&self) -> usize {
        self.keys.len()
    }
}

/// A key of the list, if it is one that verifies an ID token.
fn key(value: Value, now: OffsetDateTime) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let common = &jwk.common;
    let is_for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
    let verifies = common
        .key_operations
        .as_ref()
        .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    if !is_for_signatures || !verifies {
        return None;
    }
    let family: &[(KeyAlgorithm, Algorithm)] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => &[
            (KeyAlgorithm::RS256, Algorithm::RS256),
            (KeyAlgorithm::PS256, Algorithm::PS256),
        ],
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            &[(KeyAlgorithm::ES256, Algorithm::ES256)]
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            &[(KeyAlgorithm::EdDSA, Algorithm::EdDSA)]
        }
        _ => return None,
    };
    let named = common.key_algorithm;
    let allowed = family
        .iter()
        .filter(|(name, _)| named.is_none_or(|named| named == *name));
    let algorithms: Vec<Algorithm> = allowed.map(|(_, algorithm)| *algorithm).collect();
    if algorithms.is_empty() {
        return None;
    }
    Some(Key {
        id: common.key_id.clone(),
        algorithms,
        decoding: DecodingKey::from_jwk(&jwk).ok()?,
        listed_at: now,
    })
}
