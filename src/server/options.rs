//! The options of a server: those of its parts, each of which reads its own settings.

use crate::audit;
use crate::authn::public::{self, Signer};
use crate::authn::session;
use crate::authz::permissions;
use crate::config::license::Claims;
use crate::config::{PublicTokenKey, Settings};
use crate::error::Result;
use crate::http::{door, sse};
use crate::outbound::Outbound;
use crate::runtime::{self, ModelKeys};
use crate::secret::Secret;
use crate::secrets;
use crate::store;
use crate::traces;
use crate::webhooks;
use std::net::SocketAddr;
use std::time::Duration;
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

impl Options {
    /// The options of a server with these settings and this tenant.
    ///
    /// # Errors
    /// The system gives no random bytes, or a certificate is no use.
    pub fn from_settings(settings: &Settings, seeds: Seeds) -> Result<Self> {
        let sign_in = session::Options::from_settings(settings, &seeds.token);
        let limits = door::Limits::from_settings(settings);
        Ok(Self {
            listen: settings.http.address,
            streams: sse::Options::from_settings(settings, &limits),
            limits,
            store: store::Options::from_settings(settings),
            runs: runtime::Options {
                sessions: sign_in.limits(),
                ..runtime::Options::from_settings(settings)
            },
            sign_in,
            secrets: secrets::Options::from_settings(settings, seeds.tenant_id)?,
            seeds,
            docs: settings.http.docs,
            console: settings.http.console,
            allowed_origins: settings
                .http
                .allowed_origins
                .iter()
                .map(|origin| origin.text().to_owned())
                .collect(),
            signer: match &settings.public_token_key {
                PublicTokenKey::Given(key) => Some(Signer::from_key((**key).clone())),
                PublicTokenKey::MakeAtStart => Some(Signer::ephemeral()?),
                PublicTokenKey::Off => None,
            },
            outbound: Outbound::from_settings(settings)?,
            model_keys: ModelKeys::from_settings(settings)?,
            license: settings.license.clone(),
            run_lease: settings.values.duration("SVC_RUN_LEASE_MS"),
            authorization: permissions::Options::from_settings(settings),
            audit: audit::Options::from_settings(settings),
            denials_per_minute: settings.values.number("SVC_MAX_DENIALS_PER_MINUTE"),
            webhooks: webhooks::Options::from_settings(settings),
            traces: traces::Options::from_settings(settings),
        })
    }
}

/// File descriptors that are open at once where every bound is reached: one for each client connection, each run and each
/// attempt of a webhook, and what the door reserves for the database and others.
pub fn descriptors(settings: &Settings) -> u64 {
    let limits = door::Limits::from_settings(settings);
    let runs = runtime::Options::from_settings(settings).threads;
    let webhooks = webhooks::Options::from_settings(settings).threads;
    // Twice the runs of one tenant are executed at once.
    let others = limits.connections + 2 * runs + webhooks;
    others as u64 + limits.reserved_descriptors
}
