//! Refusals of Google Cloud KMS, in sentences that say what to do.
//!
//! The HTTP status and the status of the error body (`google.rpc.Status`) decide. The free text is
//! searched for a key version and its state but never repeated: anything on the way could have
//! written it.

use super::{DEADLINE, Kind, KmsFailure, word};
use crate::outbound;
use serde::Deserialize;
use serde_json::Value;

/// States in which a key version neither wraps nor opens, with what to do. Of two names with the
/// same beginning, the longer one comes first.
const STATES: [(&str, &str); 6] = [
    (
        "DESTROY_SCHEDULED",
        "restore that version before it is destroyed, and enable it",
    ),
    (
        "DESTROYED",
        "what it wrapped is lost: make another version the primary one, and store the secrets again",
    ),
    (
        "DISABLED",
        "enable that version again, or make another one the primary one for what is stored from now \
         on",
    ),
    ("PENDING_GENERATION", "wait until that version is made"),
    ("PENDING_IMPORT", "wait until that version is imported"),
    ("IMPORT_FAILED", "import that version again"),
];
const ROLE: &str = "roles/cloudkms.cryptoKeyEncrypterDecrypter";
const KEY_SETTINGS: &str = "SVC_SECRETS_KMS_PROJECT_ID, SVC_SECRETS_KMS_LOCATION, \
                            SVC_SECRETS_KMS_KEYRING_ID and SVC_SECRETS_KMS_KEY_ID";
const MAX_NAME_BYTES: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Encrypt,
    Decrypt,
}

impl Verb {
    /// Its spelling in the URL.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
        }
    }

    fn deed(self) -> &'static str {
        match self {
            Self::Encrypt => "wrap a data key",
            Self::Decrypt => "open a data key",
        }
    }
}

/// The service and its key.
pub(super) struct Service {
    pub(super) host: String,
    pub(super) key: String,
}

#[derive(Deserialize)]
struct Body {
    error: Said,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Said {
    status: String,
    message: String,
    details: Vec<Value>,
}

impl Service {
    fn failure(&self, kind: Kind, what: &str) -> KmsFailure {
        let Self { host, key } = self;
        KmsFailure::new(
            kind,
            format!("Google Cloud KMS at {host}, key {key}: {what}."),
        )
    }

