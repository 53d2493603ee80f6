//! An identity provider that does as the test says: by itself a good one, with PKCE, codes of one use and a client secret;
//! and in every row of what may be wrong with one, a bad one.

use agent_runtime::ids::Clock;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use url::Url;

pub(crate) const CLIENT_ID: &str = "agent-runtime";
/// With what a form and a header encode.
pub(crate) const CLIENT_SECRET: &str = "p%sw&rd é";

/// How long a list of keys is, in bytes, that is too long.
const HUGE: usize = 10 * 1024 * 1024;

/// A key that signs.
pub(crate) struct Signer {
    pub(crate) id: String,
    pair: Pair,
}

enum Pair {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    /// With PSS or without.
    Rsa(RsaKeyPair, bool),
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    pub(crate) fn ec(id: &str) -> Self {
        let (random, way) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let key = EcdsaKeyPair::generate_pkcs8(way, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(way, key.as_ref(), &random).unwrap();
        Self::new(id, Pair::Ec(pair))
    }

    pub(crate) fn ed(id: &str) -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::new(
            id,
            Pair::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap()),
        )
    }

    pub(crate) fn rsa(id: &str, with_pss: bool) -> Self {
        let pem = include_bytes!("kms/account.pem");
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem).unwrap();
        let pair = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
        Self::new(id, Pair::Rsa(pair, with_pss))
    }

    fn new(id: &str, pair: Pair) -> Self {
        Self {
            id: id.to_owned(),
            pair,
        }
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Ec(_) => "ES256",
            Pair::Ed(_) => "EdDSA",
            Pair::Rsa(_, false) => "RS256",
            Pair::Rsa(_, true) => "PS256",
        }
    }

    /// As the provider lists it.
    pub(crate) fn listed(&self) -> Value {
        let mut key = match &self.pair {
            Pair::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": encode(&point[1..33]), "y": encode(&point[33..])})
            }
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())})
            }
            Pair::Rsa(pair, _) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": encode(public.n), "e": encode(public.e)})
            }
        };
        key["use"] = json!("sig");
        key["kid"] = json!(self.id);
        key
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::Rsa(pair, with_pss) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let way: &'static dyn ring::signature::RsaEncoding = match with_pss {
                    true => &RSA_PSS_SHA256,
                    false => &RSA_PKCS1_SHA256,
                };
                pair.sign(way, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    /// HMAC with what everybody can read of the key: what a verifier takes that lets the token choose.
    fn forge(&self, message: &[u8]) -> Vec<u8> {
        let public = match &self.pair {
            Pair::Ec(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ed(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Rsa(pair, _) => RsaPublicKeyComponents::<Vec<u8>>::from(pair.public()).n,
        };
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public);
        ring::hmac::sign(&key, message).as_ref().to_vec()
    }
}

/// What a path answers in place of what is right.
#[derive(Debug, Clone)]
pub(crate) enum Instead {
    /// This status, with a `location` and a body.
    Answer(u16, Option<String>, String),
    /// More than is read.
    Huge,
    /// Nothing, until the test ends.
    Hang,
}

/// What the provider says. By itself it is a good one.
pub(crate) struct Says {
    /// Fields of its document; null takes one away.
    pub(crate) document: Map<String, Value>,
    /// Fields of the ID token's header.
    pub(crate) header: Map<String, Value>,
    /// Claims of the ID token; null takes one away.
    pub(crate) claims: Map<String, Value>,
    /// What is signed in place of claims.
    pub(crate) payload: Option<String>,
    /// The signature in place of its own, in base64.
    pub(crate) signature: Option<String>,
    /// Signed as HMAC with the public key.
    pub(crate) is_forged: bool,
    /// The key that signs.
    pub(crate) signer: Signer,
    /// Its list of keys.
    pub(crate) keys: Vec<Value>,
    /// Userinfo, if there is any.
    pub(crate) userinfo: Option<Value>,
    /// Time that passes before each answer.
    pub(crate) delay: Duration,
    /// By path: what is answered in its place.
    pub(crate) instead: HashMap<&'static str, Instead>,
    /// The issuer that a browser brings back.
    pub(crate) iss: Option<String>,
    /// The client has no secret.
    pub(crate) is_public: bool,
    /// It takes a code again that it took before.
    pub(crate) takes_codes_again: bool,
    /// The error that a browser brings back in place of a code.
    pub(crate) refuses: Option<&'static str>,
    /// What was asked for, in order: the path, the header `authorization`, the body.
    pub(crate) asked: Vec<(String, Option<String>, String)>,
    codes: HashMap<String, Begun>,
}

/// A sign-in for which a code was given.
struct Begun {
    nonce: String,
    challenge: String,
    redirect_uri: String,
    is_used: bool,
}

/// What a browser brings back.
#[derive(Debug, Clone)]
pub(crate) struct Returned {
    pub(crate) url: Url,
}

impl Returned {
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let mut pairs = self.url.query_pairs();
        pairs
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.into_owned())
    }

    #[track_caller]
    pub(crate) fn code(&self) -> String {
        self.value("code").expect("a code came back")
    }
}

