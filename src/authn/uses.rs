//! When bearer tokens were used, for whoever wants to know which are still needed.
//!
//! Guarantees: no request waits for it, and none makes a statement for it. A look-up of a token says when its use was last
//! written; a use that is much later waits here, and the thread `starter` writes what waits. So of each token one use in
//! [`NOTED_EVERY`] is written, a few seconds after it. A use that waits when the process dies is forgotten.

use crate::error::Result;
use crate::store::Store;
use crate::store::tokens::{self, Known, Use};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// How often a use of a token is written at most.
pub(super) const NOTED_EVERY: Duration = Duration::from_secs(3600);

/// Uses that wait at most; one that finds no room is noted with a later look-up.
const WAITING_MOST: usize = 65_536;

/// Uses written with one statement.
const BATCH: usize = 1000;

/// By tenant and token: when.
type Waiting = HashMap<(Uuid, Uuid), OffsetDateTime>;

#[derive(Debug, Default)]
pub(super) struct Uses(Mutex<Waiting>);

impl Uses {
    /// A token was looked up for a request.
    pub(super) fn note(&self, known: &Known, now: OffsetDateTime) {
        if known.used_at.is_some_and(|used| used + NOTED_EVERY > now) {
            return;
        }
        let minute = now - Duration::new(now.second().into(), now.nanosecond());
        self.wait(Use {
            tenant_id: known.caller.tenant_id,
            token_id: known.caller.token_id,
            at: minute,
        });
    }

    fn wait(&self, one: Use) {
        let mut waiting = self.lock();
        if waiting.len() < WAITING_MOST {
            waiting
                .entry((one.tenant_id, one.token_id))
                .or_insert(one.at);
        }
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// `database-unavailable`: it waits on.
    pub(super) fn write(&self, store: &Store) -> Result<()> {
        let waiting = std::mem::take(&mut *self.lock());
        if waiting.is_empty() {
            return Ok(());
        }
        let mut uses: Vec<Use> = waiting
            .into_iter()
            .map(|((tenant_id, token_id), at)| Use {
                tenant_id,
                token_id,
                at,
            })
            .collect();
        // Replicas that write the same rows take turns.
        uses.sort_unstable_by_key(|one| (one.tenant_id, one.token_id));
        for (done, some) in uses.chunks(BATCH).enumerate() {
            let written = store
                .session()
                .and_then(|mut session| tokens::note_uses(&mut session, some, NOTED_EVERY));
            if let Err(error) = written {
                uses[done * BATCH..].iter().for_each(|one| self.wait(*one));
                return Err(error);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::{Caller, Capabilities, Key, KeyRole, KnownBy};
    use time::macros::datetime;

    fn known(used_at: Option<OffsetDateTime>) -> Known {
        Known {
            caller: Caller {
                tenant_id: Uuid::from_u128(1),
                user_id: Uuid::from_u128(2),
                token_id: Uuid::from_u128(3),
                known_by: KnownBy::Token,
                key: Key {
                    role: KeyRole::Admin,
                    capabilities: Capabilities::all(),
                    project_id: None,
                },
            },
            expires_at: None,
            used_at,
            session: None,
        }
    }

    #[test]
    fn a_use_waits_once_an_hour_and_says_the_minute() {
        let now = datetime!(2026-03-01 12:34:56.789 UTC);
        let uses = Uses::default();
        uses.note(&known(Some(datetime!(2026-03-01 11:35 UTC))), now);
        assert!(uses.lock().is_empty(), "an hour has not passed");
        uses.note(&known(Some(datetime!(2026-03-01 11:34 UTC))), now);
        uses.note(&known(None), now + Duration::from_secs(120));
        let waiting: Vec<_> = uses.lock().values().copied().collect();
        assert_eq!(waiting, [datetime!(2026-03-01 12:34 UTC)]);
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let uses = Uses::default();
        for number in 0..=WAITING_MOST {
            uses.wait(Use {
                tenant_id: Uuid::nil(),
                token_id: Uuid::from_u128(number as u128),
                at: OffsetDateTime::UNIX_EPOCH,
            });
        }
        assert_eq!(uses.lock().len(), WAITING_MOST);
    }
}
