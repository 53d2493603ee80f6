//! The settings as the rest of the service takes them: typed, in groups, each within its range.
//! Only `config::load` makes them (`assemble`).

use super::license::Claims;
use super::types::{HostAccess, LogFormat, LogLevel, Origin};
use crate::secret::Secret;
use ed25519_dalek::SigningKey;
use rustls_pki_types::CertificateDer;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// Every setting of a server that may start.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Development mode (section 1.3).
    pub development: bool,
    /// Where the server keeps what it itself puts on disk.
    pub state_directory: PathBuf,
    /// The front door.
    pub http: Http,
    /// The database.
    pub database: Database,
    /// The tenant that the first start makes.
    pub tenant: Tenant,
    /// The key of public run tokens.
    pub public_token_key: PublicTokenKey,
    /// The log.
    pub log: Log,
    /// Runs and jobs.
    pub runs: Runs,
    /// Model providers.
    pub model: Model,
    /// Outbound connections.
    pub outbound: Outbound,
    /// Outbound webhooks.
    pub webhooks: Webhooks,
    /// The authorization server; nothing: authorization is off.
    pub authorization: Option<Authorization>,
    /// The authorization server's own database, for backups; nothing: it is left out of them.
    pub authorization_database: Option<Secret>,
    /// The record of access decisions.
    pub audit: Audit,
    /// Where secrets live.
    pub secrets: Secrets,
    /// The license, if one was given and holds. Outside development there always is one.
    pub license: Option<Claims>,
    /// What to log at level `warn` at start.
    pub warnings: Vec<String>,
}

/// The front door and its limits.
#[derive(Debug, Clone)]
pub struct Http {
    /// Where to listen. `[::]`, the default, means all interfaces, IPv4 included: without IPv6 on
    /// the host it means `0.0.0.0`.
    pub address: SocketAddr,
    /// Whether `/docs` is mounted.
    pub docs: bool,
    /// Who gets CORS headers; empty: nobody.
    pub allowed_origins: Vec<Origin>,
    /// Open connections at most.
    pub max_connections: usize,
    /// Open connections from one address at most.
    pub max_connections_per_address: usize,
    /// Request line and headers at most, in bytes.
    pub max_header_bytes: usize,
    /// Any route's body at most, in bytes.
    pub max_body_bytes: usize,
    /// All bodies in memory at most, in bytes; at least `max_body_bytes`.
    pub max_body_bytes_in_flight: usize,
    /// For a request's headers.
    pub header_timeout: Duration,
    /// For a request's body.
    pub body_timeout: Duration,
    /// For a client that takes nothing of its answer.
    pub write_timeout: Duration,
    /// For a request, waiting included.
    pub request_deadline: Duration,
    /// For a connection between two requests.
    pub idle_timeout: Duration,
    /// Requests that wait for a thread at most.
    pub queue_length: usize,
    /// Threads that answer requests.
    pub request_threads: usize,
    /// How often one credential may be denied in a minute.
    pub max_denials_per_minute: u32,
    /// Open streams at most.
    pub max_streams: usize,
    /// Threads that write streams.
    pub stream_threads: usize,
    /// What may wait for one reader of a stream, in bytes.
    pub stream_buffer_bytes: usize,
    /// For what is in flight at a stop.
    pub shutdown_timeout: Duration,
}

/// The database.
#[derive(Debug, Clone)]
pub struct Database {
    /// `postgres://…`, with `sslmode` and `sslrootcert` as libpq has them.
    pub url: Secret,
    /// Connections of the request pool at most.
    pub pool_size: u32,
    /// For a free connection.
    pub checkout_timeout: Duration,
    /// For one statement.
    pub statement_timeout: Duration,
}

/// What the first start makes or uses again.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Nothing: a fresh one, printed at start.
    pub id: Option<Uuid>,
    /// Nothing: a fresh one.
    pub seed_user_id: Option<Uuid>,
    /// Taken as it is; nothing: a fresh one.
    pub seed_token: Option<Secret>,
}

/// The key that signs public run tokens.
#[derive(Debug, Clone)]
pub enum PublicTokenKey {
    /// The operator gave it.
    Given(Box<SigningKey>),
    /// Make one at start (development).
    MakeAtStart,
    /// There is none, and so there are no public run tokens.
    Off,
}

