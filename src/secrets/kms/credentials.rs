//! Access tokens for Google Cloud: from a file of credentials, or else from the metadata server.
//!
//! A service account's key signs a JWT (RFC 7523, RS256), which the token endpoint exchanges for a
//! token. A person's sign-in leaves a refresh token (RFC 6749, section 6). The file is read again
//! for each renewal, so a new key takes effect without a restart. Other kinds of files are refused
//! by name.
//!
//! Not here: the present token and its renewal (`tokens`).

use super::connections::{ANSWER_CAP_BYTES, Connections};
use super::tokens::{Granted, Tokens};
use super::{Kind, KmsFailure, number, secret, word};
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::outbound::{self, Method, Outbound, Outgoing, Policy, Response};
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::form_urlencoded::Serializer;
use zeroize::Zeroizing;

/// The metadata server of a Google machine, used unless another is set.
pub const METADATA_URL: &str = "http://metadata.google.internal";

/// The token endpoint, unless the file names another.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// The JWT's audience. It stays the same if the file names another token endpoint.
const AUDIENCE: &str = "https://oauth2.googleapis.com/token";
/// The scope of the token: key management only.
const SCOPE: &str = "https://www.googleapis.com/auth/cloudkms";
const JWT_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const JWT_LIFE_S: i64 = 3600;
const METADATA_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";
const FLAVOR: (&str, &str) = ("metadata-flavor", "Google");
const MAX_FILE_BYTES: u64 = 64 * 1024;
const MAX_TOKEN_BYTES: usize = 8 * 1024;
const MAX_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Where access tokens come from.
#[derive(Debug, Clone)]
pub struct Options {
    /// A file of credentials. Without one, the metadata server is asked.
    pub file: Option<File>,
    /// `SVC_SECRETS_KMS_METADATA_URL`.
    pub metadata_url: String,
}

/// A file of credentials: a service account's key, or the result of a person's sign-in.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path.
    pub path: PathBuf,
    /// The setting that names the path, for messages.
    pub setting: &'static str,
}

pub(super) struct Credentials {
    options: Options,
    connections: Arc<Connections>,
    clock: Clock,
    tokens: Tokens,
}

/// What a file of credentials holds.
enum Stored {
    ServiceAccount(ServiceAccount),
    AuthorizedUser(AuthorizedUser),
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct ServiceAccount {
    client_email: String,
    #[serde(deserialize_with = "secret")]
    private_key: Secret,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct AuthorizedUser {
    client_id: String,
    #[serde(deserialize_with = "secret")]
    client_secret: Secret,
    #[serde(deserialize_with = "secret")]
    refresh_token: Secret,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(deserialize_with = "secret")]
    access_token: Secret,
    #[serde(deserialize_with = "number")]
    expires_in: Option<u32>,
}

/// RFC 6749, section 5.2.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Credentials {
    /// Reads a file of credentials once, so that a malformed one is reported at the start.
    pub(super) fn new(
        options: Options,
        outbound: &Outbound,
        connections: &Arc<Connections>,
        clock: &Clock,
    ) -> Result<Self> {
        let invalid = |message| Error::new(Code::InvalidRequest, message);
        if let Some(file) = &options.file {
            let stored = file.read().map_err(|failure| invalid(failure.message))?;
            if let Stored::ServiceAccount(account) = &stored {
                let signed = assertion(account, clock);
                signed.map_err(|what| invalid(file.says(what)))?;
            }
            outbound
                .check_url(Policy::Operator, stored.token_url())
                .map_err(|error| invalid(file.says(&format!("has a bad token_uri: {error}"))))?;
        } else {
            outbound.check_url(Policy::Operator, &options.metadata_url)?;
        }
        Ok(Self {
            options,
            connections: Arc::clone(connections),
            clock: clock.clone(),
            tokens: Tokens::default(),
        })
    }

    /// A token to send.
    pub(super) fn token(&self, deadline: Instant) -> Result<Secret, KmsFailure> {
        self.tokens
            .get(Instant::now(), deadline, |until| self.ask(until))
    }

    /// The service refuses this token: the next call gets a new one.
    pub(super) fn refused(&self, token: &Secret) {
        self.tokens.refused(token);
    }

    /// Where the credentials come from, for a message.
    pub(super) fn source(&self) -> String {
        match &self.options.file {
            Some(file) => format!("{} ({})", file.setting, file.path.display()),
            None => format!("the metadata server {}", self.options.metadata_url),
        }
    }

    fn ask(&self, deadline: Instant) -> Result<Granted, KmsFailure> {
        match &self.options.file {
            Some(file) => self.ask_with(file, deadline),
            None => self.ask_metadata(deadline),
        }
    }

