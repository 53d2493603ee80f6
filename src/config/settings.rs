//! The settings of the service that several parts or commands read, each within its range, and the values of all others. Only
//! `config::load` makes them (`assemble`).

use super::identity_providers::IdentityProviders;
use super::license::Claims;
use super::types::{HostAccess, LogFormat, LogLevel, ModelKey, Origin};
use super::values::Values;
use crate::secret::Secret;
use ed25519_dalek::SigningKey;
use rustls_pki_types::CertificateDer;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// All settings of a server that may start.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Development mode (section 1.3).
    pub development: bool,
    /// The directory of the server's own files.
    pub state_directory: PathBuf,
    /// The front door.
    pub http: Http,
    /// The connection string of the database.
    pub database_url: Secret,
    /// The tenant that the first start creates.
    pub tenant: Tenant,
    /// The key of public run tokens.
    pub public_token_key: PublicTokenKey,
    /// The log.
    pub log: Log,
    /// API keys that model providers may name.
    pub model_keys: Vec<ModelKey>,
    /// Outbound connections.
    pub outbound: Outbound,
    /// The authorization server's base URL; none: authorization is off.
    pub authorization_url: Option<String>,
    /// The authorization server's own database, for backups; none: backups omit it.
    pub authorization_database: Option<Secret>,
    /// Signs the anchors of the audit's purges.
    pub audit_signing_key: Option<Box<SigningKey>>,
    /// How people sign in with a browser.
    pub sign_in: SignIn,
    /// Where secrets live.
    pub secrets: Secrets,
    /// The environment that this server serves: whose secrets tools get.
    pub environment: Option<String>,
    /// The license, if a valid one was given. Outside development there always is one.
    pub license: Option<Claims>,
    /// Warnings to log at the start.
    pub warnings: Vec<String>,
    /// All others, which one part reads.
    pub values: Values,
}

impl Settings {
    /// Where people open the console, if there is one and the server knows its address.
    pub fn public_console(&self) -> Option<String> {
        let address = self.sign_in.public_url.as_ref();
        let address = address.filter(|_| self.http.console)?;
        Some(format!("{}/console/", address.text()))
    }
}

/// The front door. Its limits are among the values.
#[derive(Debug, Clone)]
pub struct Http {
    /// The listening address. The default `[::]` means all interfaces, IPv4 included; on a host
    /// without IPv6 it means `0.0.0.0`.
    pub address: SocketAddr,
    /// Whether `/docs` is mounted.
    pub docs: bool,
    /// Whether `/console/` is mounted.
    pub console: bool,
    /// Origins that get CORS headers; empty: none.
    pub allowed_origins: Vec<Origin>,
    /// Time for what is in flight at a stop.
    pub shutdown_timeout: Duration,
}

/// What the first start creates, and later starts reuse.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// None: a new one, printed at the start.
    pub id: Option<Uuid>,
    /// None: a new one.
    pub seed_user_id: Option<Uuid>,
    /// For a seed user who has none.
    pub seed_user_email: Option<String>,
    /// Used as it is; none: a new one.
    pub seed_token: Option<Secret>,
}

/// The key that signs public run tokens.
#[derive(Debug, Clone)]
pub enum PublicTokenKey {
    /// The operator gave it.
    Given(Box<SigningKey>),
    /// Make one at start (development).
    MakeAtStart,
    /// None, so there are no public run tokens.
    Off,
}

/// How people sign in with a browser.
#[derive(Debug, Clone)]
pub struct SignIn {
    /// The server's origin as browsers see it.
    pub public_url: Option<Origin>,
    /// How long all requests to an identity provider may take when somebody signs in.
    pub provider_timeout: Duration,
    /// The operator's identity providers; none: tenants register their own.
    pub identity_providers: Option<IdentityProviders>,
}

/// The log (section 1.5).
#[derive(Debug, Clone)]
pub struct Log {
    /// The level of subsystems without one of their own.
    pub level: LogLevel,
    /// Comma-separated `subsystem=level` pairs in checked form; empty: none.
    pub levels: String,
    /// The format of records.
    pub format: LogFormat,
    /// Further suffixes of keys whose values are redacted.
    pub redact_keys: Vec<String>,
    /// Whether the user asked for no colours (`NO_COLOR`).
    pub no_color: bool,
}

/// Outbound connections.
#[derive(Debug, Clone)]
pub struct Outbound {
    /// Which hosts a tenant may choose (section 1.4).
    pub host_access: HostAccess,
    /// Origins on this host that a tenant may choose although `host_access` is `deployed`.
    pub host_access_origins: Vec<Origin>,
    /// The proxy to listed origins.
    pub forward_proxy: Option<ForwardProxy>,
    /// The host that replaces loopback addresses that a tenant chose (development).
    pub dev_host_alias: Option<String>,
    /// Authorities trusted in addition to the system's.
    pub extra_certificates: Vec<CertificateDer<'static>>,
}

/// The proxy through which model providers and the collector of traces are reached.
#[derive(Debug, Clone)]
pub struct ForwardProxy {
    /// Its origin.
    pub origin: Origin,
    /// The origins that are reached through it.
    pub origins: Vec<Origin>,
    /// `user:password`.
    pub credentials: Option<Secret>,
}

/// The secrets backend (section 1.3).
#[derive(Debug, Clone)]
pub enum Secrets {
    /// None.
    Off,
    /// In the database, encrypted.
    Postgres {
        /// The key-management service.
        kms: Kms,
        /// The AAD key: base64 of 32 bytes.
        aad_key: Secret,
    },
    /// In env files (development).
    Dotenv {
        /// The directory of the files.
        directory: PathBuf,
        /// Their paths, lowest precedence first.
        files: Vec<String>,
        /// The environment that they hold.
        environment: String,
    },
}

/// A key-management service.
#[derive(Debug, Clone)]
pub enum Kms {
    /// A key of this host.
    Local {
        /// Base64 of 32 bytes.
        key: Secret,
        /// The previous key.
        previous: Option<Secret>,
    },
    /// Google Cloud KMS.
    CloudA {
        /// Project, location, key ring and key.
        key: [Secret; 4],
        /// A file of credentials and the variable that names it; none: the metadata server provides
        /// them.
        credentials: Option<(PathBuf, &'static str)>,
        /// The service's base URL.
        base_url: String,
        /// The metadata server's base URL.
        metadata_url: String,
    },
}
