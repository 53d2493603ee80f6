//! Sessions of browsers: how long they last, at which address they are taken, and the cookie that carries them.
//!
//! The value is `svc_ss_` and has the form of a bearer token. A session ends when its person signs out, when it was not used for
//! the idle time, and at its latest end however much it is used; with the token that it came from, and with its person. A
//! setting that allows less counts for those that are open, too; one that allows more for those that are opened then.
//!
//! Not here: reading a request (`http::origin`), and the ways in (`api::sign_in`).

use crate::config::identity_providers::IdentityProviders;
use crate::config::{Origin, Settings, TokenSignIn};
use crate::secret::Secret;
use crate::store::identity_providers::ManagedBy;
use crate::store::open_sessions::{Limits, Moment};
use crate::store::sessions::Method;
use crate::store::sign_in_settings::SignInSettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// How often a use is written at most.
pub const NOTED_EVERY: Duration = Duration::from_secs(60);

/// The cookie of a session. Browsers take one with this prefix from the host itself alone, over TLS or loopback (RFC 6265bis).
/// They do not tell ports apart, so an address with a port has it in the name.
pub const COOKIE: &str = "__Host-agent-runtime";

/// How people sign in.
#[derive(Debug, Clone)]
pub struct Options {
    /// The server's origin as browsers see it.
    pub public_url: Option<Origin>,
    /// In development every loopback address counts as the server's, too.
    pub development: bool,
    /// Who may sign in with a bearer token.
    pub token_sign_in: TokenSignIn,
    /// How long a session lasts that is not used.
    pub idle: Duration,
    /// How long a session lasts.
    pub life: Duration,
    /// How long all requests to an identity provider may take when somebody signs in.
    pub provider_timeout: Duration,
    /// The token that the console may take in development.
    pub console_token: Option<Secret>,
    /// The operator's identity providers: they alone serve. None: each tenant's own.
    pub operator_providers: Option<Arc<IdentityProviders>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            public_url: None,
            development: false,
            token_sign_in: TokenSignIn::On,
            idle: Duration::from_secs(4 * 3600),
            life: Duration::from_secs(24 * 3600),
            provider_timeout: Duration::from_secs(5),
            console_token: None,
            operator_providers: None,
        }
    }
}

impl Options {
    /// As the settings say. The console may take the seed token, where that is on.
    pub fn from_settings(settings: &Settings, seed_token: &Secret) -> Self {
        let (values, sign_in) = (&settings.values, &settings.sign_in);
        let idle_minutes: u64 = values.number("SVC_SESSION_IDLE_MINUTES");
        let life_hours: u64 = values.number("SVC_SESSION_HOURS");
        let console_login = values.boolean("SVC_DEV_CONSOLE_LOGIN");
        Self {
            public_url: sign_in.public_url.clone(),
            development: settings.development,
            token_sign_in: TokenSignIn::parse(values.word("SVC_TOKEN_SIGN_IN"))
                .unwrap_or(TokenSignIn::On),
            idle: Duration::from_secs(60 * idle_minutes),
            life: Duration::from_secs(3600 * life_hours),
            provider_timeout: sign_in.provider_timeout,
            console_token: console_login.then(|| seed_token.clone()),
            operator_providers: sign_in.identity_providers.clone().map(Arc::new),
        }
    }

    /// Whose identity providers serve.
    pub fn providers_managed_by(&self) -> ManagedBy {
        match self.operator_providers {
            Some(_) => ManagedBy::Operator,
            None => ManagedBy::Tenant,
        }
    }

    /// The secret of a client that the operator's file names, if it has one.
    pub fn operator_secret(&self, identity_provider_id: Uuid) -> Option<&Secret> {
        let providers = self.operator_providers.as_ref()?;
        let mut all = providers.0.iter();
        let provider = all.find(|provider| provider.id == identity_provider_id)?;
        provider.client_secret.as_ref()
    }

    /// Who may sign in with a token, where a tenant sets this: the narrower of the two.
    pub fn token_sign_in_of(&self, settings: &SignInSettings) -> TokenSignIn {
        self.token_sign_in.max(settings.token_sign_in)
    }

    /// How long a session lasts that is not used, where a tenant sets this: the shorter of the two.
    pub fn idle_of(&self, settings: &SignInSettings) -> Duration {
        let of_tenant = settings.session_idle_minutes.map(minutes);
        of_tenant.unwrap_or(self.idle).min(self.idle)
    }

    /// How long a session lasts, where a tenant sets this: the shorter of the two.
    pub fn life_of(&self, settings: &SignInSettings) -> Duration {
        let of_tenant = settings.session_hours.map(|hours| 60 * minutes(hours));
        of_tenant.unwrap_or(self.life).min(self.life)
    }

    /// What is allowed of sessions. One that came from the development token stands as long as the console takes that token.
    pub fn limits(&self) -> Limits {
        Limits {
            idle: self.idle,
            life: self.life,
            by_token: self.token_sign_in,
            by_console: match self.console_token {
                Some(_) => TokenSignIn::On,
                None => self.token_sign_in,
            },
        }
    }

    /// What counts as open now.
    pub fn moment(&self, now: OffsetDateTime) -> Moment {
        self.limits().at(now)
    }
}

/// So many minutes.
pub fn minutes(count: i32) -> Duration {
    Duration::from_secs(60 * u64::from(count.unsigned_abs()))
}

/// How often people signed in and were refused, by how, in this process.
#[derive(Debug, Default)]
pub struct SignIns([[AtomicU64; 2]; Method::ALL.len()]);

impl SignIns {
    /// Somebody signed in, or was refused.
    pub fn count(&self, method: Method, is_opened: bool) {
        self.0[method as usize][usize::from(is_opened)].fetch_add(1, Ordering::Relaxed);
    }

    /// How many, by the way in and whether a session was opened.
    pub fn figures(&self) -> Vec<(Method, bool, u64)> {
        let each = Method::ALL.into_iter().zip(&self.0);
        each.flat_map(|(method, counters)| {
            [true, false].map(|is_opened| {
                let counter = &counters[usize::from(is_opened)];
                (method, is_opened, counter.load(Ordering::Relaxed))
            })
        })
        .collect()
    }
}
