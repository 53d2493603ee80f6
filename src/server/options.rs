//! The options of a server, derived from the settings. A setting that is not used here has no
//! effect.

use super::pem::pem;
use crate::audit;
use crate::authn::public::{self, Signer};
use crate::authn::session;
use crate::authz::permissions;
use crate::config::license::Claims;
use crate::config::{self, HostAccess, Http, Model, PublicTokenKey, Runs, Settings, Webhooks};
use crate::error::{Error, Result};
use crate::http::{door, sse};
use crate::outbound::{self, OperatorEndpoint, Outbound, Timeouts};
use crate::runtime::{self, ModelKeys};
use crate::secret::Secret;
use crate::secrets::kms;
use crate::secrets::{self, DotenvOptions, PostgresOptions};
use crate::store;
use crate::store::open_sessions::Limits;
use crate::traces;
use crate::webhooks;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;
use uuid::Uuid;

/// The tenant that the server seeds or finds again (section 1.3).
#[derive(Debug, Clone)]
pub struct Seeds {
    /// The tenant.
    pub tenant_id: Uuid,
    /// Its first admin.
    pub user_id: Uuid,
    /// The token of that user.
    pub token: Secret,
    /// What the token takes the place of.
    pub replaces: Replaced,
    /// The first user's email, if they have none.
    pub email: Option<String>,
}

/// The seed tokens that end when a start brings one.
#[derive(Debug, Clone)]
pub enum Replaced {
    /// Every other one of the tenant.
    All,
    /// This one, of whichever tenant, if it is one.
    Only(Option<Secret>),
}

/// Everything that a server is made of.
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The door's bounds.
    pub limits: door::Limits,
    /// The database.
    pub store: store::Options,
    /// The seeded tenant.
    pub seeds: Seeds,
    /// Mount the API reference.
    pub docs: bool,
    /// Mount the console.
    pub console: bool,
    /// Origins of browsers that may follow a run.
    pub allowed_origins: Vec<String>,
    /// How people sign in with a browser.
    pub sign_in: session::Options,
    /// Signs public run tokens, where they are on.
    pub signer: Option<public::Signer>,
    /// The way out.
    pub outbound: Outbound,
    /// The API keys that a tenant's model provider may name.
    pub model_keys: ModelKeys,
    /// What the license says; none in development.
    pub license: Option<Claims>,
    /// Runs.
    pub runs: runtime::Options,
    /// After it the runs of a dead process are taken over.
    pub run_lease: Duration,
    /// Streams.
    pub streams: sse::Options,
    /// The record of decisions.
    pub audit: audit::Options,
    /// The authorization server; none: authorization is off.
    pub authorization: Option<permissions::Options>,
    /// How often one credential may be denied in a minute.
    pub denials_per_minute: u32,
    /// Where secrets live.
    pub secrets: secrets::Options,
    /// Outbound webhooks.
    pub webhooks: webhooks::Options,
    /// The collector of traces; none: no spans are recorded.
    pub traces: Option<traces::Options>,
}

/// How the database is reached.
pub fn store(settings: &Settings) -> store::Options {
    store::Options {
        url: settings.database.url.clone(),
        pool_size: settings.database.pool_size,
        checkout_timeout: settings.database.checkout_timeout,
        outage: Default::default(),
        statement_timeout: settings.database.statement_timeout,
    }
}

impl Options {
    /// The options of a server with these settings and this tenant.
    ///
    /// # Errors
    /// The system gives no random bytes, or a certificate is no use.
    pub fn from_settings(settings: &Settings, seeds: Seeds) -> Result<Self> {
        let (http, tenant_id) = (&settings.http, seeds.tenant_id);
        let (sign_in, limits) = (sign_in(settings, &seeds.token), limits(http));
        let tenant_streams = sse::tenant_streams(&limits);
        Ok(Self {
            listen: http.address,
            limits: limits.leaving_to_database(settings.database.pool_size),
            store: store(settings),
            runs: runs(settings, sign_in.limits()),
            sign_in,
            seeds,
            docs: http.docs,
            console: http.console,
            allowed_origins: http
                .allowed_origins
                .iter()
                .map(|origin| origin.text().to_owned())
                .collect(),
            signer: match &settings.public_token_key {
                PublicTokenKey::Given(key) => Some(Signer::from_key((**key).clone())),
                PublicTokenKey::MakeAtStart => Some(Signer::ephemeral()?),
                PublicTokenKey::Off => None,
            },
            outbound: outbound(settings)?,
            model_keys: model_keys(settings)?,
            license: settings.license.clone(),
            run_lease: settings.runs.lease,
            authorization: authorization(settings),
            streams: sse::Options {
                threads: http.stream_threads,
                buffer_bytes: http.stream_buffer_bytes,
                tenant_streams,
                ..sse::Options::default()
            },
            audit: audit::Options {
                queue_length: settings.audit.queue_length,
                retention: settings.audit.purges.then(|| audit::Retention {
                    key: settings.audit.signing_key.as_deref().cloned(),
                }),
                ..audit::Options::default()
            },
            denials_per_minute: http.max_denials_per_minute,
            secrets: secrets(settings, tenant_id)?,
            webhooks: webhooks(settings),
            traces: traces(settings),
        })
    }
}