    /// Whether a version of the key has this name.
    pub(super) fn is_version(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.key);
        let id = rest.and_then(|rest| rest.strip_prefix("/cryptoKeyVersions/"));
        id.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric()))
    }

    pub(super) fn not_ours(&self, key: &str) -> KmsFailure {
        let name: String = key.escape_default().take(MAX_NAME_BYTES).collect();
        let what = format!(
            "the data key is wrapped under {name}, which is no version of this key: set \
             SVC_SECRETS_BACKEND_KMS, {KEY_SETTINGS} to what they were when it was wrapped"
        );
        self.failure(Kind::NotFound, &what)
    }

    pub(super) fn checksum(&self, verb: Verb, what: &str) -> KmsFailure {
        let deed = verb.deed();
        self.failure(
            Kind::Checksum,
            &format!(
                "to {deed} was tried twice, and a CRC32C checksum did not match: {what}; look for \
                 what changes bytes between here and the service"
            ),
        )
    }

    pub(super) fn altered(&self) -> KmsFailure {
        self.failure(
            Kind::Altered,
            "the data key does not open: its row was moved, copied or altered, or \
             SVC_SECRETS_AAD_KEY_PATH (SVC_SECRETS_AAD_KEY) is another key than when the secret \
             was stored",
        )
    }

    pub(super) fn misunderstood(&self, verb: Verb) -> KmsFailure {
        let deed = verb.deed();
        self.failure(
            Kind::Invalid,
            &format!(
                "asked to {deed}, it answered something that is not of its protocol: check \
                 SVC_SECRETS_KMS_BASE_URL and what stands between"
            ),
        )
    }

    pub(super) fn unauthenticated(&self, source: &str) -> KmsFailure {
        let what = format!(
            "it does not take the access token (401), nor a new one: check the credentials from \
             {source}"
        );
        self.failure(Kind::Credentials, &what)
    }

    /// An exchange without an answer.
    pub(super) fn no_answer(&self, failure: &outbound::Failure) -> KmsFailure {
        use outbound::Kind as Out;
        let detail = failure.message().trim_end_matches('.');
        match failure.kind() {
            Out::Timeout(_) => {
                let limit_s = DEADLINE.as_secs();
                let what = format!("it did not answer within {limit_s} seconds: {detail}");
                self.failure(Kind::Timeout, &what)
            }
            Out::Refused | Out::Invalid | Out::TooLarge | Out::Protocol => {
                self.failure(Kind::Invalid, detail)
            }
            _ => self.failure(Kind::Unreachable, &format!("it is not reached: {detail}")),
        }
    }

    /// An answer that is neither a success nor a 401.
    pub(super) fn refused(&self, verb: Verb, status: u16, body: &[u8]) -> KmsFailure {
        let body: Option<Body> = serde_json::from_slice(body).ok();
        let said = body.map(|body| body.error).unwrap_or_default();
        let code = match word(&said.status) {
            Some(name) => format!("{status} {name}"),
            None => status.to_string(),
        };
        match (status, said.status.as_str()) {
            (400, "FAILED_PRECONDITION") => self.disabled(&said, &code),
            (400, "INVALID_ARGUMENT") if said.mentions("crc32c") => {
                self.checksum(verb, "the service did not receive what was sent")
            }
            (400, "INVALID_ARGUMENT") if verb == Verb::Decrypt => self.altered(),
            (403, _) => self.forbidden(verb, &said, &code),
            (404, "NOT_FOUND") => {
                let what = format!("there is no such key ({code}): check {KEY_SETTINGS}");
                self.failure(Kind::NotFound, &what)
            }
            (429, _) => {
                let what = format!("its quota is used up ({code}): try again later, or raise it");
                self.failure(Kind::Unreachable, &what)
            }
            (408 | 504, _) => {
                let what = format!("it took too long ({code}): try again later");
                self.failure(Kind::Timeout, &what)
            }
            (500.., _) => {
                let what = format!("it is out of order now ({code}): try again later");
                self.failure(Kind::Unreachable, &what)
            }
            (400, "INVALID_ARGUMENT") => {
                let what = format!(
                    "it takes the request for invalid ({code}): check that the key is one for \
                     symmetric encryption and decryption"
                );
                self.failure(Kind::Invalid, &what)
            }
            _ => {
                let what = format!(
                    "asked to {}, it answered {code}: check SVC_SECRETS_KMS_BASE_URL and what \
                     stands between",
                    verb.deed()
                );
                self.failure(Kind::Invalid, &what)
            }
        }
    }

    fn forbidden(&self, verb: Verb, said: &Said, code: &str) -> KmsFailure {
        let what = match said.reason() {
            Some(reason @ "SERVICE_DISABLED") => {
                format!("its project has not enabled the Cloud KMS API ({code}, {reason})")
            }
            reason => {
                let reason = reason.map_or_else(String::new, |reason| format!(", {reason}"));
                format!(
                    "this service may not {} ({code}{reason}): give its account the role {ROLE} on \
                     the key, and check {KEY_SETTINGS}",
                    verb.deed()
                )
            }
        };
        self.failure(Kind::Refused, &what)
    }

    fn disabled(&self, said: &Said, code: &str) -> KmsFailure {
        let version = said.version(self);
        let subject =
            version.map_or_else(|| "the key".to_owned(), |id| format!("its version {id}"));
        let state = STATES.iter().find(|(state, _)| said.mentions(state));
        let what = match state {
            Some((state, advice)) => format!("{subject} is {state} ({code}): {advice}"),
            None => format!(
                "{subject} is in no state to be used ({code}): look at the key's versions and which \
                 one is primary"
            ),
        };
        self.failure(Kind::KeyDisabled, &what)
    }
}

