//! Vendor `cloud-a`: Google Cloud KMS over REST (`cryptoKeys.encrypt`, `cryptoKeys.decrypt`).
//!
//! CRC32C checksums protect both directions: the service checks the request, and this module checks
//! the answer. After a mismatch the call is made once more, so that no data key is stored that
//! could not be opened. Each wrap names the key version that made it; for opening, the service
//! reads it from the wrapped bytes.
//!
//! Not here: access tokens (`credentials`), the meaning of a refusal (`refusal`).

use super::connections::{ANSWER_CAP_BYTES, Connections};
use super::credentials::{self, Credentials};
use super::local::exactly_32;
use super::refusal::{Service, Verb};
use super::{DEADLINE, Kind, KmsFailure, Wrapped, number, secret};
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::outbound::{Method, Outbound, Outgoing, Policy, Response};
use crate::secret::{Secret, decoded};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc32c::crc32c;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The service's public address, used unless another is set.
pub const BASE_URL: &str = "https://cloudkms.googleapis.com";
/// How long the name of the primary key version is cached.
pub const PRIMARY_AGE: Duration = Duration::from_secs(10);

const MAX_ID_BYTES: usize = 200;
/// A plaintext that is wrapped only to learn the primary version; the result is discarded.
const PROBE: [u8; 32] = [0; 32];
const PROBE_AAD: &[u8] = b"agent-runtime: which version wraps";

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

impl KeyName {
    /// The key's resource name.
    fn resource(&self) -> Result<String> {
        let parts = [
            ("projects", &self.project, "SVC_SECRETS_KMS_PROJECT_ID"),
            ("locations", &self.location, "SVC_SECRETS_KMS_LOCATION"),
            ("keyRings", &self.key_ring, "SVC_SECRETS_KMS_KEYRING_ID"),
            ("cryptoKeys", &self.key, "SVC_SECRETS_KMS_KEY_ID"),
        ];
        let mut names = Vec::new();
        for (collection, id, setting) in parts {
            if !is_id(id) {
                let message = format!(
                    "{setting} must be the id alone: letters, digits, and any of . _ : - between \
                     them, at most {MAX_ID_BYTES} characters."
                );
                return Err(Error::new(Code::InvalidRequest, message));
            }
            names.push(format!("{collection}/{id}"));
        }
        Ok(names.join("/"))
    }
}

/// An id becomes part of a URL's path unencoded.
fn is_id(text: &str) -> bool {
    text.len() <= MAX_ID_BYTES
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
}

/// Google Cloud KMS, with one key of it.
#[derive(Clone)]
pub struct CloudA(Arc<Inner>);

