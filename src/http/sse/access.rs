//! Re-checks the rights of the readers of open streams. It has a thread of its own, because it
//! waits for the authorization server, and stream threads never block on that.
//!
//! Guarantees: a reader that lost its right is reported to the stream thread, which ends the stream
//! with its last event. If a check gets no answer the stream goes on, and the log says so. A tenant
//! whose checks get no answer does not keep those of other tenants from being made.

use super::command::Command;
use crate::authz::{Admission, Again};
use crate::error::{Code, Error};
use crate::store::Store;
use crossbeam_channel::{Receiver, Sender};
use std::collections::HashSet;
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
        let mut begins = vec![0; self.shards.len()];
        for round in rounds {
            let begin = &mut begins[round.shard];
            *begin = self.decide(&round, *begin);
            drop(round.pending);
        }
    }

    /// Decides about each reader, beginning with this one. Gives where the next round begins: a round
    /// that ends early must not leave out the same readers each time.
    fn decide(&self, round: &Round, begin: usize) -> usize {
        let count = round.readers.len();
        let reader = |done: usize| &round.readers[(begin + done) % count];
        let mut unanswered = HashSet::new();
        for done in 0..count {
            let again = reader(done);
            if self.stopping.load(Ordering::Relaxed) {
                return begin;
            }
            // The next of them would wait as long, and the readers of other tenants behind it.
            if unanswered.contains(&again.tenant_id()) {
                continue;
            }
            let Err(error) = again.decide(&self.store, &self.admission) else {
                continue;
            };
            let left = (done..count).map(reader);
            if error.code() == Code::PermissionDenied {
                if !self.refuse(round.shard, again) {
                    return begin;
                }
            } else if self.is_everybody_s(&error) {
                crate::warn_unless!(self.store.is_away(), self.log, "Readers of open streams could not be checked again; their streams go on";
                    "streams" => left.count(), crate::log::ErrorValue(&error));
                return (begin + done + 1) % count;
            } else {
                let is_same = |other: &&Again| other.tenant_id() == again.tenant_id();
                slog::warn!(self.log, "Readers of a tenant's open streams could not be checked again; their streams go on";
                    "tenantId" => %again.tenant_id(), "streams" => left.filter(is_same).count(), crate::log::ErrorValue(&error));
                unanswered.insert(again.tenant_id());
            }
        }
        begin
    }

    /// Whether no tenant's check would be answered at this time.
    fn is_everybody_s(&self, error: &Error) -> bool {
        match error.code() {
            Code::DatabaseUnavailable | Code::AuditUnavailable | Code::ShuttingDown => true,
            _ => self.admission.is_away(),
        }
    }

    /// Has the reader's stream ended. False: its thread takes nothing any more.
    fn refuse(&self, shard: usize, again: &Again) -> bool {
        slog::info!(self.log, "A reader of an open stream may not read its run any more";
            "tenantId" => %again.tenant_id(), "runId" => %again.run_id(), "tokenId" => %again.token_id());
        let refused = Command::Refused {
            run_id: again.run_id(),
            token_id: again.token_id(),
        };
        // A full queue is being read, unless the server stops.
        self.shards[shard].send_timeout(refused, PATIENCE).is_ok()
    }
}
