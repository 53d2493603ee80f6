//! A key-management service for tests, as `cloud-a` knows it: encrypt and decrypt of one key with
//! real AES-GCM, the token endpoint, and the metadata server. It refuses what it does not know, so
//! that a request which the vendor would refuse is refused here. `tests/it/kms/vendor.rs` holds it
//! against the vendor's own client.

mod wire;

use agent_runtime::secrets::kms::{
    CloudAOptions, CredentialsFile, CredentialsOptions, KeyName, Options,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use crc32c::crc32c;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use wire::Request;

const KEY: &str = "projects/test/locations/global/keyRings/ring/cryptoKeys/key";
const ACCOUNT: &str = "runtime@test.iam.gserviceaccount.com";
const ACCOUNT_KEY: &str = include_str!("account.pem");
const NONCE_LEN: usize = 12;
/// Stands for no answer at all.
const CUT: u16 = 0;

/// What goes wrong with the next calls to encrypt and decrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An HTTP status with the status of its error body; an HTML page where that is empty.
    Refuse(u16, &'static str),
    /// No answer while the service stands.
    Hang,
    /// The connection is closed.
    Cut,
    /// The request's bytes are found to be others than were sent.
    ReceivedOther,
    /// The request's checksums are not looked at.
    Unverified,
    /// The answer's bytes are others than were sent.
    AnsweredOther,
    /// An answer of another protocol, with status 200.
    Nonsense,
}

/// How often it was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) encrypt: usize,
    pub(crate) decrypt: usize,
    /// Of the token endpoint and the metadata server together.
    pub(crate) tokens: usize,
}

