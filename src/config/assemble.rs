//! Builds the typed settings from a reading without faults.
//!
//! Each setting is taken by its name, once. A type that differs from the table's is a defect; the
//! test that loads the defaults finds it.

use super::identity_providers::IdentityProviders;
use super::parse::{self, Value};
use super::read::{Reading, Row, value};
use super::settings::{
    Audit, Authorization, Database, ForwardProxy, Http, Kms, Log, Model, Outbound, PublicTokenKey,
    Runs, Secrets, Settings, SignIn, Tenant, Traces, Webhooks,
};
use super::types::{HostAccess, LogFormat, LogLevel, Origin, TokenSignIn};
use crate::secret::Secret;
use ed25519_dalek::SigningKey;
use rustls_pki_types::CertificateDer;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use url::Url;
use uuid::Uuid;

/// Builds the settings from a reading without faults.
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
        runs: runs(&take),
        model: Model {
            // SVC_MODEL_KEYS and SVC_MODEL_KEYS_DIR: the reading has combined them.
            keys: reading.model_keys,
            connect_timeout: take.duration("SVC_MODEL_CONNECT_TIMEOUT_MS"),
            first_byte_timeout: take.duration("SVC_MODEL_FIRST_BYTE_TIMEOUT_MS"),
            idle_timeout: take.duration("SVC_MODEL_IDLE_TIMEOUT_MS"),
            total_timeout: take.duration("SVC_MODEL_TOTAL_TIMEOUT_MS"),
            attempts: take.number("SVC_MODEL_ATTEMPTS"),
        },
        outbound: Outbound {
            host_access: match take.word("SVC_HOST_ACCESS") {
                "local" => HostAccess::Local,
                _ => HostAccess::Deployed,
            },
            host_access_origins: take.origins("SVC_HOST_ACCESS_ORIGINS"),
            forward_proxy: forward_proxy(&take),
            dev_host_alias: take.text("SVC_DEV_HOST_ALIAS"),
            extra_certificates: take.certificates("SVC_OUTBOUND_CA_PATH"),
        },
        webhooks: webhooks(&take),
        authorization: take.text("SVC_AUTHZ_API_URL").map(|url| Authorization {
            url,
            timeout: take.duration("SVC_AUTHZ_TIMEOUT_MS"),
            connections: take.number("SVC_AUTHZ_CONNECTIONS"),
        }),
        traces: traces(&take),
        authorization_database: take.secret("SVC_AUTHZ_DATABASE_URL"),
        audit: Audit {
            // Its one word is `shipped`.
            purges: take.is_given("SVC_COMPLIANCE_CLASSIFIER"),
            signing_key: take.signing_key("SVC_AUDIT_SIGNING_KEY_PATH"),
            queue_length: take.number("SVC_AUDIT_QUEUE_LENGTH"),
        },
        sign_in: sign_in(&take, reading.identity_providers),
        secrets: secrets(&take, reading.kms_credentials),
        environment: take.text("SVC_ENVIRONMENT"),
        // SVC_LICENSE_KEY: the reading has checked it.
        license: reading.license,
        warnings: reading.warnings,
    }
}

fn runs(take: &Take<'_>) -> Runs {
    Runs {
        threads: take.number("SVC_RUN_THREADS"),
        lease: take.duration("SVC_RUN_LEASE_MS"),
        job_poll: take.duration("SVC_JOB_POLL_MS"),
        tool_max_response_bytes: take.number("SVC_TOOL_MAX_RESPONSE_BYTES"),
        payload_retention_days: take.maybe_number("SVC_PAYLOAD_RETENTION_DAYS"),
        max_run_days: take.number("SVC_MAX_RUN_DAYS"),
        max_run_deaths: take.number("SVC_MAX_RUN_DEATHS"),
        max_flow_tasks: take.number("SVC_MAX_FLOW_TASKS"),
        max_flow_data_bytes: take.number("SVC_MAX_FLOW_DATA_BYTES"),
        max_flow_children: take.number("SVC_MAX_FLOW_CHILDREN"),
        max_runs_below_root: take.number("SVC_MAX_RUNS_BELOW_ROOT"),
        max_unfinished_runs: take.number("SVC_MAX_UNFINISHED_RUNS"),
        max_flow_expression_steps: take.number("SVC_MAX_FLOW_EXPRESSION_STEPS"),
    }
}

