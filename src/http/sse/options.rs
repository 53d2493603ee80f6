//! Options of streams.

use crate::authn::session;
use crate::store::open_sessions::Limits;
use std::time::Duration;

/// How streams are served.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads.
    pub threads: usize,
    /// What a reader may leave unread, in bytes.
    pub buffer_bytes: usize,
    /// How often another replica's work is looked for.
    pub tail_every: Duration,
    /// How often an idle stream gets a comment.
    pub comment_every: Duration,
    /// How often open streams' tokens are looked up again, and their readers' rights decided again.
    pub recheck_every: Duration,
    /// How long a reader may take nothing before it is reset.
    pub patience: Duration,
    /// Which sessions are open. A server takes it from how people sign in.
    pub session_limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 2,
            buffer_bytes: 64 * 1024,
            tail_every: Duration::from_millis(250),
            comment_every: Duration::from_secs(15),
            recheck_every: Duration::from_secs(30),
            patience: Duration::from_secs(10),
            session_limits: session::Options::default().limits(),
        }
    }
}
