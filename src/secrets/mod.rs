//! Secrets of tenants: values that go in through the API and never come out of it.
//!
//! Guarantees: a value is in memory only while it is used and for a short time after ([`cache`]); it
//! is never in an error, a log or a `Debug`. What cannot be read says why, in a sentence that names
//! the part which stands in the way.
//!
//! Not here: the routes (`api::secrets`), the rows (`store::secrets`), and the type that holds a value
//! in memory (`secret`).

mod cache;
mod dotenv;
mod envelope;
pub mod kms;
mod postgres;

use crate::config::is_environment_name;
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::proof::{Admin, May};
use crate::secret::Secret;
use crate::store::secrets::{Described, ListRequest, Placed, Stored};
use crate::store::{Store, tenants::Tenant};
use std::sync::Arc;
use std::time::Instant;
use time::Duration;
use uuid::Uuid;

pub use crate::store::secrets::SecretRef;
pub use dotenv::DotenvOptions;
pub use envelope::AadKey;

/// How long a value still signs after another one took its identity.
pub const OVERLAP: Duration = Duration::hours(24);

/// How long an opened value stays in memory after it was read.
pub const KEPT_FOR: std::time::Duration = std::time::Duration::from_secs(60);

/// How long an earlier value that could not be read is not asked for again.
const FAILED_FOR: std::time::Duration = std::time::Duration::from_secs(10);

/// Bytes of a value at most.
pub const VALUE_MAX_BYTES: usize = 64 * 1024;

/// Why a secret cannot be read: a sentence for a person, without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The environment has no secret of that name.
    NotFound,
    /// What is stored was moved, copied or altered, or belongs to another key.
    Altered(String),
    /// A part that is needed does not answer or refuses; the sentence says which.
    Unavailable(String),
    /// The service's own database does not answer just now: nothing is known of the secret.
    DatabaseAway(String),
}

impl Unreadable {
    /// Why this secret cannot be read.
    pub fn sentence(&self, at: &SecretRef) -> String {
        match self {
            Self::NotFound => format!(
                "There is no secret {} in the environment {}.",
                at.name, at.environment
            ),
            Self::Altered(sentence)
            | Self::Unavailable(sentence)
            | Self::DatabaseAway(sentence) => sentence.clone(),
        }
    }
}

/// Where secrets live (`SVC_SECRETS_BACKEND`).
#[derive(Debug, Clone)]
pub enum Options {
    /// Nowhere.
    Off,
    /// In the database, encrypted.
    Postgres(Box<PostgresOptions>),
    /// In env files (development).
    Dotenv(DotenvOptions),
}

/// The backend `postgres`.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// What wraps data keys.
    pub kms: kms::Options,
    /// The key that binds rows to their identities.
    pub aad_key: AadKey,
    /// How long an opened value may be used again, and stays in memory ([`KEPT_FOR`]).
    pub kept_for: std::time::Duration,
}

/// What came of wrapping data keys anew.
#[derive(Debug, Default, serde::Serialize)]
pub struct Rewrapped {
    /// Versions that were looked at.
    pub versions: u64,
    /// Those whose key was the one that stands. In a dry run, and could be read.
    pub current: u64,
    /// Those that were wrapped anew, or would be.
    pub rewrapped: u64,
    /// Why the others could not be read, a sentence each.
    pub unreadable: Vec<String>,
}

/// The secrets of all tenants. Cheap to clone.
#[derive(Clone)]
pub struct Secrets(Option<Arc<Backend>>);

enum Backend {
    Postgres(Box<postgres::Postgres>),
    Dotenv(dotenv::Dotenv),
}

impl Secrets {
    /// Opens the backend; asks nobody yet.
    ///
    /// # Errors
    /// The backend's settings are no use.
    pub fn new(
        options: Options,
        store: &Store,
        outbound: &Outbound,
        clock: &Clock,
        log: slog::Logger,
    ) -> Result<Self> {
        Ok(Self(match options {
            Options::Off => None,
            Options::Dotenv(options) => {
                Some(Arc::new(Backend::Dotenv(dotenv::Dotenv::new(options)?)))
            }
            Options::Postgres(options) => {
                let kept_for = options.kept_for;
                Some(Arc::new(Backend::Postgres(Box::new(postgres::Postgres {
                    store: store.clone(),
                    clock: clock.clone(),
                    keys: keys(*options, outbound, clock)?,
                    cache: Arc::new(cache::Cache::new(kept_for)),
                    failed: Arc::new(cache::Cache::new(FAILED_FOR)),
                    log,
                }))))
            }
        }))
    }

    /// No backend.
    pub fn off() -> Self {
        Self(None)
    }

    /// The same secrets, read through this handle on the database.
    pub fn through(&self, store: &Store) -> Self {
        match self.0.as_deref() {
            Some(Backend::Postgres(postgres)) => {
                let mut postgres = postgres.clone();
                postgres.store = store.clone();
                Self(Some(Arc::new(Backend::Postgres(postgres))))
            }
            _ => self.clone(),
        }
    }

