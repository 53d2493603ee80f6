//! The values of the settings, by name.
//!
//! A part reads its settings where it makes its options, and only there. Few are read by two parts, or by the doctor too. A value was checked against the table before; a type that
//! differs from the table's is a defect of this program, which the test that loads the defaults finds.
//!
//! Not here: the settings that many parts and commands read, which are fields of [`Settings`](super::Settings).

use super::parse::{self, Value};
use super::read::{Row, value};
use super::types::Origin;
use crate::secret::Secret;
use ed25519_dalek::SigningKey;
use rustls_pki_types::CertificateDer;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The table has another type.
pub(super) fn defect<T>(name: &str) -> T {
    panic!("the settings table has another type for {name} than its reader")
}

/// Values by name. A setting that was not given has none; a list is then empty.
#[derive(Clone)]
pub struct Values(Arc<[Row]>);

impl Values {
    pub(super) fn new(rows: Vec<Row>) -> Self {
        Self(rows.into())
    }

    fn get(&self, name: &str) -> Option<&Value> {
        value(&self.0, name)
    }

    /// Whether it is on.
    pub fn boolean(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Boolean(on)) => *on,
            _ => defect(name),
        }
    }

    /// A number, if one was given.
    pub fn maybe_number<N: TryFrom<u64>>(&self, name: &str) -> Option<N> {
        match self.get(name)? {
            Value::Integer(number) => N::try_from(*number).ok(),
            _ => defect(name),
        }
    }

    /// A number.
    pub fn number<N: TryFrom<u64>>(&self, name: &str) -> N {
        self.maybe_number(name).unwrap_or_else(|| defect(name))
    }

    /// A time, of a setting in milliseconds.
    pub fn duration(&self, name: &str) -> Duration {
        Duration::from_millis(self.number(name))
    }

    /// One of the words of the table.
    pub fn word(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(Value::Word(word)) => word,
            _ => defect(name),
        }
    }

    /// An address.
    pub fn address(&self, name: &str) -> IpAddr {
        match self.get(name) {
            Some(Value::IpAddress(address)) => *address,
            _ => defect(name),
        }
    }

    /// A path.
    pub fn path(&self, name: &str) -> PathBuf {
        match self.get(name) {
            Some(Value::Path(path)) => path.clone(),
            _ => defect(name),
        }
    }

    /// An id, if one was given.
    pub fn uuid(&self, name: &str) -> Option<Uuid> {
        match self.get(name)? {
            Value::Uuid(uuid) => Some(*uuid),
            _ => defect(name),
        }
    }

    /// A text, if one was given.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => defect(name),
        }
    }

    /// A list of texts.
    pub fn texts(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Texts(texts)) => texts.clone(),
            _ => defect(name),
        }
    }

    /// A list of origins.
    pub fn origins(&self, name: &str) -> Vec<Origin> {
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Origins(origins)) => origins.clone(),
            _ => defect(name),
        }
    }

    /// A secret, if one was given.
    pub fn secret(&self, name: &str) -> Option<Secret> {
        match self.get(name)? {
            Value::Secret(secret) => Some(secret.clone()),
            _ => defect(name),
        }
    }

    /// Whether it was given.
    pub fn is_given(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A key, if one was given.
    pub fn signing_key(&self, name: &str) -> Option<Box<SigningKey>> {
        match self.get(name)? {
            Value::SigningKey(key) => Some(key.clone()),
            _ => defect(name),
        }
    }

    /// Certificates.
    pub fn certificates(&self, name: &str) -> Vec<CertificateDer<'static>> {
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Certificates(certificates)) => certificates.clone(),
            _ => defect(name),
        }
    }
}

impl Values {
    /// Headers of a setting that holds some, which is a secret.
    pub fn headers(&self, name: &str) -> Vec<(String, Secret)> {
        let headers = self.secret(name);
        let headers = headers.and_then(|text| parse::headers(text.expose()));
        headers.unwrap_or_default()
    }
}

impl std::fmt::Debug for Values {
    /// Without the values, some of which are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Values")
    }
}
