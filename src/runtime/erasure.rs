//! Erases a conversation: its messages, its title, and the payloads of its runs.
//!
//! The request marks the conversation and queues a job in the same transaction; from then on no run starts in it. The job
//! erases in bounded batches, each in a transaction of its own, and at last says that all is gone. Done again after a crash,
//! it finds what is left. A run that cannot be erased holds up no other. Retention erases by the same batches (`maintenance`).

use super::services::Services;
use crate::error::{Error, Result};
use crate::proof::{May, Write};
use crate::store::conversations::{self, Conversation};
use crate::store::{Tx, queue_error, runs};
use jobs::{Claimed, Outcome};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::time::Duration;
use uuid::Uuid;

/// Runs erased in one transaction, with those below them.
const BATCH: i64 = 50;
/// The wait for a run below one of the conversation's that has not ended yet.
const WAIT: Duration = Duration::from_secs(2);

/// The job that erases a conversation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EraseConversation {
    tenant_id: Uuid,
    conversation_id: Uuid,
}

impl jobs::Job for EraseConversation {
    const NAME: &'static str = "conversation.erase";
    const QUEUE: &'static str = "erasures";
    // It can always be done at last.
    const MAX_ATTEMPTS: u32 = 1_000_000;
}

/// The queue, which a thread serves.
pub(super) fn queue() -> jobs::QueueOptions {
    jobs::QueueOptions {
        threads: 1,
        // The process that took the request is woken.
        poll: Duration::from_secs(5),
        ..jobs::QueueOptions::default()
    }
}

/// Marks a conversation as one to be erased and queues the work. What was marked before is left as it is.
///
/// # Errors
/// `conflict` while a run is under way in it.
pub(super) fn request(
    services: &Services,
    tx: &mut Tx<'_>,
    may: &impl May<Write, Conversation>,
) -> Result<Conversation> {
    let (conversation, is_new) = conversations::request_erasure(tx, may, services.clock.now())?;
    if is_new {
        let job = EraseConversation {
            tenant_id: may.tenant_id(),
            conversation_id: may.object_id(),
        };
        let job = jobs::NewJob::of(&job).map_err(Error::internal)?;
        jobs::enqueue(tx.raw(), job).map_err(queue_error)?;
    }
    Ok(conversation)
}

/// Handles a job.
pub(super) fn erase(services: &Services, claimed: &Claimed, job: EraseConversation) -> Outcome {
    match erase_all(services, claimed, job) {
        Ok(outcome) => outcome,
        Err(error) => {
            crate::warn_unless!(services.store.is_away(), services.log, "A conversation could not be erased; it will be tried again";
                "tenantId" => %job.tenant_id, "conversationId" => %job.conversation_id, crate::log::ErrorValue(&error));
            Outcome::retry(error.to_string())
        }
    }
}

/// Tries each run of a conversation once, and says how it stands then.
///
/// # Errors
/// Why a run could not be erased.
fn erase_all(services: &Services, claimed: &Claimed, job: EraseConversation) -> Result<Outcome> {
    let EraseConversation {
        tenant_id,
        conversation_id,
    } = job;
    let mut batches = Batches::of(tenant_id);
    loop {
        if claimed.stopping() || claimed.lost() {
            return Ok(Outcome::Snooze {
                after: Duration::ZERO,
            });
        }
        let found_some = batches.erase_next(services, |tx, after, most| {
            runs::unerased_of_conversation(tx, tenant_id, conversation_id, after, most)
        })?;
        if !found_some {
            break;
        }
    }
    if let Some(error) = batches.into_failure() {
        return Err(error);
    }
    let now = services.clock.now();
    let is_done = services.store.transact(|tx| {
        let left = runs::unerased_of_conversation(tx, tenant_id, conversation_id, Uuid::nil(), 1)?;
        if left.is_empty() {
            conversations::finish_erasure(tx, tenant_id, conversation_id, now)?;
        }
        Ok(left.is_empty())
    })?;
    Ok(if is_done {
        Outcome::Done
    } else {
        Outcome::Snooze { after: WAIT }
    })
}

/// Goes once over runs of a tenant, by id, and erases them in batches. A batch that fails is halved, since a smaller one may
/// fit its time or miss the run that fails. A run that fails alone is passed, and the next batch is a full one.
pub(super) struct Batches {
    tenant_id: Uuid,
    after: Uuid,
    most: i64,
    failure: Option<Error>,
}

impl Batches {
    pub(super) fn of(tenant_id: Uuid) -> Self {
        Self {
            tenant_id,
            after: Uuid::nil(),
            most: BATCH,
            failure: None,
        }
    }

    /// Erases one batch, or passes a run. `find` gives the runs after one, by id, so many at most. False: there are none.
    ///
    /// # Errors
    /// The database is away, or `find` failed.
    pub(super) fn erase_next(
        &mut self,
        services: &Services,
        find: impl FnOnce(&mut Tx<'_>, Uuid, i64) -> Result<Vec<Uuid>>,
    ) -> Result<bool> {
        let now = services.clock.now();
        let mut last = None;
        let erased = services.store.transact(|tx| {
            let ids = find(tx, self.after, self.most)?;
            last = ids.last().copied();
            runs::erase_payloads(tx, self.tenant_id, &ids, now)
        });
        match (erased, last) {
            (Ok(_), None) => return Ok(false),
            (Ok(erased), Some(last)) => {
                services.count_erased(erased);
                self.after = last;
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(_)) if services.store.is_away() => return Err(error),
            (Err(_), Some(_)) if self.most > 1 => self.most /= 2,
            (Err(error), Some(run_id)) => {
                slog::warn!(services.log, "What a run was given, said and answered could not be erased; it will be tried again";
                    "tenantId" => %self.tenant_id, "runId" => %run_id, crate::log::ErrorValue(&error));
                self.failure = Some(error);
                self.after = run_id;
                self.most = BATCH;
            }
        }
        Ok(true)
    }

    /// Why the last of the runs that were passed could not be erased.
    pub(super) fn into_failure(self) -> Option<Error> {
        self.failure
    }
}

impl Services {
    /// Payloads of so many runs were erased.
    pub(super) fn count_erased(&self, count: u64) {
        self.payloads_erased.fetch_add(count, Ordering::Relaxed);
    }
}
