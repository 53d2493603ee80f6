//! Endpoints at which an attempt is under way that began where its event was emitted: one at each at most, in this
//! process, so that however many emit at once the others wait for a claim, which counts what is in flight everywhere.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

#[derive(Clone, Default)]
pub(super) struct AtOnce(Arc<Mutex<HashSet<Uuid>>>);

/// The one attempt at an endpoint; until it is dropped there is no other.
pub(super) struct Only {
    endpoint_id: Uuid,
    all: AtOnce,
}

impl AtOnce {
    fn endpoints(&self) -> MutexGuard<'_, HashSet<Uuid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where there is one now: as many as threads deliver, at most.
    pub(super) fn all(&self) -> Vec<Uuid> {
        self.endpoints().iter().copied().collect()
    }

    /// None: there is one by now.
    pub(super) fn begin(&self, endpoint_id: Uuid) -> Option<Only> {
        let is_first = self.endpoints().insert(endpoint_id);
        is_first.then(|| Only {
            endpoint_id,
            all: self.clone(),
        })
    }
}

impl Drop for Only {
    fn drop(&mut self) {
        self.all.endpoints().remove(&self.endpoint_id);
    }
}
