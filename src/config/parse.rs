//! The parser of each type of setting. A fault's text says what is wrong, for use after the
//! setting's name. It never repeats the value: somebody may have put a secret into the wrong
//! setting.

use super::files::{self, Credentials};
use super::table::{Item, KeyForm, Kind};
use super::types::Origin;
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::DecodePrivateKey;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use url::{Host, Url};
use uuid::Uuid;
use zeroize::Zeroizing;

/// The most items that a list may have.
const MAX_ITEMS: usize = 1000;

/// The parsed value of a setting's text.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Boolean(bool),
    Integer(u64),
    Word(&'static str),
    Uuid(Uuid),
    IpAddress(IpAddr),
    Path(PathBuf),
    /// A text that its type's parser has accepted.
    Text(String),
    Secret(Secret),
    SigningKey(Box<SigningKey>),
    Certificates(Vec<CertificateDer<'static>>),
    Texts(Vec<String>),
    Origins(Vec<Origin>),
    ModelKeys(Vec<(String, Origin)>),
}

/// Parses a text by its type.
///
/// # Errors
/// What is wrong, beginning with a verb.
pub(super) fn parse(kind: Kind, text: &str, credentials: &Credentials) -> Result<Value, String> {
    let wrong = || format!("must be {}", kind.shape());
    match kind {
        Kind::Boolean => boolean(text).map(Value::Boolean).ok_or_else(wrong),
        Kind::Integer { min, max, .. } => integer(text, min, max)
            .map(Value::Integer)
            .ok_or_else(wrong),
        Kind::Choice(words) => words
            .iter()
            .find(|word| word.text == text)
            .map(|word| Value::Word(word.text))
            .ok_or_else(wrong),
        Kind::Uuid => uuid(text).map(Value::Uuid).ok_or_else(wrong),
        Kind::IpAddress => IpAddr::from_str(text)
            .map(Value::IpAddress)
            .map_err(|_| wrong()),
        Kind::HttpUrl => is_http_url(text)
            .then(|| Value::Text(text.to_owned()))
            .ok_or_else(wrong),
        Kind::DatabaseUrl => {
            database_url(text, wrong)?;
            Ok(Value::Secret(Secret::new(text)))
        }
        Kind::Email => crate::text::is_email(text)
            .then(|| Value::Text(text.to_owned()))
            .ok_or_else(wrong),
        Kind::Host => is_host(text)
            .then(|| Value::Text(text.to_owned()))
            .ok_or_else(wrong),
        Kind::HostAndPort => is_host_and_port(text)
            .then(|| Value::Text(text.to_owned()))
            .ok_or_else(wrong),
        Kind::AbsolutePath => absolute_path(text).map(Value::Path).ok_or_else(wrong),
        Kind::KeyFile(form) => key_file(form, text, credentials),
        Kind::KeyText(form) => {
            let bytes = STANDARD.decode(text).map(Zeroizing::new);
            key(form, bytes.map_err(|_| wrong())?).map_err(|()| wrong())
        }
        Kind::EnvironmentName => is_environment_name(text)
            .then(|| Value::Text(text.to_owned()))
            .ok_or_else(wrong),
        Kind::CertificateFile => certificates(text),
        Kind::Word { min, max } => {
            let fits = (min..=max).contains(&text.len());
            (fits && text.bytes().all(|byte| byte.is_ascii_graphic()))
                .then(|| Value::Secret(Secret::new(text)))
                .ok_or_else(wrong)
        }
        Kind::Headers => headers(text)
            .map(|_| Value::Secret(Secret::new(text)))
            .ok_or_else(wrong),
        Kind::LicenseKey => text
            .starts_with(super::license::PREFIX)
            .then(|| Value::Secret(Secret::new(text)))
            .ok_or_else(wrong),
        Kind::List(item) => list(item, text).map_err(|at| match at {
            0 => format!("has more than {MAX_ITEMS} items"),
            at => format!("{}; item {at} is not, or repeats an earlier one", wrong()),
        }),
    }
}

/// The booleans of the specification and no other spelling.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn integer(text: &str, min: u64, max: u64) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok())??;
    (min..=max).contains(&number).then_some(number)
}

