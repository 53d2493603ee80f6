//! How many streams one tenant may have open, and how many the readers of one run and those below it with public tokens.
//!
//! Guarantees (`bulkheads`): a tenant leaves a tenth of all streams to the others. Public tokens are in browsers, where
//! anybody may copy them: those of one tree of runs open a bounded number of streams, however many they are. Whoever has
//! no room is told at once. A place is released when its answer is over, or its client has left.
//!
//! Not here: how many streams are open in all, and what they leave of the connections (`door::Limits`).

use super::options::Options;
use crate::error::{Code, Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The streams that are open, by tenant and by tree of runs.
pub(super) struct Room {
    tenants: Counts,
    /// Only those by public tokens.
    runs: Counts,
    tenant_streams: usize,
    public_run_streams: usize,
}

/// Room for one stream, released when dropped.
pub(super) struct Place {
    _of_tenant: Counted,
    _of_run: Option<Counted>,
}

impl Room {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            tenants: Counts::default(),
            runs: Counts::default(),
            tenant_streams: options.tenant_streams,
            public_run_streams: options.public_run_streams,
        }
    }

    /// Room for a stream of this tenant; by a public token, the run at the top of its tree is named.
    ///
    /// # Errors
    /// `too-many-requests`.
    pub(super) fn take(&self, tenant_id: Uuid, public_root_id: Option<Uuid>) -> Result<Place> {
        let of_run = match public_root_id {
            Some(root_id) => Some(self.of_tree(root_id)?),
            None => None,
        };
        let most = self.tenant_streams;
        let of_tenant = self.tenants.take(tenant_id, most).ok_or_else(|| {
            refused(format!(
                "The tenant has {most} event streams open on this server, which is the limit. Close some. \
                 GET /v1/changes/stream tells of many runs in one stream."
            ))
        })?;
        Ok(Place {
            _of_tenant: of_tenant,
            _of_run: of_run,
        })
    }

    fn of_tree(&self, root_id: Uuid) -> Result<Counted> {
        let most = self.public_run_streams;
        self.runs.take(root_id, most).ok_or_else(|| {
            refused(format!(
                "Public tokens have {most} streams of this run and its tree of runs open, which is the limit. Close \
                 some, or follow the run with a bearer token."
            ))
        })
    }
}

fn refused(message: String) -> Error {
    Error::new(Code::TooManyRequests, message)
}

/// How many there are of each. It holds the ids that are in use and no others.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<HashMap<Uuid, usize>>>);

/// One of an id's, no longer counted when dropped.
struct Counted {
    counts: Counts,
    id: Uuid,
}

impl Counts {
    fn take(&self, id: Uuid, most: usize) -> Option<Counted> {
        let mut counts = self.lock();
        let count = counts.get(&id).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        counts.insert(id, count + 1);
        drop(counts);
        let counts = self.clone();
        Some(Counted { counts, id })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        match counts.get_mut(&self.id) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> Room {
        Room::new(&Options {
            tenant_streams: 3,
            public_run_streams: 2,
            ..Options::default()
        })
    }

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[test]
    fn a_tenant_and_a_runs_public_tokens_have_their_own_room() {
        let room = room();
        let first = room.take(id(1), Some(id(10))).unwrap();
        let _second = room.take(id(1), Some(id(10))).unwrap();
        let refused = room.take(id(1), Some(id(10))).err().unwrap();
        assert_eq!(refused.code(), Code::TooManyRequests);
        // A key follows the same run.
        let _third = room.take(id(1), None).unwrap();
        assert!(room.take(id(1), None).is_err());
        assert!(room.take(id(1), Some(id(11))).is_err());
        assert!(room.take(id(2), Some(id(20))).is_ok());
        drop(first);
        assert!(room.take(id(1), Some(id(10))).is_ok());
    }

    #[test]
    fn what_is_refused_and_what_is_released_is_not_counted() {
        let room = room();
        let held: Vec<Place> = std::iter::from_fn(|| room.take(id(1), None).ok()).collect();
        assert_eq!(held.len(), 3);
        // The run has room, its tenant has none: the run's is released again.
        assert!(room.take(id(1), Some(id(10))).is_err());
        assert!(room.runs.lock().is_empty());
        drop(held);
        assert!(room.tenants.lock().is_empty());
    }
}
