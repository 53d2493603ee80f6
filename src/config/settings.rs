//! The settings as the rest of the service takes them: typed, in groups, each within its range.
//! Only `config::load` makes one.

use super::license::Claims;
use super::parse::Value;
use super::read::{Reading, Row, value};
use super::types::{HostAccess, LogFormat, LogLevel, Origin};
use crate::secret::Secret;
use ed25519_dalek::SigningKey;
use rustls_pki_types::CertificateDer;
use std::net::{IpAddr, SocketAddr};
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

/// Takes a reading without faults.
pub(super) fn assemble(reading: Reading) -> Settings {
    let take = Take(&reading.rows);
    let development = take.boolean("SVC_DEV");
    Settings {
        development,
        state_directory: take.path("SVC_STATE_DIR"),
        http: http(&take),
        database: Database {
            url: take
                .secret("SVC_DATABASE_URL")
                .unwrap_or_else(|| defect("SVC_DATABASE_URL")),
            pool_size: take.number("SVC_DATABASE_POOL_SIZE"),
            checkout_timeout: take.duration("SVC_DATABASE_CHECKOUT_TIMEOUT_MS"),
            statement_timeout: take.duration("SVC_DATABASE_STATEMENT_TIMEOUT_MS"),
        },
        tenant: tenant(&take),
        public_token_key: match take
            .signing_key("SVC_PUBLIC_TOKEN_SIGNING_KEY_PATH")
            .or_else(|| take.signing_key("SVC_PUBLIC_TOKEN_SIGNING_KEY"))
        {
            Some(key) => PublicTokenKey::Given(key),
            None if development => PublicTokenKey::MakeAtStart,
            None => PublicTokenKey::Off,
        },
        log: log(&take, reading.no_color),
        runs: Runs {
            threads: take.number("SVC_RUN_THREADS"),
            lease: take.duration("SVC_RUN_LEASE_MS"),
            job_poll: take.duration("SVC_JOB_POLL_MS"),
            tool_max_response_bytes: take.number("SVC_TOOL_MAX_RESPONSE_BYTES"),
        },
        model: Model {
            // SVC_MODEL_KEYS and SVC_MODEL_KEYS_DIR: the reading has already put them together.
            keys: reading.model_keys,
            connect_timeout: take.duration("SVC_MODEL_CONNECT_TIMEOUT_MS"),
            first_byte_timeout: take.duration("SVC_MODEL_FIRST_BYTE_TIMEOUT_MS"),
            total_timeout: take.duration("SVC_MODEL_TOTAL_TIMEOUT_MS"),
            attempts: take.number("SVC_MODEL_ATTEMPTS"),
        },
        outbound: Outbound {
            host_access: match take.word("SVC_HOST_ACCESS") {
                "local" => HostAccess::Local,
                _ => HostAccess::Deployed,
            },
            dev_host_alias: take.text("SVC_DEV_HOST_ALIAS"),
            extra_certificates: take.certificates("SVC_OUTBOUND_CA_PATH"),
        },
        webhooks: webhooks(&take),
        authorization: take.text("SVC_AUTHZ_API_URL").map(|url| Authorization {
            url,
            timeout: take.duration("SVC_AUTHZ_TIMEOUT_MS"),
            connections: take.number("SVC_AUTHZ_CONNECTIONS"),
        }),
        authorization_database: take.secret("SVC_AUTHZ_DATABASE_URL"),
        audit: Audit {
            // Its one word is `shipped`.
            purges: take.is_given("SVC_COMPLIANCE_CLASSIFIER"),
            signing_key: take.signing_key("SVC_AUDIT_SIGNING_KEY_PATH"),
            queue_length: take.number("SVC_AUDIT_QUEUE_LENGTH"),
        },
        secrets: secrets(&take, reading.kms_credentials),
        // SVC_LICENSE_KEY: judged by the reading.
        license: reading.license,
        warnings: reading.warnings,
    }
}

fn tenant(take: &Take<'_>) -> Tenant {
    Tenant {
        id: take.uuid("SVC_TENANT_ID"),
        seed_user_id: take.uuid("SVC_SEED_USER_ID"),
        seed_token: take.secret("SVC_SEED_TOKEN"),
    }
}

fn http(take: &Take<'_>) -> Http {
    let port = take.number("SVC_HTTP_PORT");
    let pool_size: usize = take.number("SVC_DATABASE_POOL_SIZE");
    Http {
        address: SocketAddr::new(take.address("SVC_BIND_ADDRESS"), port),
        docs: take.boolean("SVC_DOCS"),
        allowed_origins: take.origins("SVC_ALLOWED_ORIGINS"),
        max_connections: take.number("SVC_MAX_CONNECTIONS"),
        max_connections_per_address: take.number("SVC_MAX_CONNECTIONS_PER_ADDRESS"),
        max_header_bytes: take.number("SVC_MAX_HEADER_BYTES"),
        max_body_bytes: take.number("SVC_MAX_BODY_BYTES"),
        max_body_bytes_in_flight: take.number("SVC_MAX_BODY_BYTES_IN_FLIGHT"),
        header_timeout: take.duration("SVC_HEADER_TIMEOUT_MS"),
        body_timeout: take.duration("SVC_BODY_TIMEOUT_MS"),
        write_timeout: take.duration("SVC_WRITE_TIMEOUT_MS"),
        request_deadline: take.duration("SVC_REQUEST_DEADLINE_MS"),
        idle_timeout: take.duration("SVC_IDLE_TIMEOUT_MS"),
        queue_length: take.number("SVC_QUEUE_LENGTH"),
        request_threads: take
            .maybe_number("SVC_REQUEST_THREADS")
            .unwrap_or(pool_size + 4),
        max_denials_per_minute: take.number("SVC_MAX_DENIALS_PER_MINUTE"),
        max_streams: take.number("SVC_MAX_STREAMS"),
        stream_threads: take.number("SVC_STREAM_THREADS"),
        stream_buffer_bytes: take.number("SVC_STREAM_BUFFER_BYTES"),
        shutdown_timeout: take.duration("SVC_SHUTDOWN_TIMEOUT_MS"),
    }
}

