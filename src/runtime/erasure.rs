//! Erases a conversation: its messages, its title, and the payloads of its runs.
//!
//! The request marks the conversation and queues a job in the same transaction; from then on no run starts in it. The job
//! erases in bounded batches, each in a transaction of its own, and at last says that all is gone. Done again after a crash,
//! it finds what is left. Retention erases runs by the same function (`maintenance`).

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

/// Runs erased in one transaction.
pub(super) const BATCH: i64 = 50;
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
    let EraseConversation {
        tenant_id,
        conversation_id,
    } = job;
    loop {
        if claimed.stopping() || claimed.lost() {
            return Outcome::Snooze {
                after: Duration::ZERO,
            };
        }
        let now = services.clock.now();
        let batch = services.store.transact(|tx| {
            let (erased, found_some) =
                runs::erase_of_conversation(tx, tenant_id, conversation_id, BATCH, now)?;
            if !found_some {
                conversations::finish_erasure(tx, tenant_id, conversation_id, now)?;
            }
            Ok((erased, found_some))
        });
        match batch {
            Err(error) => {
                crate::warn_unless!(services.store.is_away(), services.log, "A conversation could not be erased; it will be tried again";
                    "tenantId" => %tenant_id, "conversationId" => %conversation_id, crate::log::ErrorValue(&error));
                return Outcome::retry(error.to_string());
            }
            Ok((_, false)) => return Outcome::Done,
            Ok((0, true)) => return Outcome::Snooze { after: WAIT },
            Ok((erased, true)) => services.count_erased(erased),
        }
    }
}

impl Services {
    /// Payloads of so many runs were erased.
    pub(super) fn count_erased(&self, count: u64) {
        self.payloads_erased.fetch_add(count, Ordering::Relaxed);
    }
}