fn sign_in(settings: &Settings, seed_token: &Secret) -> session::Options {
    let sign_in = &settings.sign_in;
    session::Options {
        public_url: sign_in.public_url.clone(),
        development: settings.development,
        token_sign_in: sign_in.token_sign_in,
        idle: sign_in.session_idle,
        life: sign_in.session_life,
        provider_timeout: sign_in.provider_timeout,
        console_token: sign_in.console_login.then(|| seed_token.clone()),
        operator_providers: sign_in.identity_providers.clone().map(Arc::new),
    }
}

/// The way out.
///
/// # Errors
/// A certificate is no use.
pub fn outbound(settings: &Settings) -> Result<Outbound> {
    Outbound::new(outbound::Options {
        host_alias: settings.outbound.dev_host_alias.clone(),
        host_access_origins: settings.outbound.host_access_origins.clone(),
        operator_endpoints: operator_endpoints(settings),
        forward_proxy: settings.outbound.forward_proxy.clone().map(|proxy| {
            outbound::ForwardProxy {
                origin: proxy.origin,
                origins: proxy.origins,
                credentials: proxy.credentials,
            }
        }),
        extra_roots_pem: pem(&settings.outbound.extra_certificates),
        ..outbound::Options::default()
    })
}

/// What no tenant may reach. A collector that is sent headers asks for a token.
fn operator_endpoints(settings: &Settings) -> Vec<OperatorEndpoint> {
    let server = settings.authorization.as_ref().map(|one| &*one.url);
    let collector = settings.traces.iter().find(|one| one.headers.is_empty());
    OperatorEndpoint::all(server, collector.map(|one| &*one.endpoint))
}

/// Where secrets live; env files are this tenant's.
///
/// # Errors
/// A key is no use.
pub fn secrets(settings: &Settings, tenant_id: Uuid) -> Result<secrets::Options> {
    match &settings.secrets {
        config::Secrets::Off => Ok(secrets::Options::Off),
        config::Secrets::Postgres { kms, aad_key } => {
            Ok(secrets::Options::Postgres(Box::new(PostgresOptions {
                kms: key_management(kms)?,
                aad_key: secrets::AadKey::from_base64(aad_key)?,
                kept_for: secrets::KEPT_FOR,
            })))
        }
        config::Secrets::Dotenv {
            directory,
            files,
            environment,
        } => Ok(secrets::Options::Dotenv(DotenvOptions {
            directory: directory.clone(),
            files: files.clone(),
            environment: environment.clone(),
            tenant_id,
        })),
    }
}

fn key_management(kms: &config::Kms) -> Result<kms::Options> {
    Ok(match kms {
        config::Kms::Local { key, previous } => kms::Options::Local {
            key: kms::LocalKey::from_base64(key)?,
            previous: previous
                .as_ref()
                .map(kms::LocalKey::from_base64)
                .transpose()?,
        },
        config::Kms::CloudA {
            key: [project, location, key_ring, key],
            credentials,
            base_url,
            metadata_url,
        } => kms::Options::CloudA(kms::CloudAOptions {
            base_url: base_url.clone(),
            key: kms::KeyName {
                project: project.expose().to_owned(),
                location: location.expose().to_owned(),
                key_ring: key_ring.expose().to_owned(),
                key: key.expose().to_owned(),
            },
            credentials: kms::CredentialsOptions {
                file: credentials
                    .clone()
                    .map(|(path, setting)| kms::CredentialsFile { path, setting }),
                metadata_url: metadata_url.clone(),
            },
        }),
    })
}

/// How the authorization server is reached, if there is one.
pub fn authorization(settings: &Settings) -> Option<permissions::Options> {
    let authorization = settings.authorization.as_ref();
    authorization.map(|authorization| permissions::Options {
        url: authorization.url.clone(),
        timeout: authorization.timeout,
        connections: authorization.connections,
        model: permissions::Model::own(),
    })
}