/// The log (section 1.5).
#[derive(Debug, Clone)]
pub struct Log {
    /// For subsystems without a level of their own.
    pub level: LogLevel,
    /// `subsystem=level` pairs with a comma between, their form already judged; empty: none.
    pub levels: String,
    /// How records are written.
    pub format: LogFormat,
    /// Further ends of keys whose values are redacted.
    pub redact_keys: Vec<String>,
    /// Whether the user asked for no colours (`NO_COLOR`).
    pub no_color: bool,
}

/// Runs and jobs.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Runs at once at most.
    pub threads: usize,
    /// After it the runs of a dead process are taken over.
    pub lease: Duration,
    /// Between looks for work that other processes queued.
    pub job_poll: Duration,
    /// An HTTP tool's answer at most, in bytes.
    pub tool_max_response_bytes: usize,
}

/// Model providers.
#[derive(Debug, Clone)]
pub struct Model {
    /// The keys that a tenant's provider may name.
    pub keys: Vec<ModelKey>,
    /// For a connection.
    pub connect_timeout: Duration,
    /// For the first byte of an answer.
    pub first_byte_timeout: Duration,
    /// For a call in all.
    pub total_timeout: Duration,
    /// Tries of a call in all; at least 1.
    pub attempts: u32,
}

/// One API key of the operator's.
#[derive(Debug, Clone)]
pub struct ModelKey {
    /// What a provider names it by.
    pub name: String,
    /// The one place it may be sent to.
    pub origin: Origin,
    /// The key.
    pub key: Secret,
}

/// Outbound connections.
#[derive(Debug, Clone)]
pub struct Outbound {
    /// What a host that a tenant chose may be (section 1.4).
    pub host_access: HostAccess,
    /// Where calls to a loopback address go instead (development).
    pub dev_host_alias: Option<String>,
    /// Authorities trusted besides the system's.
    pub extra_certificates: Vec<CertificateDer<'static>>,
}

/// Outbound webhooks.
#[derive(Debug, Clone, Copy)]
pub struct Webhooks {
    /// Whether receivers on private networks are let through, over https (section 6.1).
    pub private_networks: bool,
    /// For one attempt, from the look-up to the end of the answer.
    pub timeout: Duration,
    /// Attempts of this process at once at most.
    pub threads: usize,
    /// Attempts to one endpoint at once at most.
    pub endpoint_concurrency: u32,
    /// Days that events, deliveries and attempts are kept at least.
    pub retention_days: u32,
}

/// The authorization server.
#[derive(Debug, Clone)]
pub struct Authorization {
    /// Its base URL.
    pub url: String,
    /// For one call, the wait for a connection included.
    pub timeout: Duration,
    /// Connections at most.
    pub connections: usize,
}

/// The record of access decisions.
#[derive(Debug, Clone)]
pub struct Audit {
    /// Whether what is too old is purged (section 8).
    pub purges: bool,
    /// Signs what was purged; there wherever `purges` is on.
    pub signing_key: Option<Box<SigningKey>>,
    /// Decisions that wait to be written at most.
    pub queue_length: usize,
}

/// Where secrets live (section 1.3).
#[derive(Debug, Clone)]
pub enum Secrets {
    /// Nowhere.
    Off,
    /// In the database, encrypted.
    Postgres {
        /// What wraps data keys.
        kms: Kms,
        /// The key that protects associated data: base64 of 32 bytes.
        aad_key: Secret,
    },
    /// In env files (development).
    Dotenv {
        /// Their directory.
        directory: PathBuf,
        /// Their paths in it, lowest precedence first.
        files: Vec<String>,
        /// The environment that they are.
        environment: String,
    },
}

/// What wraps data keys.
#[derive(Debug, Clone)]
pub enum Kms {
    /// A key of this host.
    Local {
        /// Base64 of 32 bytes.
        key: Secret,
        /// The one before it.
        previous: Option<Secret>,
    },
    /// Google Cloud KMS.
    CloudA {
        /// Project, location, key ring and key.
        key: [Secret; 4],
        /// A file of credentials, and the variable that names it; nothing: the metadata server
        /// gives them.
        credentials: Option<(PathBuf, &'static str)>,
        /// Where it is.
        base_url: String,
        /// Where the metadata server is.
        metadata_url: String,
    },
}
