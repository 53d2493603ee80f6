//! Re-checks the rights of the readers of open streams. It has a thread of its own, because it
//! waits for the authorization server, and stream threads never block on that.
//!
//! Guarantees: a reader that lost its right is reported to the stream thread, which ends the stream
//! with its last event. If a check gets no answer the stream goes on, and the log says so.

use super::command::Command;
use crate::authz::{Admission, Again};
use crate::error::Code;
use crate::store::Store;
use crossbeam_channel::{Receiver, Sender};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a stream thread may leave its queue full.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the thread is given: the readers of one stream thread.
pub(super) struct Round {
    pub(super) readers: Vec<Again>,
    /// The number of the stream thread.
    pub(super) shard: usize,
    /// Held by the stream thread, too: it gives no second round before this one is done.
    pub(super) pending: Arc<()>,
}

/// The way to the thread that decides about readers again.
pub(super) struct ToAccess {
    pub(super) rounds: Sender<Round>,
    /// Where its answers go: this thread's number.
    pub(super) shard: usize,
    /// Shared with the round that is under way.
    pub(super) pending: Arc<()>,
}

pub(super) struct Access {
    pub(super) admission: Arc<Admission>,
    pub(super) store: Store,
    pub(super) shards: Vec<Sender<Command>>,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) log: slog::Logger,
}

impl Access {
    /// Works until nobody can give a round any more.
    pub(super) fn run(self, rounds: &Receiver<Round>) {
        for round in rounds {
            self.decide(&round);
            drop(round.pending);
        }
    }

    fn decide(&self, round: &Round) {
        for (done, again) in round.readers.iter().enumerate() {
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            let Err(error) = again.decide(&self.store, &self.admission) else {
                continue;
            };
            if error.code() != Code::PermissionDenied {
                crate::warn_unless!(self.store.is_away(), self.log, "Readers of open streams could not be checked again; their streams go on";
                    "streams" => round.readers.len() - done, crate::log::ErrorValue(&error));
                return;
            }
            slog::info!(self.log, "A reader of an open stream may not read its run any more";
                "tenantId" => %again.tenant_id(), "runId" => %again.run_id(), "tokenId" => %again.token_id());
            let refused = Command::Refused {
                run_id: again.run_id(),
                token_id: again.token_id(),
            };
            // A full queue is being read, unless the server stops.
            let to = &self.shards[round.shard];
            if to.send_timeout(refused, PATIENCE).is_err() {
                return;
            }
        }
    }
}