/// The collector of traces, if there is one.
pub fn traces(settings: &Settings) -> Option<traces::Options> {
    let traces = settings.traces.clone()?;
    Some(traces::Options {
        headers: traces.headers,
        environment: traces.environment,
        ..traces::Options::new(traces.endpoint)
    })
}

/// File descriptors that are open at once where every bound is reached: one for each client connection, each run and each
/// attempt of a webhook, and what the door reserves for the database and others.
pub fn descriptors(settings: &Settings) -> u64 {
    let limits = limits(&settings.http).leaving_to_database(settings.database.pool_size);
    // Twice the runs of one tenant are executed at once.
    let others = limits.connections + 2 * settings.runs.threads + settings.webhooks.threads;
    others as u64 + limits.reserved_descriptors
}

fn limits(http: &Http) -> door::Limits {
    // Each field by its name: a new setting has to be handed on, or be said to be used elsewhere.
    let Http {
        max_connections,
        max_connections_per_address,
        max_header_bytes,
        max_body_bytes,
        max_body_bytes_in_flight,
        max_answer_bytes_in_flight,
        max_answer_bytes_per_address,
        header_timeout,
        body_timeout,
        write_timeout,
        request_deadline,
        idle_timeout,
        queue_length,
        request_threads,
        max_streams,
        max_denials_per_minute: _,
        address: _,
        docs: _,
        console: _,
        allowed_origins: _,
        stream_threads: _,
        stream_buffer_bytes: _,
        shutdown_timeout: _,
    } = *http;
    door::Limits {
        connections: max_connections,
        connections_per_address: max_connections_per_address,
        header_bytes: max_header_bytes,
        body_bytes: max_body_bytes as u64,
        bodies_in_flight_bytes: max_body_bytes_in_flight as u64,
        answers_in_flight_bytes: max_answer_bytes_in_flight as u64,
        answers_per_address_bytes: max_answer_bytes_per_address as u64,
        header_timeout,
        body_timeout,
        write_timeout,
        request_deadline,
        idle_timeout,
        queue_length,
        streams: max_streams,
        request_threads,
        ..door::Limits::default()
    }
}

fn runs(settings: &Settings, sessions: Limits) -> runtime::Options {
    let Runs {
        threads,
        lease: _,
        job_poll,
        tool_max_response_bytes,
        payload_retention_days,
        max_run_days,
        max_run_deaths,
        max_flow_tasks,
        max_flow_data_bytes,
        max_flow_children,
        max_runs_below_root,
        max_unfinished_runs,
        max_flow_expression_steps,
    } = settings.runs;
    let Model {
        keys: _,
        connect_timeout,
        first_byte_timeout,
        idle_timeout,
        total_timeout,
        attempts,
    } = settings.model;
    runtime::Options {
        threads,
        poll: job_poll,
        tool_answer_bytes: tool_max_response_bytes as u64,
        payload_retention: payload_retention_days.map(days),
        flow_limits: runtime::FlowLimits {
            days: max_run_days,
            tasks: max_flow_tasks,
            data_bytes: max_flow_data_bytes,
            children: max_flow_children,
            expression_steps: max_flow_expression_steps,
        },
        deaths_most: max_run_deaths,
        run_limits: runtime::RunLimits {
            below_root: max_runs_below_root,
            unfinished: max_unfinished_runs,
        },
        model_attempts: i32::try_from(attempts).unwrap_or(i32::MAX),
        model_timeouts: Timeouts {
            connect: connect_timeout,
            first_byte: first_byte_timeout,
            idle: Some(idle_timeout),
            total: total_timeout,
        },
        environment: settings.environment.clone(),
        host_access: match settings.outbound.host_access {
            HostAccess::Local => outbound::HostAccess::Local,
            HostAccess::Deployed => outbound::HostAccess::Deployed,
        },
        sessions,
        ..runtime::Options::default()
    }
}

fn days(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 24 * 3600)
}

fn webhooks(settings: &Settings) -> webhooks::Options {
    let Webhooks {
        private_networks,
        timeout,
        threads,
        endpoint_concurrency,
        retention_days,
    } = settings.webhooks;
    webhooks::Options {
        timeout,
        threads,
        endpoint_concurrency,
        retention_days,
        private_networks,
        development: settings.development,
        poll: settings.runs.job_poll,
        // Known once the server listens.
        listening: None,
        console: settings.public_console(),
        ..webhooks::Options::default()
    }
}

fn model_keys(settings: &Settings) -> Result<ModelKeys> {
    let mut keys = ModelKeys::default();
    for key in &settings.model.keys {
        let origin = Url::parse(key.origin.text()).map_err(Error::internal)?;
        keys.add(&key.name, &origin, key.key.clone());
    }
    Ok(keys)
}
