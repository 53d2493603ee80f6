//! What proves to an HTTP tool who calls: headers whose values are secrets, and the secrets that sign the call.
//!
//! Guarantees: a secret is read at each attempt, under the environment that this server serves, and only if a use allows it for
//! the tool's origin and the run's project at that moment. Its value goes into a header of that attempt, or into a signature,
//! and nowhere else. What the tool answers is searched for each value before anybody sees it.
//!
//! Left out: who may name a secret in a tool (`api::tools`), and who may allow a use (`api::secret_uses`).

use super::redaction::Redaction;
use crate::secret::Secret;
use crate::secrets::{SecretRef, Secrets, Unreadable};
use crate::store::turns::HttpTarget;
use crate::store::{Store, secret_uses};
use crate::uri;
use crate::webhooks::sign;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The shortest value: a shorter one would be an ordinary word, which no answer could have.
const VALUE_LEAST_BYTES: usize = 8;

/// The longest value. Servers take headers of 8 KiB in all, most of them.
const VALUE_MOST_BYTES: usize = 8 * 1024;

/// How long the secret's value before may take to be read. The present one signs without it.
const PREVIOUS_TIME: Duration = Duration::from_secs(2);

/// Headers that the service sends itself, that frame the exchange, or that each hop on the way takes for itself.
const NOT_FREE: [&str; 25] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
    "x-forwarded-for",
];

/// What one attempt proves itself with.
#[derive(Default)]
pub struct Credentials {
    headers: Vec<(String, Secret)>,
    /// The newest first.
    signing: Vec<Secret>,
    redaction: Redaction,
}

/// Where an attempt reads its secrets, and for which project.
pub struct Sources<'a> {
    /// Has the uses.
    pub store: &'a Store,
    /// Has the values.
    pub secrets: &'a Secrets,
    /// The environment that this server serves.
    pub environment: Option<&'a str>,
    /// The run's tenant.
    pub tenant_id: Uuid,
    /// The run's project.
    pub project_id: Uuid,
}

/// Why a tool cannot be called, as a sentence without a value.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// A part that is needed is away. Another try may help.
    Away(String),
    /// What is missing or wrong stays so until somebody changes it.
    Unusable(String),
}

/// Why a header of this name cannot be a tool's own, if so.
pub fn header_fault(name: &str) -> Option<&'static str> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_token) {
        return Some("a header's name: 1 to 64 letters, digits and hyphens");
    }
    let is_taken = NOT_FREE
        .iter()
        .any(|taken| name.eq_ignore_ascii_case(taken));
    is_taken
        .then_some("a header that neither the service sends itself nor a proxy takes for itself")
}

/// Whether a text can stand before a value.
pub fn is_prefix(text: &str) -> bool {
    let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
    text.len() <= 64 && text.bytes().all(is_printable) && !text.starts_with(' ')
}

impl Credentials {
    /// Reads the secrets that a tool names.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub fn read(sources: &Sources<'_>, tool: &HttpTarget) -> Result<Self, Refused> {
        if tool.headers.is_empty() && tool.signing_secret.is_none() {
            return Ok(Self::default());
        }
        let (secrets, tenant_id) = (sources.secrets, sources.tenant_id);
        let environment = sources.environment.ok_or_else(|| {
            let said = "The tool names secrets, and SVC_ENVIRONMENT is not set.";
            Refused::Unusable(said.to_owned())
        })?;
        check_uses(sources, tool)?;
        let at = |name: &String| SecretRef {
            environment: environment.to_owned(),
            name: name.clone(),
        };
        let mut headers = Vec::with_capacity(tool.headers.len());
        let mut values = Vec::with_capacity(tool.headers.len());
        for header in &tool.headers {
            let at = at(&header.secret);
            let value = secrets.resolve(tenant_id, &at);
            let value = value.map_err(|why| refused(secrets, &why, &at))?;
            check_value(&value, &at)?;
            let whole = format!("{}{}", header.prefix, value.expose());
            headers.push((header.name.to_ascii_lowercase(), Secret::new(whole)));
            values.push((header.secret.as_str(), value));
        }
        let mut signing = Vec::new();
        if let Some(name) = &tool.signing_secret {
            let (at, until) = (at(name), Instant::now() + PREVIOUS_TIME);
            let read = secrets.signing(tenant_id, &at, None, until);
            signing = read.map_err(|why| refused(secrets, &why, &at))?;
            if let Some(Err(why)) = signing.first().map(sign::check_secret) {
                let said = format!("The secret {at} cannot sign the call. {why}");
                return Err(Refused::Unusable(said));
            }
        }
        let redaction = redaction(&values, tool.signing_secret.as_deref(), &signing)?;
        Ok(Self {
            headers,
            signing,
            redaction,
        })
    }

    /// The headers of a call with this id and this body.
    ///
    /// # Errors
    /// A sentence: the call cannot be signed.
    pub(super) fn headers(
        &self,
        id: &str,
        timestamp: i64,
        body: &str,
    ) -> Result<Vec<(&str, Secret)>, String> {
        let own = self.headers.iter();
        let mut headers: Vec<_> = own
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        if !self.signing.is_empty() {
            let signature = sign::header(&self.signing, id, timestamp, body)?;
            headers.push(("webhook-id", Secret::new(id)));
            headers.push(("webhook-timestamp", Secret::new(timestamp.to_string())));
            headers.push(("webhook-signature", Secret::new(signature)));
        }
        Ok(headers)
    }

    /// A text of the tool's, without the values.
    pub(super) fn redact(&self, text: String) -> String {
        self.redaction.apply(text)
    }
}

