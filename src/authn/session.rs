//! Sessions of browsers: how long they last, at which address they are taken, and the cookie that carries them.
//!
//! The value is `svc_ss_` and has the form of a bearer token. A session ends when its person signs out, when it was not used for
//! the idle time, and at its latest end however much it is used; with the token that it came from, and with its person.
//!
//! Not here: reading a request (`http::origin`), and the ways in (`api::sign_in`).

use crate::config::{Origin, TokenSignIn};
use crate::secret::Secret;
use crate::store::sessions::{Method, Moment};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use time::OffsetDateTime;

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
    /// The token that the console may take in development.
    pub console_token: Option<Secret>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            public_url: None,
            development: false,
            token_sign_in: TokenSignIn::On,
            idle: Duration::from_secs(4 * 3600),
            life: Duration::from_secs(24 * 3600),
            console_token: None,
        }
    }
}

impl Options {
    /// What counts as open now.
    pub fn moment(&self, now: OffsetDateTime) -> Moment {
        Moment {
            now,
            active_after: active_after(now, self.idle),
        }
    }
}

/// What was not used after this has been idle too long. A use may be later than it was noted, by [`NOTED_EVERY`] at most.
pub fn active_after(now: OffsetDateTime, idle: Duration) -> OffsetDateTime {
    now - idle - NOTED_EVERY
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