fn uuid(text: &str) -> Option<Uuid> {
    crate::ids::parse(text)
}

fn absolute_path(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    (path.is_absolute() && !text.contains('\0')).then_some(path)
}

fn is_http_url(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else {
        return false;
    };
    matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether a text can name an environment.
pub(crate) fn is_environment_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=100).contains(&text.len())
        && text.bytes().all(plain)
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

fn is_host(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() {
        return true;
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    text.len() <= 253 && text.bytes().all(plain) && Host::parse(text).is_ok()
}

fn is_host_and_port(text: &str) -> bool {
    if let Some((host, port)) = text.rsplit_once(':')
        && let Some(port) = integer(port, 1, 65535)
    {
        let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        return port > 0
            && match bracketed {
                Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
                None => !host.contains(':') && is_host(host),
            };
    }
    !text.contains(':') && is_host(text)
}

/// Checks a database URL without connecting: its parts, and the two TLS parameters that the
/// `postgres` crate leaves to its caller.
fn database_url(text: &str, wrong: impl Fn() -> String) -> Result<(), String> {
    let scheme = text.starts_with("postgres://") || text.starts_with("postgresql://");
    if !scheme || text.len() > 8192 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong());
    }
    let (base, query) = text.split_once('?').unwrap_or((text, ""));
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => {
                const MODES: [&str; 6] = [
                    "disable",
                    "allow",
                    "prefer",
                    "require",
                    "verify-ca",
                    "verify-full",
                ];
                if !MODES.contains(&mode) {
                    return Err(format!(
                        "has an sslmode that is none of {}",
                        MODES.join(", ")
                    ));
                }
            }
            Some(("sslrootcert", path)) => {
                if path != "system" && !path.starts_with('/') && !path.starts_with("%2") {
                    return Err(
                        "has an sslrootcert that is neither an absolute path nor system".to_owned(),
                    );
                }
            }
            _ => rest.push(pair),
        }
    }
    let plain = Zeroizing::new(format!("{base}?{}", rest.join("&")));
    postgres::Config::from_str(plain.trim_end_matches('?'))
        .map(|_| ())
        .map_err(|_| format!("{}, and its parameters those that libpq knows", wrong()))
}

/// A file of 32 bytes that begins with this line is for development only: `dev` makes such files.
pub(super) const DEVELOPMENT_KEY: &[u8] = b"agent-runtime development key\n";

/// Whether a setting names a key file that is for development only.
pub(super) fn is_development_key(kind: Kind, text: &str, credentials: &Credentials) -> bool {
    let Kind::KeyFile(KeyForm::Bytes32) = kind else {
        return false;
    };
    let bytes = credentials.read_secret(Path::new(text));
    bytes.is_ok_and(|bytes| bytes.starts_with(DEVELOPMENT_KEY))
}

fn key_file(form: KeyForm, text: &str, credentials: &Credentials) -> Result<Value, String> {
    let mut bytes = credentials.read_secret(Path::new(text))?;
    if form == KeyForm::Bytes32 && bytes.starts_with(DEVELOPMENT_KEY) {
        bytes.drain(..DEVELOPMENT_KEY.len());
    }
    let length = bytes.len();
    key(form, bytes).map_err(|()| match form {
        KeyForm::Ed25519 => {
            "names a file that does not hold an Ed25519 private key (PKCS#8 PEM)".to_owned()
        }
        KeyForm::Bytes32 => format!("names a file of {length} bytes instead of 32"),
    })
}