/// The provider. It ends with the test.
pub(crate) struct IdentityProvider {
    server: Arc<tiny_http::Server>,
    issuer: String,
    says: Arc<Mutex<Says>>,
    serving: Option<JoinHandle<()>>,
}

impl IdentityProvider {
    pub(crate) fn start() -> Self {
        let server = Arc::new(tiny_http::Server::http("127.0.0.1:0").unwrap());
        let issuer = format!("http://{}", server.server_addr().to_ip().unwrap());
        let signer = Signer::ec("key-1");
        let says = Arc::new(Mutex::new(Says {
            document: Map::new(),
            header: Map::new(),
            claims: Map::new(),
            payload: None,
            signature: None,
            is_forged: false,
            keys: vec![signer.listed()],
            signer,
            userinfo: None,
            delay: Duration::ZERO,
            instead: HashMap::new(),
            iss: None,
            is_public: false,
            takes_codes_again: false,
            refuses: None,
            asked: Vec::new(),
            codes: HashMap::new(),
        }));
        let (serves, says_too, own) = (Arc::clone(&server), Arc::clone(&says), issuer.clone());
        let serving = std::thread::spawn(move || {
            // Requests that get no answer: dropped, they would get one.
            let mut held = Vec::new();
            while let Ok(request) = serves.recv() {
                let delay = says_too.lock().unwrap().delay;
                linger(delay);
                held.extend(answer(request, &own, &mut says_too.lock().unwrap()));
            }
        });
        Self {
            server,
            issuer,
            says,
            serving: Some(serving),
        }
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(crate) fn says(&self) -> MutexGuard<'_, Says> {
        self.says.lock().unwrap()
    }

    /// How often this path was asked for.
    pub(crate) fn asked(&self, path: &str) -> usize {
        let says = self.says();
        says.asked
            .iter()
            .filter(|(asked, _, _)| asked == path)
            .count()
    }

    /// What the last token call had: the header `authorization`, and the form.
    #[track_caller]
    pub(crate) fn token_call(&self) -> (Option<String>, HashMap<String, String>) {
        let says = self.says();
        let mut calls = says.asked.iter().rev();
        let (_, authorization, body) = calls.find(|(path, _, _)| path == "/token").unwrap();
        let form = url::form_urlencoded::parse(body.as_bytes());
        (authorization.clone(), form.into_owned().collect())
    }

    /// A person opens the address of a sign-in, and is sent back.
    pub(crate) fn opened(&self, url: &str) -> Returned {
        let url = Url::parse(url).unwrap();
        Returned {
            url: authorize(&url, &mut self.says()),
        }
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.server.unblock();
        let _ = self.serving.take().unwrap().join();
    }
}

/// The document, with what the test changes.
fn document(issuer: &str, says: &Says) -> Value {
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize?kept=1"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "id_token_signing_alg_values_supported": [says.signer.algorithm()],
        "code_challenge_methods_supported": ["S256"],
    });
    if says.userinfo.is_some() {
        document["userinfo_endpoint"] = json!(format!("{issuer}/userinfo"));
    }
    change(&mut document, &says.document);
    document
}

fn change(value: &mut Value, changes: &Map<String, Value>) {
    let fields = value.as_object_mut().unwrap();
    for (name, value) in changes {
        match value {
            Value::Null => drop(fields.remove(name)),
            value => drop(fields.insert(name.clone(), value.clone())),
        }
    }
}

/// Where the browser is sent that opened this address.
fn authorize(url: &Url, says: &mut Says) -> Url {
    let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
    let value = |name: &str| query.get(name).cloned().unwrap_or_default();
    assert_eq!(value("response_type"), "code");
    assert_eq!(value("client_id"), CLIENT_ID);
    assert_eq!(value("code_challenge_method"), "S256");
    assert_eq!(value("kept"), "1", "the endpoint's own query is kept");
    let mut back = Url::parse(&value("redirect_uri")).unwrap();
    {
        let mut pairs = back.query_pairs_mut();
        if let Some(error) = says.refuses {
            pairs.append_pair("error", error);
        } else {
            let code = format!("code-{}", says.codes.len() + 1);
            pairs.append_pair("code", &code);
            let begun = Begun {
                nonce: value("nonce"),
                challenge: value("code_challenge"),
                redirect_uri: value("redirect_uri"),
                is_used: false,
            };
            says.codes.insert(code, begun);
        }
        pairs.append_pair("state", &value("state"));
        if let Some(iss) = &says.iss {
            pairs.append_pair("iss", iss);
        }
    }
    back
}