/// The service. It ends with the test.
pub(crate) struct FakeKms {
    listener: TcpListener,
    shared: Arc<Shared>,
    directory: tempfile::TempDir,
    serving: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    counts: Counts,
    versions: Vec<Version>,
    /// The fault, and how many calls it is left for.
    fault: Option<(Fault, usize)>,
    /// What the token endpoint answers instead of a token.
    token_fault: Option<(u16, &'static str)>,
    tokens: HashSet<String>,
    /// Requests for tokens wait while this holds.
    tokens_held: bool,
    token_life_s: u64,
    /// The metadata server forgets to say what it is.
    flavorless: bool,
    connections: Vec<TcpStream>,
    ended: bool,
}

struct Version {
    key: [u8; 32],
    state: &'static str,
}

/// An answer: status and body.
type Said = (u16, Value);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Encrypt {
    #[serde(default)]
    plaintext: String,
    plaintext_crc32c: Option<String>,
    #[serde(default)]
    additional_authenticated_data: String,
    additional_authenticated_data_crc32c: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Decrypt {
    #[serde(default)]
    ciphertext: String,
    ciphertext_crc32c: Option<String>,
    #[serde(default)]
    additional_authenticated_data: String,
    additional_authenticated_data_crc32c: Option<String>,
}

impl FakeKms {
    /// A service with one key that has one version.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let shared = Arc::new(Shared::default());
        shared.lock().token_life_s = 3600;
        let (accepting, kept) = (listener.try_clone().unwrap(), Arc::clone(&shared));
        let made = Self {
            listener,
            shared,
            directory: tempfile::tempdir().unwrap(),
            serving: Some(std::thread::spawn(move || wire::serve(&accepting, &kept))),
        };
        made.rotate();
        let account = json!({
            "type": "service_account",
            "project_id": "test",
            "private_key_id": "key-1",
            "private_key": ACCOUNT_KEY,
            "client_email": ACCOUNT,
            "client_id": "1",
            "token_uri": format!("{}/token", made.url()),
        });
        made.write("service_account.json", &account);
        let user = json!({
            "type": "authorized_user",
            "client_id": "client",
            "client_secret": "client & secret",
            "refresh_token": "refresh/token",
            "token_uri": format!("{}/token", made.url()),
        });
        made.write("authorized_user.json", &user);
        made
    }

    fn write(&self, name: &str, content: &Value) {
        std::fs::write(self.file(name), content.to_string()).unwrap();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    /// Its base URL, which is the metadata server's too.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    /// A file of credentials: `service_account.json` or `authorized_user.json`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// How to reach it with the service account's key.
    pub(crate) fn options(&self) -> Options {
        self.options_with(Some("service_account.json"))
    }

    /// How to reach it with a file of credentials, or without one by the metadata server.
    pub(crate) fn options_with(&self, file: Option<&str>) -> Options {
        Options::CloudA(CloudAOptions {
            base_url: self.url(),
            key: KeyName {
                project: "test".into(),
                location: "global".into(),
                key_ring: "ring".into(),
                key: "key".into(),
            },
            credentials: CredentialsOptions {
                file: file.map(|name| CredentialsFile {
                    path: self.file(name),
                    setting: "SVC_SECRETS_KMS_CREDENTIALS_PATH",
                }),
                metadata_url: self.url(),
            },
        })
    }

    /// The resource name of a version, 1 being the first.
    pub(crate) fn version(number: usize) -> String {
        format!("{KEY}/cryptoKeyVersions/{number}")
    }

    /// Makes another version, which is the primary one from now on.
    pub(crate) fn rotate(&self) {
        let number = u8::try_from(self.lock().versions.len()).unwrap();
        self.lock().versions.push(Version {
            key: [number + 100; 32],
            state: "ENABLED",
        });
    }

    /// Sets the state of a version: `ENABLED`, `DISABLED`, `DESTROYED` and so on.
    pub(crate) fn set_state(&self, number: usize, state: &'static str) {
        self.lock().versions[number - 1].state = state;
    }

    /// The next `times` calls to encrypt and decrypt go wrong.
    pub(crate) fn fault(&self, fault: Fault, times: usize) {
        self.lock().fault = Some((fault, times));
    }

    /// Whoever asks for a token is answered this error of RFC 6749.
    pub(crate) fn refuse_tokens(&self, status: u16, error: &'static str) {
        self.lock().token_fault = Some((status, error));
    }

    /// Everything goes right again.
    pub(crate) fn mend(&self) {
        let mut state = self.lock();
        state.fault = None;
        state.token_fault = None;
        state.flavorless = false;
    }

    /// Requests for tokens wait from now on, or go on.
    pub(crate) fn hold_tokens(&self, held: bool) {
        self.lock().tokens_held = held;
        self.shared.changed.notify_all();
    }

    /// The tokens that were given hold no more.
    pub(crate) fn revoke_tokens(&self) {
        self.lock().tokens.clear();
    }

    /// How long the tokens hold that are given from now on.
    pub(crate) fn set_token_life_s(&self, life_s: u64) {
        self.lock().token_life_s = life_s;
    }

    /// The metadata server answers without saying what it is.
    pub(crate) fn forget_flavor(&self) {
        self.lock().flavorless = true;
    }

    /// How often it was asked.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts
    }
}

impl Drop for FakeKms {
    fn drop(&mut self) {
        let mut state = self.lock();
        state.ended = true;
        for connection in &state.connections {
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        drop(TcpStream::connect(self.listener.local_addr().unwrap()));
        let ended = self.serving.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn wait_while(&self, waits: impl Fn(&State) -> bool) {
        let state = self.lock();
        let waited = self
            .changed
            .wait_while(state, |state| waits(state) && !state.ended);
        drop(waited.unwrap());
    }
}

impl Shared {
    fn answer(&self, request: &Request) -> Said {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/token") => self.grant(&request.body),
            ("GET", path) if path.starts_with("/computeMetadata/v1/") => {
                self.metadata(request, path)
            }
            ("POST", path) if path.starts_with("/v1/") => {
                self.operate(request, path["/v1/".len()..].rsplit_once(':'))
            }
            _ => (404, Value::Null),
        }
    }

    /// A token for a service account's assertion or for a refresh token.
    fn grant(&self, form: &str) -> Said {
        self.lock().counts.tokens += 1;
        self.wait_while(|state| state.tokens_held);
        if let Some((status, error)) = self.lock().token_fault {
            return (
                status,
                json!({ "error": error, "error_description": "s3cret" }),
            );
        }
        let pairs: Vec<_> = url::form_urlencoded::parse(form.as_bytes()).collect();
        let field = |name: &str| {
            let found = pairs.iter().find(|(known, _)| known == name);
            found.map_or("", |(_, value)| value.as_ref())
        };
        let is_right = match field("grant_type") {
            "urn:ietf:params:oauth:grant-type:jwt-bearer" => is_assertion(field("assertion")),
            "refresh_token" => ["client_id", "client_secret", "refresh_token"]
                .map(field)
                .eq(&["client", "client & secret", "refresh/token"]),
            _ => return (400, json!({ "error": "unsupported_grant_type" })),
        };
        if !is_right {
            return (400, json!({ "error": "invalid_grant" }));
        }
        self.token()
    }

    fn token(&self) -> Said {
        let mut state = self.lock();
        let token = format!("token-{}", state.counts.tokens);
        state.tokens.insert(token.clone());
        let life_s = state.token_life_s;
        let said = json!({
            "access_token": token, "expires_in": life_s, "token_type": "Bearer",
        });
        (200, said)
    }

    fn metadata(&self, request: &Request, path: &str) -> Said {
        if request.header("metadata-flavor") != Some("Google") {
            return (403, Value::Null);
        }
        match path.trim_start_matches("/computeMetadata/v1/instance/service-accounts/default/") {
            "token" => {
                self.lock().counts.tokens += 1;
                self.wait_while(|state| state.tokens_held);
                if let Some((status, _)) = self.lock().token_fault {
                    return (status, Value::Null);
                }
                self.token()
            }
            "" => (
                200,
                json!({ "email": ACCOUNT, "scopes": [], "aliases": ["default"] }),
            ),
            _ => (404, Value::Null),
        }
    }

    fn operate(&self, request: &Request, verb: Option<(&str, &str)>) -> Said {
        let body = &request.body;
        let (key, verb) = verb.unwrap_or_default();
        let fault = {
            let mut state = self.lock();
            match verb {
                "encrypt" => state.counts.encrypt += 1,
                "decrypt" => state.counts.decrypt += 1,
                _ => return (404, Value::Null),
            }
            let token = request
                .header("authorization")
                .and_then(|it| it.strip_prefix("Bearer "));
            if !token.is_some_and(|token| state.tokens.contains(token)) {
                return error(
                    401,
                    "UNAUTHENTICATED",
                    "Invalid authentication credentials.",
                );
            }
            state.next_fault()
        };
        if key != KEY {
            return error(404, "NOT_FOUND", &format!("CryptoKey {key} not found."));
        }
        match fault {
            Some(Fault::Refuse(status, "")) => return (status, Value::Null),
            Some(Fault::Refuse(status, name)) => return error(status, name, "s3cret"),
            Some(Fault::Nonsense) => return (200, json!({ "hello": "world" })),
            Some(Fault::Cut) => return (CUT, Value::Null),
            Some(Fault::Hang) => self.wait_while(|_| true),
            _ => {}
        }
        let said = match verb {
            "encrypt" => self.encrypt(body, fault),
            _ => self.decrypt(body, fault),
        };
        said.unwrap_or_else(|said| said)
    }

    fn encrypt(&self, body: &str, fault: Option<Fault>) -> Result<Said, Said> {
        let asked: Encrypt = serde_json::from_str(body).map_err(unknown)?;
        let plain = received(
            &asked.plaintext,
            &asked.plaintext_crc32c,
            "plaintext",
            fault,
        )?;
        let (aad, aad_crc) = (
            &asked.additional_authenticated_data,
            &asked.additional_authenticated_data_crc32c,
        );
        let aad = received(aad, aad_crc, "additional_authenticated_data", None)?;
        let state = self.lock();
        let number = state.versions.len();
        let version = state.usable(number)?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).unwrap();
        let mut sealed = plain;
        version
            .cipher()
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(aad),
                &mut sealed,
            )
            .unwrap();
        let wrapped = [&[u8::try_from(number).unwrap()], nonce.as_slice(), &sealed].concat();
        let checked = fault != Some(Fault::Unverified);
        let said = json!({
            "name": FakeKms::version(number),
            "ciphertext": STANDARD.encode(&wrapped),
            "ciphertextCrc32c": answered(&wrapped, fault),
            "verifiedPlaintextCrc32c": checked && asked.plaintext_crc32c.is_some(),
            "verifiedAdditionalAuthenticatedDataCrc32c": checked && aad_crc.is_some(),
            "protectionLevel": "SOFTWARE",
        });
        Ok((200, said))
    }