fn key(form: KeyForm, bytes: Zeroizing<Vec<u8>>) -> Result<Value, ()> {
    match form {
        KeyForm::Bytes32 if bytes.len() == 32 => {
            Ok(Value::Secret(Secret::new(STANDARD.encode(&bytes))))
        }
        KeyForm::Bytes32 => Err(()),
        KeyForm::Ed25519 => match std::str::from_utf8(&bytes) {
            Ok(text) if text.contains("-----BEGIN") => SigningKey::from_pkcs8_pem(text.trim()),
            _ => SigningKey::from_pkcs8_der(&bytes),
        }
        .map(|key| Value::SigningKey(Box::new(key)))
        .map_err(|_| ()),
    }
}

fn certificates(text: &str) -> Result<Value, String> {
    let bytes = files::read_certificates(Path::new(text))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(Value::Certificates(certificates)),
        _ => Err("names a file that does not hold PEM certificates".to_owned()),
    }
}

/// Headers that frame a message or that the exporter sets.
const OWN_HEADERS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers by their names in lower case, as OpenTelemetry writes them in one text: `name=value` pairs,
/// whose values are percent-encoded.
pub(super) fn headers(text: &str) -> Option<Vec<(String, Secret)>> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=')?;
        let name = name.trim().to_ascii_lowercase();
        let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8();
        let value = Zeroizing::new(value.ok()?.into_owned());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_name = (1..=100).contains(&name.len()) && name.bytes().all(plain);
        let is_value = (1..=4096).contains(&value.len())
            && value.trim() == value.as_str()
            && value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let is_own = OWN_HEADERS.contains(&name.as_str());
        if !is_name || !is_value || is_own || !seen.insert(name.clone()) {
            return None;
        }
        all.push((name, Secret::new(value.as_str())));
    }
    (all.len() <= MAX_ITEMS).then_some(all)
}

/// Parses a list. The error is the number of the faulty item, from 1, or 0 if the list is too long.
fn list(item: Item, text: &str) -> Result<Value, usize> {
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    if items.len() > MAX_ITEMS {
        return Err(0);
    }
    let mut seen = BTreeSet::new();
    for (index, &text) in items.iter().enumerate() {
        let identity = identity(item, text).ok_or(index + 1)?;
        if !seen.insert(identity) {
            return Err(index + 1);
        }
    }
    let texts = || items.iter().map(|&text| text.to_owned()).collect();
    Ok(match item {
        Item::Origin => Value::Origins(items.iter().filter_map(|t| Origin::parse(t)).collect()),
        Item::ModelKey => Value::ModelKeys(items.iter().filter_map(|t| model_key(t)).collect()),
        Item::LevelPair => Value::Text(items.join(",")),
        Item::Registry | Item::RelativePath | Item::KeyPattern => Value::Texts(texts()),
    })
}

/// The part of an item that must be unique, if the item is valid.
fn identity(item: Item, text: &str) -> Option<String> {
    let is = |condition: bool| condition.then(|| text.to_owned());
    match item {
        Item::Origin => Origin::parse(text).map(|origin| origin.text().to_owned()),
        Item::ModelKey => model_key(text).map(|(name, _)| name),
        Item::Registry => is(is_host_and_port(text)),
        Item::RelativePath => {
            let normal = |part| matches!(part, Component::Normal(_));
            is(!text.is_empty() && Path::new(text).components().all(normal))
        }
        Item::KeyPattern => is((1..=100).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && text.bytes().any(|b| b.is_ascii_alphanumeric())),
        Item::LevelPair => {
            let (subsystem, level) = text.split_once('=')?;
            let part = |part: &str| {
                !part.is_empty()
                    && part
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            };
            (subsystem.len() <= 200
                && subsystem.split('.').all(part)
                && super::types::LogLevel::parse(level).is_some())
            .then(|| subsystem.to_owned())
        }
    }
}

fn model_key(text: &str) -> Option<(String, Origin)> {
    let (name, origin) = text.split_once('=')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let named = (1..=100).contains(&name.len())
        && name.bytes().all(plain)
        && name.bytes().any(|byte| byte != b'.')
        && !name.starts_with("SVC_");
    Some((named.then(|| name.to_owned())?, Origin::parse(origin)?))
}