impl Said {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let violations = self
            .details
            .iter()
            .filter_map(|it| it["violations"].as_array());
        let fields = ["type", "subject", "description"];
        let inside = violations
            .flatten()
            .flat_map(move |violation| fields.map(|field| violation[field].as_str()))
            .flatten();
        std::iter::once(self.message.as_str()).chain(inside)
    }

    fn mentions(&self, word: &str) -> bool {
        self.texts().any(|text| text.contains(word))
    }

    /// The number of the key version that the text names.
    fn version(&self, service: &Service) -> Option<u64> {
        let prefix = format!("{}/cryptoKeyVersions/", service.key);
        self.texts().find_map(|text| {
            let (_, rest) = text.split_once(&prefix)?;
            let end = rest.find(|c: char| !c.is_ascii_digit());
            rest[..end.unwrap_or(rest.len())].parse().ok()
        })
    }

    /// `google.rpc.ErrorInfo`: the reason as one word.
    fn reason(&self) -> Option<&str> {
        let reasons = self.details.iter().filter_map(|it| it["reason"].as_str());
        reasons.filter_map(word).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> Service {
        Service {
            host: "kms.example".into(),
            key: "projects/p/locations/l/keyRings/r/cryptoKeys/k".into(),
        }
    }

    fn refused(verb: Verb, status: u16, said: Value) -> KmsFailure {
        let body = json!({ "error": said }).to_string();
        service().refused(verb, status, body.as_bytes())
    }

    #[test]
    fn a_version_that_is_in_no_state_to_be_used_is_named_with_its_state() {
        let version = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/12";
        for state in STATES.map(|(state, _)| state) {
            let message = format!("{version} is not enabled, current state is: {state}.");
            let said = json!({ "code": 400, "status": "FAILED_PRECONDITION", "message": message });
            let failure = refused(Verb::Decrypt, 400, said);
            assert_eq!(failure.kind, Kind::KeyDisabled);
            let expected = format!("its version 12 is {state} (400 FAILED_PRECONDITION): ");
            assert!(failure.message.contains(&expected), "{failure}");
        }
        let said = json!({
            "status": "FAILED_PRECONDITION",
            "message": "no",
            "details": [{ "violations": [{ "type": "KEY_DESTROYED", "subject": version }] }],
        });
        let failure = refused(Verb::Decrypt, 400, said);
        assert!(
            failure.message.contains("its version 12 is DESTROYED"),
            "{failure}"
        );
        let failure = refused(
            Verb::Encrypt,
            400,
            json!({ "status": "FAILED_PRECONDITION" }),
        );
        assert!(
            failure.message.contains("the key is in no state"),
            "{failure}"
        );
    }

    #[track_caller]
    fn check(failure: &KmsFailure, kind: Kind, expected: &str) {
        assert_eq!(failure.kind, kind, "{failure}");
        for part in [expected, "kms.example", &service().key] {
            assert!(failure.message.contains(part), "{failure} lacks {part}");
        }
    }

    #[test]
    fn every_refusal_has_its_kind_and_names_service_and_key() {
        use Kind::{Altered, Checksum, Invalid, NotFound, Refused, Timeout, Unreachable};
        for (status, name, kind, expected) in [
            (403, "PERMISSION_DENIED", Refused, ROLE),
            (404, "NOT_FOUND", NotFound, "SVC_SECRETS_KMS_KEY_ID"),
            (404, "", Invalid, "SVC_SECRETS_KMS_BASE_URL"),
            (301, "", Invalid, "it answered 301: "),
            (429, "RESOURCE_EXHAUSTED", Unreachable, "quota"),
            (503, "UNAVAILABLE", Unreachable, "(503 UNAVAILABLE)"),
            (502, "", Unreachable, "(502)"),
            (504, "DEADLINE_EXCEEDED", Timeout, "too long"),
            (400, "INVALID_ARGUMENT", Invalid, "symmetric"),
        ] {
            let failure = refused(Verb::Encrypt, status, json!({ "status": name }));
            check(&failure, kind, expected);
        }
        let invalid = |message| {
            let said = json!({ "status": "INVALID_ARGUMENT", "message": message });
            refused(Verb::Decrypt, 400, said)
        };
        check(
            &invalid("Decryption failed"),
            Altered,
            "moved, copied or altered",
        );
        let failure = invalid("ciphertext_crc32c did not match");
        check(&failure, Checksum, "did not receive what was sent");
        let page = service().refused(Verb::Encrypt, 503, b"<html>");
        check(&page, Unreachable, "(503)");
        let details = json!([{ "@type": "x", "reason": "SERVICE_DISABLED" }]);
        let said = json!({ "status": "PERMISSION_DENIED", "details": details });
        let failure = refused(Verb::Encrypt, 403, said);
        check(&failure, Refused, "has not enabled the Cloud KMS API");
    }

    #[test]
    fn what_the_service_wrote_freely_is_not_repeated() {
        for (status, name) in [
            (400, "FAILED_PRECONDITION"),
            (403, "x y"),
            (418, "s3cret\n"),
            (503, ""),
        ] {
            let said = json!({
                "status": name,
                "message": "s3cret projects/s3cret/cryptoKeyVersions/s3cret",
                "details": [{ "reason": "s3 cret" }],
            });
            let failure = refused(Verb::Encrypt, status, said);
            assert!(!failure.message.contains("s3"), "{failure}");
        }
    }

    #[test]
    fn a_version_belongs_to_its_key_alone() {
        let service = service();
        let key = &service.key;
        assert!(service.is_version(&format!("{key}/cryptoKeyVersions/1")));
        for other in [
            String::new(),
            key.clone(),
            format!("{key}/cryptoKeyVersions/"),
            format!("{key}/cryptoKeyVersions/1/.."),
            format!("{key}2/cryptoKeyVersions/1"),
            "1e2f55d35ba3f247".to_owned(),
        ] {
            assert!(!service.is_version(&other), "{other}");
            assert_eq!(service.not_ours(&other).kind, Kind::NotFound);
        }
    }
}