    fn ask_with(&self, file: &File, deadline: Instant) -> Result<Granted, KmsFailure> {
        let stored = file.read()?;
        let form = match &stored {
            Stored::ServiceAccount(account) => {
                let assertion = assertion(account, &self.clock)
                    .map_err(|what| KmsFailure::new(Kind::Credentials, file.says(what)))?;
                form(&[("grant_type", JWT_GRANT), ("assertion", &assertion)])
            }
            Stored::AuthorizedUser(user) => form(&[
                ("grant_type", "refresh_token"),
                ("client_id", &user.client_id),
                ("client_secret", user.client_secret.expose()),
                ("refresh_token", user.refresh_token.expose()),
            ]),
        };
        let url = stored.token_url();
        let outgoing = Outgoing {
            method: Method::POST,
            url,
            headers: &[("content-type", "application/x-www-form-urlencoded")],
            body: form.as_bytes(),
            cap: ANSWER_CAP_BYTES,
        };
        let answer = self.connections.send(&outgoing, deadline);
        let answer = answer.map_err(|failure| no_answer(url, &failure))?;
        granted(answer, |status, error| {
            refused_by_endpoint(file, url, status, error)
        })
    }

    fn ask_metadata(&self, deadline: Instant) -> Result<Granted, KmsFailure> {
        let base = self.options.metadata_url.trim_end_matches('/');
        let outgoing = Outgoing {
            method: Method::GET,
            url: &format!("{base}{METADATA_PATH}"),
            headers: &[FLAVOR],
            body: &[],
            cap: ANSWER_CAP_BYTES,
        };
        let none = |kind, what: &str| {
            KmsFailure::new(
                kind,
                format!(
                    "There are no credentials for Google Cloud KMS: SVC_SECRETS_KMS_CREDENTIALS_PATH \
                     is not set, and the metadata server {base} {what}"
                ),
            )
        };
        let answer = self
            .connections
            .send(&outgoing, deadline)
            .map_err(|failure| {
                let kind = match failure.kind() {
                    outbound::Kind::Timeout(_) => Kind::Timeout,
                    _ => Kind::Credentials,
                };
                none(kind, &format!("gives none: {failure}"))
            })?;
        // Any host may answer under that name on another network, and its answer would be
        // forwarded.
        let flavor = answer.headers.get(FLAVOR.0).map(|value| value.as_bytes());
        if flavor != Some(FLAVOR.1.as_bytes()) {
            let what = "does not answer like one (it sends no Metadata-Flavor: Google).";
            return Err(none(Kind::Credentials, what));
        }
        granted(answer, |status, _| match status {
            404 => none(
                Kind::Credentials,
                "knows no service account (404): give the machine one.",
            ),
            429 | 500.. => none(
                Kind::Unreachable,
                &format!("is out of order now ({status})."),
            ),
            _ => none(Kind::Credentials, &format!("gives none ({status}).")),
        })
    }
}

impl File {
    fn says(&self, what: &str) -> String {
        format!(
            "The credentials for Google Cloud KMS that {} names ({}): the file {what}.",
            self.setting,
            self.path.display()
        )
    }

    fn read(&self) -> Result<Stored, KmsFailure> {
        let bad = |what: &str| KmsFailure::new(Kind::Credentials, self.says(what));
        let bytes = read(&self.path).map_err(|what| bad(&what))?;
        let typed: Typed = parse(&bytes).map_err(|()| bad("is not JSON with a type"))?;
        match typed.kind.as_str() {
            "service_account" => parse(&bytes).map(Stored::ServiceAccount).map_err(|()| {
                bad("has the type service_account and lacks client_email or private_key")
            }),
            "authorized_user" => parse(&bytes).map(Stored::AuthorizedUser).map_err(|()| {
                bad(
                    "has the type authorized_user and lacks client_id, client_secret or \
                     refresh_token",
                )
            }),
            other => Err(bad(&format!(
                "has the type {}, which is not supported: use a service_account's key, or the \
                 metadata server",
                word(other).unwrap_or("(unknown)")
            ))),
        }
    }
}

impl Stored {
    fn token_url(&self) -> &str {
        let uri = match self {
            Self::ServiceAccount(account) => &account.token_uri,
            Self::AuthorizedUser(user) => &user.token_uri,
        };
        uri.as_deref().unwrap_or(TOKEN_URL)
    }
}

/// Errors of the parser are left out: they repeat the input.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ()> {
    serde_json::from_slice(bytes).map_err(|_| ())
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    // Opening a named pipe would block.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("is not a plain file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Zeroizing::new(Vec::new());
    let mut limited = file.take(MAX_FILE_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("has more than {MAX_FILE_BYTES} bytes"));
    }
    Ok(bytes)
}

/// The claims of a service account for one hour (RFC 7523, section 3), signed.
fn assertion(account: &ServiceAccount, clock: &Clock) -> Result<Zeroizing<String>, &'static str> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(account.private_key.expose().as_bytes())
        .map_err(|_| "has a private_key that is not PKCS#8 PEM")?;
    let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der())
        .map_err(|_| "has a private_key that is not an RSA key of 2048 bits or more")?;
    let now = clock.now().unix_timestamp();
    let header = json!({ "alg": "RS256", "typ": "JWT", "kid": account.private_key_id });
    let claims = json!({
        "iss": account.client_email,
        "scope": SCOPE,
        "aud": AUDIENCE,
        "iat": now,
        "exp": now + JWT_LIFE_S,
    });
    let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut text = Zeroizing::new(format!("{}.{}", encode(&header), encode(&claims)));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        text.as_bytes(),
        &mut signature,
    )
    .map_err(|_| "has a private_key that does not sign")?;
    text.push('.');
    text.push_str(&URL_SAFE_NO_PAD.encode(signature));
    Ok(text)
}