    /// Whether there is a backend.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a service on another host wraps the keys, so that a put waits for it.
    pub fn is_wrapped_elsewhere(&self) -> bool {
        match self.0.as_deref() {
            Some(Backend::Postgres(postgres)) => {
                matches!(postgres.keys.kms, kms::Kms::CloudA(_))
            }
            _ => false,
        }
    }

    /// Wipes the opened values that were kept for their time. To be called every few seconds.
    pub fn sweep(&self) {
        if let Some(Backend::Postgres(postgres)) = self.0.as_deref() {
            postgres.sweep();
        }
    }

    /// How many opened values are kept in memory.
    pub fn kept(&self) -> usize {
        match self.0.as_deref() {
            Some(Backend::Postgres(postgres)) => postgres.cache.len(),
            _ => 0,
        }
    }

    /// The value that stands.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn resolve(&self, tenant_id: Uuid, at: &SecretRef) -> Result<Secret, Unreadable> {
        match self.readable(at)? {
            Backend::Postgres(postgres) => postgres.resolve(tenant_id, at),
            Backend::Dotenv(dotenv) => dotenv.resolve(tenant_id, at),
        }
    }

    /// What signs now: the value that stands, then the one before it while that was superseded less
    /// than [`OVERLAP`] ago and can be read `until` then. `read` is what the database has just said of it,
    /// if it was asked.
    ///
    /// # Errors
    /// Why the one that stands cannot be read.
    pub fn signing(
        &self,
        tenant_id: Uuid,
        at: &SecretRef,
        read: Option<Stored>,
        until: Instant,
    ) -> Result<Vec<Secret>, Unreadable> {
        match self.readable(at)? {
            Backend::Postgres(postgres) => postgres.signing(tenant_id, at, read, until),
            Backend::Dotenv(dotenv) => dotenv.resolve(tenant_id, at).map(|value| vec![value]),
        }
    }

    /// The value that stands, to sign beside another secret's: if it can be read `until` then.
    ///
    /// # Errors
    /// The database is away: whether it can be read is not known.
    pub fn beside(
        &self,
        tenant_id: Uuid,
        at: &SecretRef,
        until: Instant,
    ) -> Result<Option<Secret>, Unreadable> {
        match self.readable(at) {
            Ok(Backend::Postgres(postgres)) => postgres.resolve_beside(tenant_id, at, until),
            Ok(Backend::Dotenv(dotenv)) => Ok(dotenv.resolve(tenant_id, at).ok()),
            Err(_) => Ok(None),
        }
    }

    /// Whether there is a secret of that name. It is not opened.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub fn exists(&self, tenant_id: Uuid, at: &SecretRef) -> Result<bool, Unreadable> {
        match self.readable(at) {
            Ok(Backend::Postgres(postgres)) => postgres.exists(tenant_id, at),
            Ok(Backend::Dotenv(dotenv)) => dotenv.exists(tenant_id, at),
            Err(Unreadable::NotFound) => Ok(false),
            Err(unreadable) => Err(unreadable),
        }
    }

    /// The secret of that name, without its value.
    ///
    /// # Errors
    /// `database-unavailable`, `secrets-unavailable`.
    pub fn find(&self, may: &impl May<Admin, Tenant>, at: &SecretRef) -> Result<Option<Described>> {
        match self.readable(at) {
            Ok(Backend::Postgres(postgres)) => postgres.find(may, at),
            Ok(Backend::Dotenv(dotenv)) => dotenv.find(may, at),
            Err(_) => Ok(None),
        }
    }

    /// A page of the tenant's secrets, without their values.
    ///
    /// # Errors
    /// `database-unavailable`, `secrets-unavailable`.
    pub fn list(
        &self,
        may: &impl May<Admin, Tenant>,
        page: &ListRequest,
    ) -> Result<Vec<Described>> {
        match self.backend()? {
            Backend::Postgres(postgres) => postgres.list(may, page),
            Backend::Dotenv(dotenv) => dotenv.list(may, page),
        }
    }

    /// Puts a value. True beside it: there was none of that name. The caller has seen to it that what
    /// the request decided is on disk.
    ///
    /// # Errors
    /// `invalid-request`: the name or the environment is none; `conflict`: others put it at the same
    /// time; `secrets-unavailable`, `database-unavailable`.
    pub fn put(
        &self,
        may: &impl May<Admin, Tenant>,
        author: Uuid,
        at: &SecretRef,
        value: &Secret,
    ) -> Result<(Described, bool)> {
        check(at)?;
        match self.backend()? {
            Backend::Postgres(postgres) => postgres.put(may, author, at, value),
            Backend::Dotenv(dotenv) => dotenv.put(may, at, value),
        }
    }

    /// Deletes it with its versions. False: there is none. As for [`Secrets::put`].
    ///
    /// # Errors
    /// `database-unavailable`, `secrets-unavailable`.
    pub fn delete(&self, may: &impl May<Admin, Tenant>, at: &SecretRef) -> Result<bool> {
        match self.readable(at) {
            Ok(Backend::Postgres(postgres)) => postgres.delete(may, at),
            Ok(Backend::Dotenv(dotenv)) => dotenv.delete(may, at),
            Err(_) => Ok(false),
        }
    }

    /// Wraps anew the data keys that the key which stands now has not wrapped. It can be repeated
    /// after any end. With `dry_run` it only reads, and then every version. `progress` is told after
    /// each.
    ///
    /// # Errors
    /// `not-configured`: the backend wraps no keys; `database-unavailable`; `secrets-unavailable`: the
    /// key-management service gives no answer, and what was wrapped until then stays so.
    pub fn rewrap(&self, dry_run: bool, progress: impl FnMut(&Rewrapped)) -> Result<Rewrapped> {
        match self.0.as_deref() {
            Some(Backend::Postgres(postgres)) => postgres.rewrap(dry_run, progress),
            _ => Err(Error::new(
                Code::NotConfigured,
                "No keys are wrapped here: that needs SVC_SECRETS_BACKEND=postgres.",
            )),
        }
    }

    fn backend(&self) -> Result<&Backend> {
        self.0.as_deref().ok_or_else(|| {
            Error::new(
                Code::NotConfigured,
                "There is no secrets store here. The operator turns it on with SVC_SECRETS_BACKEND.",
            )
        })
    }

    /// The backend, if the reference can name a secret in it.
    fn readable(&self, at: &SecretRef) -> Result<&Backend, Unreadable> {
        let backend = self.0.as_deref().ok_or_else(|| {
            Unreadable::Unavailable(
                "There is no secrets store here. The operator turns it on with SVC_SECRETS_BACKEND."
                    .to_owned(),
            )
        })?;
        match is_environment_name(&at.environment) && is_name(&at.name) {
            true => Ok(backend),
            false => Err(Unreadable::NotFound),
        }
    }
}

