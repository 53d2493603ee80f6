//! Secrets of tenants. Values enter through the API and never leave through it.
//!
//! Guarantees: a value is in memory only while it is used, and for a short time after ([`cache`]).
//! It is never in an error, a log record or a `Debug` text. A failure to read names the part that
//! failed.
//!
//! Not here: the routes (`api::secrets`), the rows (`store::secrets`), the type that holds a value
//! (`secret`).

mod cache;
mod dotenv;
mod envelope;
pub mod kms;
mod names;
mod postgres;
mod unreadable;
mod versions;

use crate::config::{self, Settings, is_environment_name};
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::proof::{Admin, May};
use crate::secret::Secret;
use crate::store::secrets::{Described, ListRequest, Located, Stored};
use crate::store::{Store, tenants::Tenant};
pub use names::is_name;
use std::sync::Arc;
use std::time::Instant;
pub use unreadable::Unreadable;
use uuid::Uuid;
pub use versions::{OVERLAP, Rewrapped};

pub use crate::store::secrets::SecretRef;
pub use dotenv::DotenvOptions;
pub use envelope::AadKey;

/// How long an opened value stays in the cache.
pub const KEPT_FOR: std::time::Duration = std::time::Duration::from_secs(60);

/// How long a previous value that failed to open is not tried again.
const FAILED_FOR: std::time::Duration = std::time::Duration::from_secs(10);

/// Bytes of a value at most.
pub const VALUE_MAX_BYTES: usize = 64 * 1024;

/// The backend (`SVC_SECRETS_BACKEND`).
#[derive(Debug, Clone)]
pub enum Options {
    /// None.
    Off,
    /// In the database, encrypted.
    Postgres(Box<PostgresOptions>),
    /// In env files (development).
    Dotenv(DotenvOptions),
}

impl Options {
    /// As the settings say; env files are this tenant's.
    ///
    /// # Errors
    /// A key is no use.
    pub fn from_settings(settings: &Settings, tenant_id: Uuid) -> Result<Self> {
        Ok(match &settings.secrets {
            config::Secrets::Off => Self::Off,
            config::Secrets::Postgres { kms, aad_key } => {
                Self::Postgres(Box::new(PostgresOptions {
                    kms: kms::Options::from_settings(kms)?,
                    aad_key: AadKey::from_base64(aad_key)?,
                    kept_for: KEPT_FOR,
                }))
            }
            config::Secrets::Dotenv {
                directory,
                files,
                environment,
            } => Self::Dotenv(DotenvOptions {
                directory: directory.clone(),
                files: files.clone(),
                environment: environment.clone(),
                tenant_id,
            }),
        })
    }
}

/// The backend `postgres`.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The key-management service.
    pub kms: kms::Options,
    /// The AAD key.
    pub aad_key: AadKey,
    /// How long an opened value may be reused ([`KEPT_FOR`]).
    pub kept_for: std::time::Duration,
}

/// The secrets of all tenants. Cheap to clone.
#[derive(Clone)]
pub struct Secrets(Option<Arc<Backend>>);

enum Backend {
    Postgres(Box<postgres::Postgres>),
    Dotenv(dotenv::Dotenv),
}

