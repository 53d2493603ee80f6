//! ID tokens (OpenID Connect Core, section 3.1.3.7): the signature, and the claims that bind a token to this sign-in.
//!
//! Guarantees: four algorithms and no other are taken, each with a key of its own family. Times are typed numbers and are
//! compared with the injected clock; the library compares none. No claim that has to be there is missing or of another type.
//!
//! `jsonwebtoken` reads keys and calls the verifier below, which is `ring`, as everywhere in this program.

use super::claims::{needed, seconds, subject};
use super::fault::{Code, Fault, shown};
use super::issuer::Issuer;
use super::keys::{ALGORITHMS, Keys};
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils, verify};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::sync::Once;
use std::time::Duration;
use time::OffsetDateTime;

/// How far two clocks may be apart.
pub(super) const SKEW: Duration = Duration::from_secs(60);
/// How long ago a token may have been made.
const AGE: Duration = Duration::from_secs(600);
/// Audiences of a token.
const AUDIENCES: usize = 50;

/// What a token's header says.
#[derive(Debug)]
pub(super) struct Head {
    algorithm: Algorithm,
    key_id: Option<String>,
}

/// What came of a signature.
pub(super) enum Signature {
    /// It is the provider's.
    Good,
    /// No key that is known signed it: newer ones may be listed.
    Unknown,
    /// It does not fit.
    Wrong,
}

fn malformed(why: &str) -> Fault {
    Fault::new(
        Code::AnswerMalformed,
        format!("The provider's ID token {why}."),
    )
}

/// Reads the header. Nothing in it is believed but which key to try.
pub(super) fn head(token: &str) -> Result<Head, Fault> {
    let mut parts = token.split('.');
    let (Some(head), Some(_), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed("has not three parts: it is not signed"));
    };
    let head = URL_SAFE_NO_PAD.decode(head).ok();
    let head = head.and_then(|head| serde_json::from_slice::<Map<String, Value>>(&head).ok());
    let head = head.ok_or_else(|| malformed("has no header that can be read"))?;
    // What has to be understood is not (RFC 7515, section 4.1.11).
    if head.contains_key("crit") {
        return Err(malformed(
            "has a header (crit) that asks for what is not known here",
        ));
    }
    let named = head.get("alg").and_then(Value::as_str).unwrap_or_default();
    let known = ALGORITHMS.iter().find(|(name, _)| *name == named);
    let (_, algorithm) = known.ok_or_else(|| {
        let beside = match named {
            "Ed25519" => " The same signature under the name EdDSA is taken.",
            _ => "",
        };
        let sentence = format!(
            "The provider's ID token is signed with {}, and RS256, PS256, ES256 and EdDSA are taken.{beside}",
            shown(named)
        );
        Fault::new(Code::AlgorithmRefused, sentence)
    })?;
    let key_id = match head.get("kid") {
        None => None,
        Some(Value::String(id)) if id.len() <= 1024 => Some(id.clone()),
        Some(_) => return Err(malformed("has a key id (kid) that is none")),
    };
    Ok(Head {
        algorithm: *algorithm,
        key_id,
    })
}

/// Looks for the key that signed it.
pub(super) fn signature(token: &str, head: &Head, keys: &Keys, now: OffsetDateTime) -> Signature {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        // Nobody else in this process uses the library.
        let _ = PROVIDER.install_default();
    });
    let mut fitting = keys
        .fitting(head.key_id.as_deref(), head.algorithm, now)
        .peekable();
    if fitting.peek().is_none() {
        return Signature::Unknown;
    }
    let (message, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    for key in fitting {
        let verified = verify(signature, message.as_bytes(), &key.decoding, head.algorithm);
        if verified.is_ok_and(|is_good| is_good) {
            return Signature::Good;
        }
    }
    match head.key_id {
        Some(_) => Signature::Wrong,
        // Without an id nobody knows whether the key was among them.
        None => Signature::Unknown,
    }
}

/// The claims of a token whose signature is good.
pub(super) fn payload(token: &str) -> Result<Map<String, Value>, Fault> {
    let payload = token.split('.').nth(1).unwrap_or_default();
    let payload = URL_SAFE_NO_PAD.decode(payload).ok();
    let claims = payload.and_then(|payload| serde_json::from_slice(&payload).ok());
    claims.ok_or_else(|| malformed("has claims that are not JSON"))
}