fn log(take: &Take<'_>, no_color: bool) -> Log {
    Log {
        level: LogLevel::parse(take.word("SVC_LOG_LEVEL"))
            .unwrap_or_else(|| defect("SVC_LOG_LEVEL")),
        levels: take.text("SVC_LOG_LEVELS").unwrap_or_default(),
        format: LogFormat::parse(take.word("SVC_LOG_FORMAT"))
            .unwrap_or_else(|| defect("SVC_LOG_FORMAT")),
        redact_keys: take.texts("SVC_LOG_REDACT_KEYS"),
        no_color,
    }
}

fn webhooks(take: &Take<'_>) -> Webhooks {
    Webhooks {
        // Its one word is `allow`.
        private_networks: take.is_given("SVC_WEBHOOK_PRIVATE_NETWORKS"),
        timeout: take.duration("SVC_WEBHOOK_TIMEOUT_MS"),
        threads: take.number("SVC_WEBHOOK_THREADS"),
        endpoint_concurrency: take.number("SVC_WEBHOOK_ENDPOINT_CONCURRENCY"),
        retention_days: take.number("SVC_WEBHOOK_RETENTION_DAYS"),
    }
}

/// Which settings are given was judged by the reading.
fn secrets(take: &Take<'_>, credentials: Option<(PathBuf, &'static str)>) -> Secrets {
    let must = |name| take.secret(name).unwrap_or_else(|| defect(name));
    let text = |name| take.text(name).unwrap_or_else(|| defect(name));
    match take.word("SVC_SECRETS_BACKEND") {
        "postgres" => Secrets::Postgres {
            kms: match take.word("SVC_SECRETS_BACKEND_KMS") {
                "local" => Kms::Local {
                    key: must("SVC_SECRETS_LOCAL_KEY_PATH"),
                    previous: take.secret("SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH"),
                },
                _ => Kms::CloudA {
                    key: [
                        must("SVC_SECRETS_KMS_PROJECT_ID"),
                        must("SVC_SECRETS_KMS_LOCATION"),
                        must("SVC_SECRETS_KMS_KEYRING_ID"),
                        must("SVC_SECRETS_KMS_KEY_ID"),
                    ],
                    // SVC_SECRETS_KMS_CREDENTIALS_PATH, or the usual variable.
                    credentials,
                    base_url: text("SVC_SECRETS_KMS_BASE_URL"),
                    metadata_url: text("SVC_SECRETS_KMS_METADATA_URL"),
                },
            },
            aad_key: take
                .secret("SVC_SECRETS_AAD_KEY_PATH")
                .unwrap_or_else(|| must("SVC_SECRETS_AAD_KEY")),
        },
        "dotenv" => Secrets::Dotenv {
            directory: take.path("SVC_SECRETS_DOTENV_DIR"),
            files: take.texts("SVC_SECRETS_DOTENV_FILES"),
            environment: text("SVC_ENVIRONMENT"),
        },
        _ => Secrets::Off,
    }
}

/// The table and this file disagree; the test that loads the defaults finds it first.
fn defect<T>(name: &str) -> T {
    panic!("the settings table has another type for {name} than src/config/settings.rs")
}

/// Takes values by name. A setting that was not given has none, a list then is empty.
struct Take<'a>(&'a [Row]);

impl<'a> Take<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        value(self.0, name)
    }

    fn boolean(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Boolean(on)) => *on,
            _ => defect(name),
        }
    }

    fn maybe_number<N: TryFrom<u64>>(&self, name: &str) -> Option<N> {
        match self.get(name)? {
            Value::Integer(number) => N::try_from(*number).ok(),
            _ => defect(name),
        }
    }

    fn number<N: TryFrom<u64>>(&self, name: &str) -> N {
        self.maybe_number(name).unwrap_or_else(|| defect(name))
    }

    fn duration(&self, name: &str) -> Duration {
        Duration::from_millis(self.number(name))
    }

    fn word(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(Value::Word(word)) => word,
            _ => defect(name),
        }
    }

    fn address(&self, name: &str) -> IpAddr {
        match self.get(name) {
            Some(Value::IpAddress(address)) => *address,
            _ => defect(name),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        match self.get(name) {
            Some(Value::Path(path)) => path.clone(),
            _ => defect(name),
        }
    }

    fn uuid(&self, name: &str) -> Option<Uuid> {
        match self.get(name)? {
            Value::Uuid(uuid) => Some(*uuid),
            _ => defect(name),
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => defect(name),
        }
    }

    fn texts(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Texts(texts)) => texts.clone(),
            _ => defect(name),
        }
    }

    fn origins(&self, name: &str) -> Vec<Origin> {
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Origins(origins)) => origins.clone(),
            _ => defect(name),
        }
    }

    fn secret(&self, name: &str) -> Option<Secret> {
        match self.get(name)? {
            Value::Secret(secret) => Some(secret.clone()),
            _ => defect(name),
        }
    }

    fn is_given(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn signing_key(&self, name: &str) -> Option<Box<SigningKey>> {
        match self.get(name)? {
            Value::SigningKey(key) => Some(key.clone()),
            _ => defect(name),
        }
    }

    fn certificates(&self, name: &str) -> Vec<CertificateDer<'static>> {
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Certificates(certificates)) => certificates.clone(),
            _ => defect(name),
        }
    }
}