/// The ID token of a sign-in.
fn id_token(issuer: &str, nonce: &str, says: &Says) -> String {
    let mut header = json!({"alg": says.signer.algorithm(), "kid": says.signer.id, "typ": "JWT"});
    change(&mut header, &says.header);
    let now = Clock::system().now().unix_timestamp();
    let mut claims = json!({
        "iss": issuer, "sub": "subject-1", "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce,
        "email": "ada@plant.example", "email_verified": true, "name": "Ada",
    });
    change(&mut claims, &says.claims);
    let message = format!(
        "{}.{}",
        encode(header.to_string()),
        encode(says.payload.clone().unwrap_or_else(|| claims.to_string()))
    );
    let signature = match &says.signature {
        Some(signature) => signature.clone(),
        None if says.is_forged => encode(says.signer.forge(message.as_bytes())),
        None => encode(says.signer.sign(message.as_bytes())),
    };
    format!("{message}.{signature}")
}

/// The answer to a token call.
fn exchange(
    issuer: &str,
    authorization: Option<&str>,
    body: &str,
    says: &mut Says,
) -> (u16, Value) {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let value = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if !says.is_public && !is_client(authorization, &form) {
        return (401, json!({"error": "invalid_client"}));
    }
    let begun = says.codes.get_mut(value("code"));
    let nonce = match begun {
        Some(begun)
            if (!begun.is_used || says.takes_codes_again)
                && begun.redirect_uri == value("redirect_uri")
                && begun.challenge == encode(Sha256::digest(value("code_verifier"))) =>
        {
            begun.is_used = true;
            begun.nonce.clone()
        }
        _ => {
            return (
                400,
                json!({"error": "invalid_grant", "error_description": "the code-1 was used"}),
            );
        }
    };
    let token = id_token(issuer, &nonce, says);
    (
        200,
        json!({"token_type": "Bearer", "access_token": "access-1", "id_token": token}),
    )
}

/// By the header, or in the body.
fn is_client(authorization: Option<&str>, form: &HashMap<String, String>) -> bool {
    let pair = |id: &str, secret: &str| (id.to_owned(), secret.to_owned());
    let (id, secret) = match authorization.and_then(|value| value.strip_prefix("Basic ")) {
        Some(encoded) => {
            let text = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
            let (id, secret) = text.split_once(':').unwrap();
            let decoded = |text: &str| {
                let pair = format!("x={text}");
                let mut pairs = url::form_urlencoded::parse(pair.as_bytes());
                pairs.next().unwrap().1.into_owned()
            };
            (decoded(id), decoded(secret))
        }
        None => pair(
            form.get("client_id").map_or("", String::as_str),
            form.get("client_secret").map_or("", String::as_str),
        ),
    };
    id == CLIENT_ID && secret == CLIENT_SECRET
}

/// Before an answer of a provider that is slow.
fn linger(time: Duration) {
    std::thread::sleep(time);
}

/// Answers a request, or gives it back if it is to hang.
fn answer(
    mut request: tiny_http::Request,
    issuer: &str,
    says: &mut Says,
) -> Option<tiny_http::Request> {
    let url = Url::parse(&format!("{issuer}{}", request.url())).unwrap();
    let path = url.path().to_owned();
    let mut body = String::new();
    request.as_reader().read_to_string(&mut body).unwrap();
    let mut headers = request.headers().iter();
    let authorization = headers.find(|header| header.field.equiv("authorization"));
    let authorization = authorization.map(|header| header.value.as_str().to_owned());
    says.asked
        .push((path.clone(), authorization.clone(), body.clone()));
    let instead = says.instead.iter().find(|(known, _)| **known == path);
    let instead = instead.map(|(_, instead)| instead.clone());
    let (status, location, text) = match instead {
        Some(Instead::Hang) => return Some(request),
        Some(Instead::Answer(status, location, text)) => (status, location, text),
        Some(Instead::Huge) => (
            200,
            None,
            format!("{{\"keys\":[],\"a\":\"{}\"}}", "a".repeat(HUGE)),
        ),
        None => {
            let (status, value) = match path.as_str() {
                "/.well-known/openid-configuration" => (200, document(issuer, says)),
                "/keys" => (200, json!({"keys": says.keys})),
                "/token" => exchange(issuer, authorization.as_deref(), &body, says),
                "/userinfo" if authorization.as_deref() == Some("Bearer access-1") => {
                    (200, says.userinfo.clone().unwrap_or_default())
                }
                "/authorize" => {
                    let back = authorize(&url, says).to_string();
                    let redirect = tiny_http::Response::from_string("")
                        .with_status_code(302)
                        .with_header(header("location", &back));
                    let _ = request.respond(redirect);
                    return None;
                }
                _ => (404, json!({})),
            };
            (status, None, value.to_string())
        }
    };
    let mut response = tiny_http::Response::from_string(text)
        .with_status_code(status)
        .with_header(header("content-type", "application/json"));
    if let Some(location) = location {
        response.add_header(header("location", &location));
    }
    // A client that reads no more is what some tests are about.
    let _ = request.respond(response);
    None
}

fn header(name: &str, value: &str) -> tiny_http::Header {
    tiny_http::Header::from_bytes(name, value).unwrap()
}
