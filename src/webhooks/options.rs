//! How webhooks are sent from a process.

use crate::config::Settings;
use crate::outbound::{Policy, WebhookAccess};
use std::net::SocketAddr;
use std::time::Duration;

/// How webhooks are sent from this process.
#[derive(Debug, Clone)]
pub struct Options {
    /// For one attempt, from the look-up of the name to the end of the answer.
    pub timeout: Duration,
    /// Attempts of this process at once at most.
    pub threads: usize,
    /// Attempts to one endpoint at once at most, over all processes.
    pub endpoint_concurrency: u32,
    /// Days that events, deliveries and attempts are kept at least.
    pub retention_days: u32,
    /// Receivers on private networks are let through, over https.
    pub private_networks: bool,
    /// Development mode: plain http, and every address but those of metadata services.
    pub development: bool,
    /// Where the server itself listens, which no webhook may reach.
    pub listening: Option<SocketAddr>,
    /// Where people open the console, such as `https://agents.example.com/console/`.
    pub console: Option<String>,
    /// How often deliveries that other processes queued, and retries that are due, are looked for.
    pub poll: Duration,
    /// As many deliveries are claimed ahead as attempts ended within so much time of late.
    pub ahead: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            threads: 32,
            endpoint_concurrency: 8,
            retention_days: 30,
            private_networks: false,
            development: false,
            listening: None,
            console: None,
            poll: Duration::from_millis(200),
            ahead: Duration::from_millis(20),
        }
    }
}

impl Options {
    /// As the settings say.
    pub fn from_settings(settings: &Settings) -> Self {
        let values = &settings.values;
        Self {
            timeout: values.duration("SVC_WEBHOOK_TIMEOUT_MS"),
            threads: values.number("SVC_WEBHOOK_THREADS"),
            endpoint_concurrency: values.number("SVC_WEBHOOK_ENDPOINT_CONCURRENCY"),
            retention_days: values.number("SVC_WEBHOOK_RETENTION_DAYS"),
            // The one word of the setting is `allow`.
            private_networks: values.is_given("SVC_WEBHOOK_PRIVATE_NETWORKS"),
            development: settings.development,
            poll: values.duration("SVC_JOB_POLL_MS"),
            console: settings.public_console(),
            ..Self::default()
        }
    }

    /// Which receivers may be reached.
    pub fn policy(&self) -> Policy {
        Policy::Webhook(WebhookAccess {
            private_networks: self.private_networks,
            development: self.development,
            listening: self.listening,
        })
    }

    /// How many attempts to an endpoint may be in flight at once. One that is not known to answer
    /// quickly has one, and all of those together half of the threads.
    pub(super) fn cap(&self, is_well: bool) -> u32 {
        match is_well {
            true => self.endpoint_concurrency,
            false => 1,
        }
    }
}