/// The fault of a token that no key verifies.
pub(super) fn not_verified(head: &Head, signature: &Signature) -> Fault {
    match (signature, &head.key_id) {
        (Signature::Unknown, Some(id)) => Fault::new(
            Code::KeyUnknown,
            format!(
                "The provider's ID token is signed with the key {}, and no key of that id that may sign so is listed.",
                shown(id)
            ),
        ),
        (Signature::Unknown, None) => Fault::new(
            Code::KeyUnknown,
            "The provider's ID token names no key, and none that is listed verifies it.",
        ),
        _ => Fault::new(
            Code::SignatureWrong,
            "The signature of the provider's ID token does not fit.",
        ),
    }
}

fn wrong(name: &str, is: &str) -> Fault {
    Fault::new(
        Code::ClaimWrong,
        format!("The claim {name} of the ID token {is}."),
    )
}

/// Checks what binds a token, whose signature is good, to this issuer, this client and this sign-in.
pub(super) fn claims(
    found: &Map<String, Value>,
    issuer: &Issuer<'_>,
    nonce: &Secret,
    now: OffsetDateTime,
) -> Result<(), Fault> {
    if needed(found, "iss")? != issuer.issuer {
        return Err(wrong(
            "iss",
            "is another issuer than the one that is configured",
        ));
    }
    subject(found)?;
    audience(found, issuer.client_id)?;
    times(found, now)?;
    // Digests: how long the comparison takes says nothing of the values.
    let given = Sha256::digest(needed(found, "nonce")?);
    match given == Sha256::digest(nonce.expose()) {
        true => Ok(()),
        false => Err(wrong("nonce", "is another than this sign-in began with")),
    }
}

/// The token is for this client.
fn audience(found: &Map<String, Value>, client_id: &str) -> Result<(), Fault> {
    let audiences: Vec<&str> = match found.get("aud") {
        None | Some(Value::Null) => return Err(wrong("aud", "is missing")),
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) if several.len() <= AUDIENCES => {
            let texts: Option<Vec<&str>> = several.iter().map(Value::as_str).collect();
            texts.ok_or_else(|| wrong("aud", "is not a list of texts"))?
        }
        Some(_) => return Err(wrong("aud", "is neither a text nor a list of at most 50")),
    };
    if !audiences.contains(&client_id) {
        return Err(wrong("aud", "does not name this client"));
    }
    // Asked for by one of several, or by whoever it names.
    match super::claims::text(found, "azp")? {
        None if audiences.len() > 1 => Err(wrong("azp", "is missing, and aud names several")),
        Some(party) if party != client_id => Err(wrong("azp", "is another client")),
        _ => Ok(()),
    }
}

/// The token is of now.
fn times(found: &Map<String, Value>, now: OffsetDateTime) -> Result<(), Fault> {
    let now = now.unix_timestamp();
    let seconds_of = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let (skew, age) = (seconds_of(SKEW), seconds_of(AGE));
    let missing = |name: &str| wrong(name, "is missing");
    let expires = seconds(found, "exp")?.ok_or_else(|| missing("exp"))?;
    let made = seconds(found, "iat")?.ok_or_else(|| missing("iat"))?;
    let begins = seconds(found, "nbf")?.unwrap_or(made);
    let of_time = |sentence: String| Err(Fault::new(Code::TimeWrong, sentence));
    if made.max(begins) > now + skew {
        return of_time(format!(
            "The provider made its ID token {} s in the future: its clock and this host's differ.",
            made.max(begins) - now
        ));
    }
    if made < now - age {
        return of_time(format!(
            "The provider made its ID token {} s ago: it is an old one, or the clocks differ.",
            now - made
        ));
    }
    if expires <= now - skew {
        return of_time(format!(
            "The provider's ID token ended {} s ago.",
            now - expires
        ));
    }
    Ok(())
}

/// Verification with `ring`. Nothing is signed.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

fn no_signer(_: &Algorithm, _: &EncodingKey) -> jsonwebtoken::errors::Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> jsonwebtoken::errors::Result<Box<dyn JwtVerifier>> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(ByRing {
        algorithm: *algorithm,
        key: key.clone(),
    }))
}

struct ByRing {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(
                    &RSA_PKCS1_2048_8192_SHA256,
                    message,
                    signature,
                )
            }
            (Algorithm::PS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(
                    &RSA_PSS_2048_8192_SHA256,
                    message,
                    signature,
                )
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        checked.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
