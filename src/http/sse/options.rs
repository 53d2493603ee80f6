//! Options of streams.

use crate::authn::session;
use crate::config::Settings;
use crate::http::door;
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
    /// Streams that one tenant may have open.
    pub tenant_streams: usize,
    /// Streams of one run, and of those below it, that readers with public tokens may have open.
    pub public_run_streams: usize,
    /// How long a transaction stays open at most after it took a position: so long what is missing may still come. A server
    /// takes more where its limits on statements allow more.
    pub longest_transaction: Duration,
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
            tenant_streams: tenant_streams(&door::Limits::default()),
            public_run_streams: 64,
            longest_transaction: Duration::from_secs(15),
            session_limits: session::Options::default().limits(),
        }
    }
}

impl Options {
    /// As the settings say, behind a door with these limits.
    pub fn from_settings(settings: &Settings, limits: &door::Limits) -> Self {
        Self {
            threads: settings.values.number("SVC_STREAM_THREADS"),
            buffer_bytes: settings.values.number("SVC_STREAM_BUFFER_BYTES"),
            tenant_streams: tenant_streams(limits),
            ..Self::default()
        }
    }
}

/// What one tenant may have open of all streams that the door takes: it leaves a tenth to the others.
pub fn tenant_streams(limits: &door::Limits) -> usize {
    let all = limits.most_streams();
    (all - all / 10).max(1)
}
