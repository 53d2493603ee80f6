//! How many streams one tenant may have open, and how many the readers of one run and those below it with public tokens.
//!
//! Guarantees (`bulkheads`): a tenant leaves a tenth of all streams to the others. Public tokens are in browsers, where
//! anybody may copy them: those of one tree of runs open a bounded number of streams, however many they are. Whoever has
//! no room is told at once. A place is released when its answer is over, or its client has left.
//!
//! Not here: how many streams are open in all, and what they leave of the connections (`door::Limits`).

use super::options::Options;
use crate::concurrency_limit::{LimiterByKey, Permit};
use crate::error::{Code, Error, Result};
use uuid::Uuid;

/// The streams that are open, by tenant and by tree of runs.
pub(super) struct Room {
    of_tenant: LimiterByKey<Uuid>,
    /// Only those by public tokens, by the run at the top.
    of_tree: LimiterByKey<Uuid>,
}

/// Room for one stream, released when dropped.
pub(super) struct Place {
    _of_tenant: Permit,
    _of_tree: Option<Permit>,
}

impl Room {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            of_tenant: LimiterByKey::new(options.tenant_streams),
            of_tree: LimiterByKey::new(options.public_run_streams),
        }
    }

    /// Room for a stream of this tenant; by a public token, the run at the top of its tree is named.
    ///
    /// # Errors
    /// `too-many-requests`.
    pub(super) fn take(&self, tenant_id: Uuid, public_root_id: Option<Uuid>) -> Result<Place> {
        let of_tree = public_root_id.map(|root_id| self.take_of_tree(root_id));
        let of_tree = of_tree.transpose()?;
        let of_tenant = self.of_tenant.try_acquire(tenant_id).ok_or_else(|| {
            refused(format!(
                "The tenant has {} event streams open on this server, which is the limit. Close some. \
                 GET /v1/changes/stream tells of many runs in one stream.",
                self.of_tenant.permits()
            ))
        })?;
        Ok(Place {
            _of_tenant: of_tenant,
            _of_tree: of_tree,
        })
    }

    fn take_of_tree(&self, root_id: Uuid) -> Result<Permit> {
        self.of_tree.try_acquire(root_id).ok_or_else(|| {
            refused(format!(
                "Public tokens have {} streams of this run and its tree of runs open, which is the limit. Close \
                 some, or follow the run with a bearer token.",
                self.of_tree.permits()
            ))
        })
    }
}

fn refused(message: String) -> Error {
    Error::new(Code::TooManyRequests, message)
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
        for _ in 0..3 {
            assert!(room.take(id(1), Some(id(10))).is_err());
        }
        assert!(room.take(id(2), Some(id(10))).is_ok());
        drop(held);
        assert!(room.take(id(1), Some(id(10))).is_ok());
    }
}
