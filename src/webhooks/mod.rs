//! Outbound webhooks: events told to a tenant's receivers, signed, at least once.
//!
//! Not here: the routes (`api::webhook_endpoints`), the rows (`store`), which addresses a receiver may
//! have (`outbound`).

use crate::ids::Clock;
use crate::outbound::{Outbound, Policy, WebhookAccess};
use crate::secrets::Secrets;
use crate::store::Store;
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
        }
    }
}

impl Options {
    /// Which receivers may be reached.
    pub fn policy(&self) -> Policy {
        Policy::Webhook(WebhookAccess {
            private_networks: self.private_networks,
            development: self.development,
            listening: self.listening,
        })
    }
}

/// Outbound webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks;

impl Webhooks {
    /// Puts the parts together; starts nothing.
    pub fn new(_: Store, _: Clock, _: Outbound, _: Secrets, _: Options, _: slog::Logger) -> Self {
        Self
    }
}