/// Tries the backend without leaving a trace: seals a value and opens it again, the key-management
/// service included, or puts a file into the directory and removes it. No row is read or written. False:
/// there is no backend.
///
/// # Errors
/// A sentence that says which part does not work.
pub fn probe(options: Options, outbound: &Outbound, clock: &Clock) -> Result<bool, String> {
    match options {
        Options::Off => Ok(false),
        Options::Dotenv(options) => dotenv::probe(options).map(|()| true),
        Options::Postgres(options) => {
            let keys = keys(*options, outbound, clock);
            let keys = keys.map_err(|error| error.message().to_owned())?;
            keys.probe(clock).map(|()| true)
        }
    }
}

/// Tries the backend's keys on a version that is stored: whether it opens.
///
/// # Errors
/// A sentence that says why it does not.
pub fn probe_stored(
    options: PostgresOptions,
    outbound: &Outbound,
    clock: &Clock,
    stored: &Placed,
) -> Result<(), String> {
    let keys = keys(options, outbound, clock).map_err(|error| error.message().to_owned())?;
    let identity = envelope::RowIdentity::of(stored.tenant_id, &stored.at, &stored.sealed);
    let opened = keys.open(&identity, &stored.sealed, kms::DEADLINE);
    opened.map(drop).map_err(|why| why.sentence(&stored.at))
}

fn keys(options: PostgresOptions, outbound: &Outbound, clock: &Clock) -> Result<envelope::Keys> {
    Ok(envelope::Keys {
        kms: kms::Kms::new(options.kms, outbound, clock)?,
        aad: options.aad_key,
    })
}

/// Whether a text can name a secret: the service's own prefix is not for secrets (section 1.3).
pub fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let own = text
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("SVC_"));
    (1..=128).contains(&text.len())
        && text.bytes().all(plain)
        && !text.as_bytes()[0].is_ascii_digit()
        && !own
}

/// What names a secret, or what is wrong with it.
///
/// # Errors
/// `invalid-request`.
pub fn check(at: &SecretRef) -> Result<()> {
    let wrong = |parameter: &str, expected: &str| {
        Err(Error::new(
            Code::InvalidRequest,
            format!("The path's {parameter}: expected {expected}."),
        )
        .detail("parameter", parameter))
    };
    if !is_environment_name(&at.environment) {
        return wrong(
            "environment",
            "1 to 100 letters, digits, dots, hyphens and underscores, a letter or digit first",
        );
    }
    if !is_name(&at.name) {
        return wrong(
            "name",
            "1 to 128 letters, digits and underscores, no digit first, and not the prefix SVC_, \
             which is the service's own",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_and_names_have_a_form() {
        for good in ["local", "prod", "0", "eu-west.1_a", &"a".repeat(100)] {
            assert!(is_environment_name(good), "{good}");
        }
        for bad in ["", ".a", "-a", "_a", "a b", "a/b", "ä", &"a".repeat(101)] {
            assert!(!is_environment_name(bad), "{bad}");
        }
        for good in ["A", "_", "api_key", "SVC", "ASVC_X", &"a".repeat(128)] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            "1a",
            "a-b",
            "a.b",
            "a b",
            "ä",
            "SVC_",
            "svc_x",
            "Svc_Y",
            &"a".repeat(129),
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