    fn decrypt(&self, body: &str, fault: Option<Fault>) -> Result<Said, Said> {
        let asked: Decrypt = serde_json::from_str(body).map_err(unknown)?;
        let wrapped = received(
            &asked.ciphertext,
            &asked.ciphertext_crc32c,
            "ciphertext",
            fault,
        )?;
        let (aad, aad_crc) = (
            &asked.additional_authenticated_data,
            &asked.additional_authenticated_data_crc32c,
        );
        let aad = received(aad, aad_crc, "additional_authenticated_data", None)?;
        let wrong = || {
            let message = "Decryption failed: verify that 'name' refers to the correct CryptoKey.";
            error(400, "INVALID_ARGUMENT", message)
        };
        let state = self.lock();
        let number = usize::from(*wrapped.first().ok_or_else(wrong)?);
        if wrapped.len() < 1 + NONCE_LEN || number == 0 || number > state.versions.len() {
            return Err(wrong());
        }
        let version = state.usable(number)?;
        let nonce = Nonce::try_assume_unique_for_key(&wrapped[1..=NONCE_LEN]).unwrap();
        let mut sealed = wrapped[1 + NONCE_LEN..].to_vec();
        let opened = version
            .cipher()
            .open_in_place(nonce, Aad::from(aad), &mut sealed);
        let plain = opened.map_err(|_| wrong())?;
        let said = json!({
            "plaintext": STANDARD.encode(&plain),
            "plaintextCrc32c": answered(plain, fault),
            "usedPrimary": number == state.versions.len(),
            "protectionLevel": "SOFTWARE",
        });
        Ok((200, said))
    }
}