/// What to look for: the values of headers, and what signs, as it is stored and as the key that it stands for.
fn redaction(
    values: &[(&str, Secret)],
    signing_name: Option<&str>,
    signing: &[Secret],
) -> Result<Redaction, Refused> {
    let name = signing_name.unwrap_or_default();
    let keys: Vec<_> = signing
        .iter()
        .filter_map(|secret| sign::key(secret).ok())
        .collect();
    let of_headers = values
        .iter()
        .map(|(name, value)| (*name, value.expose().as_bytes()));
    let of_signing = signing
        .iter()
        .map(|secret| (name, secret.expose().as_bytes()));
    let of_keys = keys.iter().map(|key| (name, key.as_slice()));
    let all: Vec<_> = of_headers.chain(of_signing).chain(of_keys).collect();
    Redaction::of(&all).ok_or_else(|| {
        let said = "The values of the tool's secrets are too long.";
        Refused::Unusable(said.to_owned())
    })
}

/// Each secret that the tool names may be sent to the tool's origin from the project, as the database has it now.
fn check_uses(sources: &Sources<'_>, tool: &HttpTarget) -> Result<(), Refused> {
    let origin = uri::origin(&tool.url).ok_or_else(|| {
        let said = "The tool's URL has no origin that a secret may go to.";
        Refused::Unusable(said.to_owned())
    })?;
    let of_headers = tool.headers.iter().map(|header| header.secret.as_str());
    let names: Vec<&str> = of_headers.chain(tool.signing_secret.as_deref()).collect();
    let target = secret_uses::of_origin(&origin);
    let lacking = sources.store.session().and_then(|mut session| {
        let (tenant_id, project_id) = (sources.tenant_id, sources.project_id);
        secret_uses::lacking(&mut session, tenant_id, project_id, &target, &names)
    });
    let lacking = lacking.map_err(|error| Refused::Away(error.message().to_owned()))?;
    match lacking.first() {
        None => Ok(()),
        Some(name) => Err(Refused::Unusable(format!(
            "The secret {name} may not be sent to {origin} from this project. A tenant admin can allow it."
        ))),
    }
}

fn refused(secrets: &Secrets, why: &Unreadable, at: &SecretRef) -> Refused {
    let said = why.sentence(at);
    match why {
        Unreadable::Unavailable(_) | Unreadable::DatabaseAway(_) if secrets.is_on() => {
            Refused::Away(said)
        }
        _ => Refused::Unusable(said),
    }
}

/// A value that can stand in a header and be told from ordinary text.
fn check_value(value: &Secret, at: &SecretRef) -> Result<(), Refused> {
    let text = value.expose();
    let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
    let said = if text.len() < VALUE_LEAST_BYTES {
        format!("has fewer than {VALUE_LEAST_BYTES} bytes")
    } else if text.len() > VALUE_MOST_BYTES {
        format!("has more than {VALUE_MOST_BYTES} bytes")
    } else if !text.bytes().all(is_printable) || text.trim_ascii() != text {
        "has other characters than visible ASCII and spaces between them, such as a line end"
            .to_owned()
    } else {
        return Ok(());
    };
    Err(Refused::Unusable(format!(
        "The secret {at} cannot be a header of a tool: its value {said}."
    )))
}
