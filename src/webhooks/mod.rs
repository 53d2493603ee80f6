//! Outbound webhooks: events told to a tenant's receivers, signed, at least once.
//!
//! Not here: the routes (`api::webhook_endpoints`), the rows (`store`), which addresses a receiver may
//! have (`outbound`).

use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::secrets::Secrets;
use crate::store::Store;

/// How webhooks are sent from this process.
#[derive(Debug, Clone, Default)]
pub struct Options {}

/// Outbound webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks;

impl Webhooks {
    /// Puts the parts together; starts nothing.
    pub fn new(_: Store, _: Clock, _: Outbound, _: Secrets, _: Options, _: slog::Logger) -> Self {
        Self
    }
}