impl State {
    fn next_fault(&mut self) -> Option<Fault> {
        let (fault, left) = self.fault?;
        self.fault = (left > 1).then_some((fault, left - 1));
        Some(fault)
    }

    fn usable(&self, number: usize) -> Result<&Version, Said> {
        let version = &self.versions[number - 1];
        if version.state == "ENABLED" {
            return Ok(version);
        }
        let (name, state) = (FakeKms::version(number), version.state);
        let message = format!("{name} is not enabled, current state is: {state}.");
        Err(error(400, "FAILED_PRECONDITION", &message))
    }
}

impl Version {
    fn cipher(&self) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.key).unwrap())
    }
}

/// The bytes of a field, if they are those that its checksum was made of.
fn received(
    text: &str,
    checksum: &Option<String>,
    field: &str,
    fault: Option<Fault>,
) -> Result<Vec<u8>, Said> {
    let bytes = STANDARD.decode(text).map_err(unknown)?;
    let stated = checksum.as_ref().map(|text| text.parse::<u32>());
    let is_right = match stated {
        Some(stated) => stated == Ok(crc32c(&bytes)),
        None => true,
    };
    if !is_right || fault == Some(Fault::ReceivedOther) {
        let message = format!(
            "The checksum in field {field}_crc32c did not match the data in field {field}."
        );
        return Err(error(400, "INVALID_ARGUMENT", &message));
    }
    Ok(bytes)
}

/// The checksum of an answer's bytes, as 64-bit numbers stand in the vendor's JSON.
fn answered(bytes: &[u8], fault: Option<Fault>) -> String {
    let wrong = u32::from(fault == Some(Fault::AnsweredOther));
    (crc32c(bytes) ^ wrong).to_string()
}

fn unknown(cause: impl std::fmt::Display) -> Said {
    let message = format!("Invalid JSON payload received. {cause}");
    error(400, "INVALID_ARGUMENT", &message)
}

fn error(code: u16, status: &str, message: &str) -> Said {
    let said = json!({ "error": { "code": code, "status": status, "message": message } });
    (code, said)
}

/// Whether an assertion is one that the token endpoint takes (RFC 7523, section 3).
fn is_assertion(text: &str) -> bool {
    let Some((signed, signature)) = text.rsplit_once('.') else {
        return false;
    };
    let part = |index: usize| -> Value {
        let part = signed.split('.').nth(index).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let (header, claims) = (part(0), part(1));
    let der = PrivatePkcs8KeyDer::from_pem_slice(ACCOUNT_KEY.as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public().as_ref());
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    let [begun, ends] = ["iat", "exp"].map(|name| claims[name].as_i64().unwrap());
    public.verify(signed.as_bytes(), &signature).is_ok()
        && header["alg"] == "RS256"
        && header["kid"] == "key-1"
        && claims["iss"] == ACCOUNT
        && claims["aud"] == "https://oauth2.googleapis.com/token"
        && claims["scope"] == "https://www.googleapis.com/auth/cloudkms"
        && (now - begun).abs() < 300
        && ends > now
        && ends - begun <= 3600
}
