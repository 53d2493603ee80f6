//! What the files of this folder share: the database, the client of OpenFGA, the model, and the
//! status of each tenant.

use super::status::Status;
use crate::authz::fga;
use crate::authz::model::Model;
use crate::concurrency_limit::Limiter;
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::store::Store;
use std::time::Duration;
use uuid::Uuid;

/// What the parts of this folder share.
pub(super) struct SyncState {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) client: fga::Client,
    pub(super) timeout: Duration,
    pub(super) model: Model,
    /// The tenant and the user that the server seeds.
    pub(super) seed: Option<(Uuid, Uuid)>,
    pub(super) applies: Limiter,
    pub(super) status: Status,
    pub(super) log: slog::Logger,
}

impl SyncState {
    pub(super) fn is_stopped(&self) -> bool {
        self.status.is_stopped()
    }

    /// Whether the log has told that the database or the authorization server is away.
    pub(super) fn is_outage_known(&self) -> bool {
        self.store.is_away() || self.client.is_away()
    }

    /// # Errors
    /// `shutting-down`.
    pub(super) fn check_stop(&self) -> Result<()> {
        match self.is_stopped() {
            true => Err(Error::new(Code::ShuttingDown, "The server is stopping.")),
            false => Ok(()),
        }
    }
}
