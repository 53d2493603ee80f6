//! What counts as an open session: what the SQL function `open_sessions` is given, which decides it for every statement.
//!
//! Not here: sessions themselves (`sessions`), and the settings (`authn::session`).

use super::Parameter;
use crate::config::TokenSignIn;
use std::time::Duration;
use time::OffsetDateTime;

/// What the server's settings allow of sessions. It shortens those that are open, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long one lasts that is not used.
    pub idle: Duration,
    /// How long one lasts.
    pub life: Duration,
    /// Whose sessions last that came from a bearer token of their own.
    pub by_token: TokenSignIn,
    /// Whose sessions last that came from the token that the console takes in development.
    pub by_console: TokenSignIn,
}

/// What counts as open at a moment: what `open_sessions` takes.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    now: OffsetDateTime,
    idle_seconds: i32,
    life_seconds: i32,
    by_token: &'static str,
    by_console: &'static str,
}

impl Limits {
    /// What they leave open at this moment.
    pub fn at(self, now: OffsetDateTime) -> Moment {
        let seconds = |time: Duration| i32::try_from(time.as_secs()).unwrap_or(i32::MAX);
        Moment {
            now,
            idle_seconds: seconds(self.idle),
            life_seconds: seconds(self.life),
            by_token: self.by_token.text(),
            by_console: self.by_console.text(),
        }
    }
}

impl Moment {
    /// When.
    pub(super) fn now(&self) -> OffsetDateTime {
        self.now
    }

    /// The idle time of a session that is opened then.
    pub(super) fn idle_seconds(&self) -> i32 {
        self.idle_seconds
    }

    /// The parameters of a statement that calls the function: its own, and behind them the function's.
    pub(super) fn behind<'p>(&'p self, own: &[Parameter<'p>]) -> Vec<Parameter<'p>> {
        let of_function: [Parameter<'p>; 5] = [
            &self.now,
            &self.idle_seconds,
            &self.life_seconds,
            &self.by_token,
            &self.by_console,
        ];
        own.iter().copied().chain(of_function).collect()
    }
}