fn tenant(take: &Take<'_>) -> Tenant {
    Tenant {
        id: take.uuid("SVC_TENANT_ID"),
        seed_user_id: take.uuid("SVC_SEED_USER_ID"),
        seed_user_email: take.text("SVC_SEED_USER_EMAIL"),
        seed_token: take.secret("SVC_SEED_TOKEN"),
    }
}

fn sign_in(take: &Take<'_>, identity_providers: Option<IdentityProviders>) -> SignIn {
    let minutes = |name| Duration::from_secs(60 * take.number::<u64>(name));
    let public_url = take.text("SVC_PUBLIC_URL");
    SignIn {
        public_url: public_url.and_then(|text| Origin::of(&Url::parse(&text).ok()?)),
        token_sign_in: TokenSignIn::parse(take.word("SVC_TOKEN_SIGN_IN"))
            .unwrap_or(TokenSignIn::On),
        session_idle: minutes("SVC_SESSION_IDLE_MINUTES"),
        session_life: 60 * minutes("SVC_SESSION_HOURS"),
        provider_timeout: take.duration("SVC_SIGN_IN_TIMEOUT_MS"),
        console_login: take.boolean("SVC_DEV_CONSOLE_LOGIN"),
        // SVC_IDENTITY_PROVIDERS_PATH: the reading has read the file.
        identity_providers,
    }
}

fn http(take: &Take<'_>) -> Http {
    let port = take.number("SVC_HTTP_PORT");
    let pool_size: usize = take.number("SVC_DATABASE_POOL_SIZE");
    Http {
        address: SocketAddr::new(take.address("SVC_BIND_ADDRESS"), port),
        docs: take.boolean("SVC_DOCS"),
        console: take.boolean("SVC_CONSOLE"),
        allowed_origins: take.origins("SVC_ALLOWED_ORIGINS"),
        max_connections: take.number("SVC_MAX_CONNECTIONS"),
        max_connections_per_address: take.number("SVC_MAX_CONNECTIONS_PER_ADDRESS"),
        max_header_bytes: take.number("SVC_MAX_HEADER_BYTES"),
        max_body_bytes: take.number("SVC_MAX_BODY_BYTES"),
        max_body_bytes_in_flight: take.number("SVC_MAX_BODY_BYTES_IN_FLIGHT"),
        max_answer_bytes_in_flight: take.number("SVC_MAX_ANSWER_BYTES_IN_FLIGHT"),
        max_answer_bytes_per_address: take.number("SVC_MAX_ANSWER_BYTES_PER_ADDRESS"),
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

fn forward_proxy(take: &Take<'_>) -> Option<ForwardProxy> {
    let url = Url::parse(&take.text("SVC_FORWARD_PROXY")?).ok()?;
    Some(ForwardProxy {
        origin: Origin::of(&url)?,
        origins: take.origins("SVC_FORWARD_PROXY_ORIGINS"),
        credentials: take.secret("SVC_FORWARD_PROXY_CREDENTIALS"),
    })
}

fn traces(take: &Take<'_>) -> Option<Traces> {
    let headers = take.secret("SVC_OTLP_HEADERS");
    Some(Traces {
        endpoint: take.text("SVC_OTLP_ENDPOINT")?,
        headers: headers
            .and_then(|text| parse::headers(text.expose()))
            .unwrap_or_default(),
        environment: take.text("SVC_ENVIRONMENT"),
    })
}

/// The reading has checked which settings are given.
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
                    // SVC_SECRETS_KMS_CREDENTIALS_PATH, or the vendor's usual variable.
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
    panic!("the settings table has another type for {name} than src/config/assemble.rs")
}

/// Takes values by name. A setting that was not given has none; a list is then empty.
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
