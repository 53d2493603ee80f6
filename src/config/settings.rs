//! The typed settings of the service, in groups, each within its range. Only `config::load` makes
//! them (`assemble`).

use super::identity_providers::IdentityProviders;
use super::license::Claims;
use super::types::{HostAccess, LogFormat, LogLevel, Origin, TokenSignIn};
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
    /// The database.
    pub database: Database,
    /// The tenant that the first start creates.
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
    /// The authorization server; none: authorization is off.
    pub authorization: Option<Authorization>,
    /// The authorization server's own database, for backups; none: backups omit it.
    pub authorization_database: Option<Secret>,
    /// The collector of traces; none: no spans are recorded.
    pub traces: Option<Traces>,
    /// The record of access decisions.
    pub audit: Audit,
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
}

impl Settings {
    /// Where people open the console, if there is one and the server knows its address.
    pub fn public_console(&self) -> Option<String> {
        let address = self.sign_in.public_url.as_ref();
        let address = address.filter(|_| self.http.console)?;
        Some(format!("{}/console/", address.text()))
    }
}

/// The front door and its limits.
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
    /// Bytes of all answers that clients have not taken.
    pub max_answer_bytes_in_flight: usize,
    /// Of them, those to one address.
    pub max_answer_bytes_per_address: usize,
    /// Time limit of a request's headers.
    pub header_timeout: Duration,
    /// Time limit of a request's body.
    pub body_timeout: Duration,
    /// Time limit of a client that reads nothing of its answer.
    pub write_timeout: Duration,
    /// Time limit of a request, including its wait in the queue.
    pub request_deadline: Duration,
    /// Time limit of an idle connection.
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
    /// Buffer of one reader of a stream, in bytes.
    pub stream_buffer_bytes: usize,
    /// Time for what is in flight at a stop.
    pub shutdown_timeout: Duration,
}

/// The database.
#[derive(Debug, Clone)]
pub struct Database {
    /// `postgres://…`, with libpq's `sslmode` and `sslrootcert`.
    pub url: Secret,
    /// Connections of the request pool at most.
    pub pool_size: u32,
    /// Time limit of the wait for a free connection.
    pub checkout_timeout: Duration,
    /// Statement timeout.
    pub statement_timeout: Duration,
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
    /// Who may sign in with a bearer token.
    pub token_sign_in: TokenSignIn,
    /// How long a session lasts that is not used.
    pub session_idle: Duration,
    /// How long a session lasts.
    pub session_life: Duration,
    /// How long all requests to an identity provider may take when somebody signs in.
    pub provider_timeout: Duration,
    /// Whether `/__dev/bearer` is mounted.
    pub console_login: bool,
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

/// Runs and jobs.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Concurrent runs at most.
    pub threads: usize,
    /// After this time another process takes over the runs of a dead one.
    pub lease: Duration,
    /// Pause between polls for work that other processes queued.
    pub job_poll: Duration,
    /// An HTTP tool's answer at most, in bytes.
    pub tool_max_response_bytes: usize,
    /// Days after its end for which what a run was given, said and answered is kept; none: for ever.
    pub payload_retention_days: Option<u32>,
    /// Days from the begin of a run of a flow to its end at most.
    pub max_run_days: u32,
    /// How often in a row the process that carries a run on may die, until the run is ended.
    pub max_run_deaths: i32,
    /// Tasks that a run of a flow enters at most.
    pub max_flow_tasks: i32,
    /// The data of a flow, and its context, at most, as JSON in bytes.
    pub max_flow_data_bytes: usize,
    /// Iterations of one parallel loop of a flow at most.
    pub max_flow_children: usize,
    /// Runs below one root at most.
    pub max_runs_below_root: u64,
    /// Runs of a tenant that have not ended at most.
    pub max_unfinished_runs: u64,
    /// Steps of one expression of a flow at most.
    pub max_flow_expression_steps: u64,
}

/// Model providers.
#[derive(Debug, Clone)]
pub struct Model {
    /// The keys that a tenant's provider may name.
    pub keys: Vec<ModelKey>,
    /// Time limit of a connect.
    pub connect_timeout: Duration,
    /// Time limit of the first byte of an answer.
    pub first_byte_timeout: Duration,
    /// Time limit between two bytes of an answer.
    pub idle_timeout: Duration,
    /// Time limit of a whole call.
    pub total_timeout: Duration,
    /// Attempts at a call; at least 1.
    pub attempts: u32,
}

/// One of the operator's API keys.
#[derive(Debug, Clone)]
pub struct ModelKey {
    /// The name that providers refer to.
    pub name: String,
    /// The only origin that it may be sent to.
    pub origin: Origin,
    /// The key.
    pub key: Secret,
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

/// Outbound webhooks.
#[derive(Debug, Clone, Copy)]
pub struct Webhooks {
    /// Whether receivers on private networks are allowed, over https (section 6.1).
    pub private_networks: bool,
    /// Time limit of one attempt, from the look-up to the end of the answer.
    pub timeout: Duration,
    /// Concurrent attempts of this process at most.
    pub threads: usize,
    /// Concurrent attempts to one endpoint at most.
    pub endpoint_concurrency: u32,
    /// Days that events, deliveries and attempts are kept at least.
    pub retention_days: u32,
}

/// The authorization server.
#[derive(Debug, Clone)]
pub struct Authorization {
    /// Its base URL.
    pub url: String,
    /// Time limit of one call, including the wait for a connection.
    pub timeout: Duration,
    /// Connections at most.
    pub connections: usize,
}

/// The collector of traces.
#[derive(Debug, Clone)]
pub struct Traces {
    /// Its base URL.
    pub endpoint: String,
    /// Headers for it, by name.
    pub headers: Vec<(String, Secret)>,
    /// The environment that the server serves, if it has a name.
    pub environment: Option<String>,
}

/// The record of access decisions.
#[derive(Debug, Clone)]
pub struct Audit {
    /// Whether old decisions are purged (section 8).
    pub purges: bool,
    /// Signs the anchors of purges.
    pub signing_key: Option<Box<SigningKey>>,
    /// Decisions in the queue at most.
    pub queue_length: usize,
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
