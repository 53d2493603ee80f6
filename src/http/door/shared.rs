//! What all connections of a door share.

use super::answers::Answers;
use super::app::App;
use super::counters::Counters;
use super::limits::Limits;
use super::pool::Pool;
use super::stopping::Stopping;
use crate::ids::Clock;
use std::sync::Arc;

/// What every connection of a door needs.
pub(super) struct Shared {
    pub(super) limits: Arc<Limits>,
    pub(super) app: Arc<dyn App>,
    pub(super) counters: Arc<Counters>,
    pub(super) stopping: Arc<Stopping>,
    pub(super) pool: Arc<Pool>,
    pub(super) answers: Arc<Answers>,
    pub(super) clock: Clock,
    pub(super) log: slog::Logger,
}

/// The door's thread and every connection have ended: nothing can be queued any more.
impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.jobs.close();
    }
}