impl Secrets {
    /// Opens the backend, without connecting to anything.
    ///
    /// # Errors
    /// The backend's settings cannot be used.
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
                    outbound: outbound.clone(),
                    log,
                }))))
            }
        }))
    }

    /// No backend.
    pub fn off() -> Self {
        Self(None)
    }

    /// The same secrets through another handle on the database.
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

    /// Whether a service on another host wraps the keys, so that a put may block on it.
    pub fn is_wrapped_elsewhere(&self) -> bool {
        match self.0.as_deref() {
            Some(Backend::Postgres(postgres)) => {
                matches!(postgres.keys.kms, kms::Kms::CloudA(_))
            }
            _ => false,
        }
    }

    /// Wipes expired values. Call it every few seconds.
    pub fn sweep(&self) {
        if let Some(Backend::Postgres(postgres)) = self.0.as_deref() {
            postgres.sweep();
        }
    }

    /// Opened values in memory.
    pub fn kept(&self) -> usize {
        match self.0.as_deref() {
            Some(Backend::Postgres(postgres)) => postgres.cache.len(),
            _ => 0,
        }
    }

    /// The present value.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn resolve(&self, tenant_id: Uuid, at: &SecretRef) -> Result<Secret, Unreadable> {
        match self.readable(at)? {
            Backend::Postgres(postgres) => postgres.resolve(tenant_id, at),
            Backend::Dotenv(dotenv) => dotenv.resolve(tenant_id, at),
        }
    }

    /// The values to sign with: the present one, then the previous one if it was replaced less than
    /// [`OVERLAP`] ago and can be read by `until`. `read` may pass rows that were read just now.
    ///
    /// # Errors
    /// Why the present value cannot be read.
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

    /// The present value if it can be read by `until`, to sign beside another secret.
    ///
    /// # Errors
    /// The database is unreachable, so nothing is known of the secret.
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

    /// Whether a secret of that name exists. It is not opened.
    ///
    /// # Errors
    /// Why the answer is unknown.
    pub fn exists(&self, tenant_id: Uuid, at: &SecretRef) -> Result<bool, Unreadable> {
        match self.readable(at) {
            Ok(Backend::Postgres(postgres)) => postgres.exists(tenant_id, at),
            Ok(Backend::Dotenv(dotenv)) => dotenv.exists(tenant_id, at),
            Err(Unreadable::NotFound) => Ok(false),
            Err(unreadable) => Err(unreadable),
        }
    }

    /// The secret of env files whose name differs in the case of its letters at most. Those of the database are looked at
    /// where a name is put (`store::environments`).
    ///
    /// # Errors
    /// `secrets-unavailable`: the files cannot be read.
    pub fn in_files_as(&self, tenant_id: Uuid, at: &SecretRef) -> Result<Option<String>> {
        match self.0.as_deref() {
            Some(Backend::Dotenv(dotenv)) => dotenv.like(tenant_id, at),
            _ => Ok(None),
        }
    }

    /// Whether they are in env files, where no statement sees their names.
    pub fn is_in_files(&self) -> bool {
        matches!(self.0.as_deref(), Some(Backend::Dotenv(_)))
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

    /// Stores a value. The flag is true if the name is new. The caller must have waited for the
    /// request's tickets (`audit-before-commit`).
    ///
    /// # Errors
    /// `invalid-request`: the name or the environment is malformed; `conflict`: concurrent puts;
    /// `secrets-unavailable`, `database-unavailable`.
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

    /// Deletes the secret with its versions. False: it does not exist. The caller waits as for
    /// [`Secrets::put`].
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

    /// Wraps anew every data key that the present key has not wrapped. It may be repeated after any
    /// end. With `dry_run` it writes nothing and reads every version. `progress` is called after
    /// each version.
    ///
    /// # Errors
    /// `not-configured`: the backend wraps no keys; `database-unavailable`; `secrets-unavailable`:
    /// the key-management service failed, and what was wrapped before stays so.
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

    /// The backend, if the reference is well-formed for it.
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

/// Tests the backend without leaving a trace: seals and opens a value, which calls the
/// key-management service; or creates a file in the directory and removes it. No row is read or
/// written. False: there is no backend.
///
/// # Errors
/// A sentence that names the part that failed.
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

/// Tests the backend's keys on a stored version: whether it opens.
///
/// # Errors
/// A sentence that says why it does not open.
pub fn probe_stored(
    options: PostgresOptions,
    outbound: &Outbound,
    clock: &Clock,
    stored: &Located,
) -> Result<(), String> {
    let keys = keys(options, outbound, clock).map_err(|error| error.message().to_owned())?;
    let identity = envelope::RowIdentity::of(stored.tenant_id, &stored.at, &stored.sealed);
    let opened = keys.open(&identity, &stored.sealed, kms::DEADLINE);
    opened.map(drop).map_err(|why| why.sentence(&stored.at))
}

/// Whether env files have this secret.
///
/// # Errors
/// `secrets-unavailable`: they cannot be read.
pub fn is_in_files(files: &DotenvOptions, tenant_id: Uuid, at: &SecretRef) -> Result<bool> {
    let exists = dotenv::Dotenv::new(files.clone())?.exists(tenant_id, at);
    exists.map_err(|why| Error::new(Code::SecretsUnavailable, why.sentence(at)))
}

fn keys(options: PostgresOptions, outbound: &Outbound, clock: &Clock) -> Result<envelope::Keys> {
    Ok(envelope::Keys {
        kms: kms::Kms::new(options.kms, outbound, clock)?,
        aad: options.aad_key,
    })
}

/// The checked name of a secret.
///
/// # Errors
/// `invalid-request`.
pub fn check(at: &SecretRef) -> Result<()> {
    check_environment(&at.environment)?;
    match is_name(&at.name) {
        true => Ok(()),
        false => Err(wrong_in_path(
            "name",
            "1 to 128 letters, digits and underscores, no digit first, and not the prefix SVC_, \
             which is the service's own",
        )),
    }
}

/// An environment as paths name one.
///
/// # Errors
/// `invalid-request`: it cannot be called so.
pub fn check_environment(environment: &str) -> Result<()> {
    match is_environment_name(environment) {
        true => Ok(()),
        false => Err(wrong_in_path(
            "environment",
            "1 to 100 letters, digits, dots, hyphens and underscores, a letter or digit first",
        )),
    }
}

fn wrong_in_path(parameter: &str, expected: &str) -> Error {
    Error::new(
        Code::InvalidRequest,
        format!("The path's {parameter}: expected {expected}."),
    )
    .detail("parameter", parameter)
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