struct Inner {
    service: Service,
    url: String,
    connections: Arc<Connections>,
    credentials: Credentials,
    /// The key version that wrapped last, and when.
    primary: Mutex<Option<(Instant, String)>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Encrypted {
    name: String,
    ciphertext: String,
    #[serde(default, deserialize_with = "number")]
    ciphertext_crc32c: Option<u32>,
    #[serde(default)]
    verified_plaintext_crc32c: bool,
    #[serde(default)]
    verified_additional_authenticated_data_crc32c: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decrypted {
    #[serde(deserialize_with = "secret")]
    plaintext: Secret,
    #[serde(default, deserialize_with = "number")]
    plaintext_crc32c: Option<u32>,
}

impl CloudA {
    pub(super) fn new(options: Options, outbound: &Outbound, clock: &Clock) -> Result<Self> {
        let base = outbound.check_url(Policy::Operator, &options.base_url)?;
        if base.query().is_some() {
            return Err(Error::new(
                Code::InvalidRequest,
                "SVC_SECRETS_KMS_BASE_URL must not have a query (?).",
            ));
        }
        let key = options.key.resource()?;
        let connections = Arc::new(Connections::new(outbound));
        let credentials = Credentials::new(options.credentials, outbound, &connections, clock)?;
        Ok(Self(Arc::new(Inner {
            url: format!("{}/v1/{key}", base.as_str().trim_end_matches('/')),
            service: Service {
                host: base.host_str().unwrap_or_default().to_owned(),
                key,
            },
            connections,
            credentials,
            primary: Mutex::default(),
        })))
    }

    pub(super) fn wrap(&self, data_key: &[u8; 32], aad: &[u8]) -> Result<Wrapped, KmsFailure> {
        let deadline = Instant::now() + DEADLINE;
        twice(|| self.0.encrypt(data_key, aad, deadline))
    }

    pub(super) fn unwrap(
        &self,
        wrapped: &Wrapped,
        aad: &[u8],
        within: Duration,
    ) -> Result<Zeroizing<[u8; 32]>, KmsFailure> {
        if !self.0.service.is_version(&wrapped.key) {
            return Err(self.0.service.not_ours(&wrapped.key));
        }
        let deadline = Instant::now() + within.min(DEADLINE);
        twice(|| self.0.decrypt(wrapped, aad, deadline))
    }

    /// The primary version is learned by wrapping something: asking for it would need a further
    /// permission.
    pub(super) fn is_current(&self, key: &str) -> Result<bool, KmsFailure> {
        let known = self.0.primary().clone();
        match known {
            Some((at, name)) if at.elapsed() < PRIMARY_AGE => Ok(name == key),
            _ => Ok(self.wrap(&PROBE, PROBE_AAD)?.key == key),
        }
    }
}

/// Repeats a call once after a checksum mismatch, within the same deadline.
fn twice<T>(call: impl Fn() -> Result<T, KmsFailure>) -> Result<T, KmsFailure> {
    match call() {
        Err(failure) if failure.kind == Kind::Checksum => call(),
        other => other,
    }
}

impl Inner {
    fn primary(&self) -> std::sync::MutexGuard<'_, Option<(Instant, String)>> {
        self.primary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encrypt(
        &self,
        data_key: &[u8; 32],
        aad: &[u8],
        deadline: Instant,
    ) -> Result<Wrapped, KmsFailure> {
        let body = body("plaintext", data_key, aad);
        let answer: Encrypted = self.call(Verb::Encrypt, &body, deadline)?;
        let bytes = STANDARD.decode(&answer.ciphertext);
        let bytes = bytes.map_err(|_| self.service.misunderstood(Verb::Encrypt))?;
        let mismatch = |what| Err(self.service.checksum(Verb::Encrypt, what));
        if !answer.verified_plaintext_crc32c {
            return mismatch("the service did not check the data key that it was sent");
        }
        if !answer.verified_additional_authenticated_data_crc32c {
            return mismatch("the service did not check the associated data that it was sent");
        }
        if answer.ciphertext_crc32c != Some(crc32c(&bytes)) {
            return mismatch("the wrapped key that it answered is not what it sent");
        }
        if !self.service.is_version(&answer.name) {
            return Err(self.service.misunderstood(Verb::Encrypt));
        }
        *self.primary() = Some((Instant::now(), answer.name.clone()));
        Ok(Wrapped {
            key: answer.name,
            bytes,
        })
    }

    fn decrypt(
        &self,
        wrapped: &Wrapped,
        aad: &[u8],
        deadline: Instant,
    ) -> Result<Zeroizing<[u8; 32]>, KmsFailure> {
        let body = body("ciphertext", &wrapped.bytes, aad);
        let answer: Decrypted = self.call(Verb::Decrypt, &body, deadline)?;
        let text = answer.plaintext.expose();
        let bytes =
            decoded(text, text.len()).ok_or_else(|| self.service.misunderstood(Verb::Decrypt))?;
        if answer.plaintext_crc32c != Some(crc32c(&bytes)) {
            let what = "the data key that it answered is not what it sent";
            return Err(self.service.checksum(Verb::Decrypt, what));
        }
        exactly_32(&bytes).ok_or_else(|| self.service.altered())
    }

    fn call<T: DeserializeOwned>(
        &self,
        verb: Verb,
        body: &str,
        deadline: Instant,
    ) -> Result<T, KmsFailure> {
        let token = self.credentials.token(deadline)?;
        let mut answer = self.post(verb, body, &token, deadline)?;
        if answer.status == 401 {
            self.credentials.refused(&token);
            let token = self.credentials.token(deadline)?;
            answer = self.post(verb, body, &token, deadline)?;
        }
        let body = Zeroizing::new(answer.body);
        match answer.status {
            200 => serde_json::from_slice(&body).map_err(|_| self.service.misunderstood(verb)),
            401 => Err(self.service.unauthenticated(&self.credentials.source())),
            status => Err(self.service.refused(verb, status, &body)),
        }
    }

    fn post(
        &self,
        verb: Verb,
        body: &str,
        token: &Secret,
        deadline: Instant,
    ) -> Result<Response, KmsFailure> {
        let bearer = Zeroizing::new(format!("Bearer {}", token.expose()));
        let outgoing = Outgoing {
            method: Method::POST,
            url: &format!("{}:{}", self.url, verb.method()),
            headers: &[
                ("content-type", "application/json"),
                ("authorization", &bearer),
            ],
            body: body.as_bytes(),
            cap: ANSWER_CAP_BYTES,
        };
        let answer = self.connections.send(&outgoing, deadline);
        answer.map_err(|failure| self.service.no_answer(&failure))
    }
}

/// A request's body, wiped when dropped. 64-bit numbers are strings in the JSON of Google's APIs.
fn body(field: &str, bytes: &[u8], aad: &[u8]) -> Zeroizing<String> {
    let mut body = Zeroizing::new(String::with_capacity(512 + 2 * (bytes.len() + aad.len())));
    let mut separator = '{';
    for (name, bytes) in [(field, bytes), ("additionalAuthenticatedData", aad)] {
        body.push(separator);
        body.push_str(&format!(r#""{name}Crc32c":"{}","{name}":""#, crc32c(bytes)));
        STANDARD.encode_string(bytes, &mut body);
        body.push('"');
        separator = ',';
    }
    body.push('}');
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_carries_base64_and_the_checksums_as_strings() {
        // The check value of CRC-32C (Castagnoli).
        let body: serde_json::Value =
            serde_json::from_str(&body("plaintext", b"123456789", b"")).unwrap();
        assert_eq!(
            body,
            json!({
                "plaintext": "MTIzNDU2Nzg5",
                "plaintextCrc32c": "3808858755",
                "additionalAuthenticatedData": "",
                "additionalAuthenticatedDataCrc32c": "0",
            })
        );
    }

    #[test]
    fn a_checksum_is_read_as_a_string_or_as_a_number() {
        let read = |crc: &str| {
            let text = format!(r#"{{"plaintext":"","plaintextCrc32c":{crc}}}"#);
            serde_json::from_str::<Decrypted>(&text).map(|d| d.plaintext_crc32c)
        };
        assert_eq!(read("\"3808858755\"").unwrap(), Some(3_808_858_755));
        assert_eq!(read("3808858755").unwrap(), Some(3_808_858_755));
        assert_eq!(read("null").unwrap(), None);
        assert_eq!(read("\"4294967296\"").unwrap(), None);
        assert_eq!(read("-1").unwrap(), None);
    }

    #[test]
    fn a_keys_name_is_made_of_ids_alone() {
        let name = |key: &str| KeyName {
            project: "example.com:project-1".into(),
            location: "europe-west3".into(),
            key_ring: "ring_1".into(),
            key: key.into(),
        };
        assert_eq!(
            name("k").resource().unwrap(),
            "projects/example.com:project-1/locations/europe-west3/keyRings/ring_1/cryptoKeys/k"
        );
        for bad in ["", "a/b", "..", "a?b", "a b", "é", &"k".repeat(201)] {
            let error = name(bad).resource().unwrap_err();
            assert!(
                error.to_string().contains("SVC_SECRETS_KMS_KEY_ID"),
                "{error}"
            );
        }
    }
}