fn form(pairs: &[(&str, &str)]) -> Zeroizing<String> {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(pairs);
    Zeroizing::new(form.finish())
}

/// The granted token, or `refusal` of the status and the error code.
fn granted(
    answer: Response,
    refusal: impl FnOnce(u16, Option<&str>) -> KmsFailure,
) -> Result<Granted, KmsFailure> {
    let body = Zeroizing::new(answer.body);
    if answer.status != 200 {
        let said: Option<Refusal> = parse(&body).ok();
        let code = said.as_ref().and_then(|said| word(&said.error));
        return Err(refusal(answer.status, code));
    }
    let granted: Option<Answer> = parse(&body).ok();
    let granted = granted.filter(|it| is_token(it.access_token.expose()));
    let life = granted.as_ref().and_then(|it| it.expires_in);
    match (granted, life) {
        (Some(granted), Some(life_s @ 1..)) => Ok(Granted {
            token: granted.access_token,
            life: Duration::from_secs(life_s.into()).min(MAX_LIFE),
        }),
        _ => Err(KmsFailure::new(
            Kind::Invalid,
            "What gives out access tokens for Google Cloud KMS answered something else than a \
             token with the time that it holds.",
        )),
    }
}

/// Whether a header can carry the text.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|b| b.is_ascii_graphic())
}

fn no_answer(url: &str, failure: &outbound::Failure) -> KmsFailure {
    let kind = match failure.kind() {
        outbound::Kind::Timeout(_) => Kind::Timeout,
        _ => Kind::Unreachable,
    };
    let message =
        format!("The token endpoint {url} of Google Cloud gives no access token: {failure}");
    KmsFailure::new(kind, message)
}

fn refused_by_endpoint(file: &File, url: &str, status: u16, code: Option<&str>) -> KmsFailure {
    let code = code.unwrap_or("no reason given");
    if status == 429 || status >= 500 {
        let message =
            format!("The token endpoint {url} of Google Cloud is out of order now ({status}).");
        return KmsFailure::new(Kind::Unreachable, message);
    }
    let advice = match code {
        "invalid_grant" => {
            "its key was deleted or replaced, its account is disabled, or this host's clock is wrong"
        }
        _ => "make new ones",
    };
    KmsFailure::new(
        Kind::Credentials,
        format!(
            "The token endpoint {url} does not take the credentials for Google Cloud KMS that {} \
             names ({}): {status} {code}: {advice}.",
            file.setting,
            file.path.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn failure(content: &str) -> KmsFailure {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let file = File {
            path: file.path().to_owned(),
            setting: "SVC_SECRETS_KMS_CREDENTIALS_PATH",
        };
        match file.read() {
            Ok(_) => panic!("{content} was taken"),
            Err(failure) => failure,
        }
    }

    #[test]
    fn a_file_that_is_no_use_is_told_by_its_setting_and_without_its_content() {
        for (content, expected) in [
            ("", "is not JSON with a type"),
            (r#"{"type":7}"#, "is not JSON with a type"),
            (
                r#"{"type":"external_account"}"#,
                "the type external_account, which is not",
            ),
            (
                r#"{"type":"impersonated_service_account"}"#,
                "impersonated_service_account",
            ),
            (r#"{"type":"\n"}"#, "(unknown)"),
            (
                r#"{"type":"service_account","client_email":"a","private_key":["s3cret"]}"#,
                "lacks client_email or private_key",
            ),
            (
                r#"{"type":"authorized_user","client_id":"a","client_secret":{"a":"s3cret"}}"#,
                "lacks client_id, client_secret or refresh_token",
            ),
        ] {
            let failure = failure(content);
            assert_eq!(failure.kind, Kind::Credentials);
            assert!(failure.message.contains(expected), "{failure}");
            assert!(failure.message.contains("SVC_SECRETS_KMS_CREDENTIALS_PATH"));
            assert!(!failure.message.contains("s3cret"), "{failure}");
        }
        assert!(failure(&"x".repeat(70_000)).message.contains("65536"));
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        let read = |path: &str| read(Path::new(path)).unwrap_err();
        assert!(read("/nowhere/key.json").starts_with("cannot be read: No such file"));
        assert_eq!(read("/dev/null"), "is not a plain file");
    }

    #[test]
    fn a_key_that_does_not_sign_is_told() {
        let account = |private_key: &str| ServiceAccount {
            client_email: "a@b".into(),
            private_key: Secret::new(private_key),
            private_key_id: None,
            token_uri: None,
        };
        let refusal = |key: &str| assertion(&account(key), &Clock::system()).unwrap_err();
        assert_eq!(refusal("x"), "has a private_key that is not PKCS#8 PEM");
        // An Ed25519 key.
        let other = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n-----END PRIVATE KEY-----\n";
        assert!(
            refusal(other).contains("not an RSA key"),
            "{}",
            refusal(other)
        );
    }
}
