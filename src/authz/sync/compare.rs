//! Compares a tenant's store with PostgreSQL, whatever their sizes, in bounded memory.
//!
//! Both sides are read once, in any order. Each tuple's hash is added to a bucket of its object for
//! one side, and subtracted for the other. Equal sides leave only zeros, and the comparison ends.
//! Otherwise both sides are read again for the names of the objects in the other buckets. A
//! superfluous name costs one look at its object. A difference is missed with probability 2^-64.
//!
//! Not here: what is done about a difference (`tenant`), and how it is reported (`report`).

use super::desired_tuples;
use super::error::Fault;
use super::state::SyncState;
use super::stores::Ensured;
use crate::authz::fga::Tuple;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use uuid::Uuid;

/// 512 KiB of sums.
const BUCKETS: usize = 1 << 16;

/// Objects that are named in one comparison at most.
const MAX_SUSPECTS: usize = 50_000;

/// How far a comparison has come: tuples read of both sides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Of the authorization server.
    pub stored: u64,
    /// Of Postgres.
    pub desired: u64,
}

/// What a comparison found.
pub(super) struct Compared {
    /// Objects that may differ; all that differ are among them if the list is whole.
    pub(super) suspects: BTreeSet<String>,
    pub(super) is_whole: bool,
}

struct Sketch {
    sums: Vec<u64>,
    hash: RandomState,
}

impl Sketch {
    fn new() -> Self {
        Self {
            sums: vec![0; BUCKETS],
            hash: RandomState::new(),
        }
    }

    fn bucket(&self, object: &str) -> usize {
        let hash = self.hash.hash_one(object) & (BUCKETS as u64 - 1);
        usize::try_from(hash).unwrap_or(0)
    }

    fn sum(&mut self, tuple: &Tuple) -> (&mut u64, u64) {
        let hash = self
            .hash
            .hash_one((&tuple.user, &tuple.relation, &tuple.object));
        let bucket = self.bucket(&tuple.object);
        (&mut self.sums[bucket], hash)
    }

    fn add(&mut self, tuple: &Tuple) {
        let (sum, hash) = self.sum(tuple);
        *sum = sum.wrapping_add(hash);
    }

    fn take(&mut self, tuple: &Tuple) {
        let (sum, hash) = self.sum(tuple);
        *sum = sum.wrapping_sub(hash);
    }

    fn differs(&self, object: &str) -> bool {
        self.sums[self.bucket(object)] != 0
    }

    fn is_even(&self) -> bool {
        self.sums.iter().all(|sum| *sum == 0)
    }
}

/// The objects of the tenant's store that may differ from what Postgres asks for.
pub(super) fn suspects(
    inner: &SyncState,
    tenant_id: Uuid,
    ensured: &Ensured,
    progress: &mut dyn FnMut(Progress),
) -> Result<Compared, Fault> {
    let mut sketch = Sketch::new();
    let mut so_far = Progress::default();
    each_stored(inner, ensured, |tuple| {
        sketch.add(tuple);
        so_far.stored += 1;
        progress(so_far);
    })?;
    each_desired(inner, tenant_id, |tuple| {
        sketch.take(tuple);
        so_far.desired += 1;
        progress(so_far);
    })?;
    let mut found = Compared {
        suspects: BTreeSet::new(),
        is_whole: true,
    };
    if sketch.is_even() {
        return Ok(found);
    }
    // What is to be removed comes first.
    each_stored(inner, ensured, |tuple| found.note(&sketch, &tuple.object))?;
    each_desired(inner, tenant_id, |tuple| {
        found.note(&sketch, &tuple.object);
    })?;
    Ok(found)
}

impl Compared {
    fn note(&mut self, sketch: &Sketch, object: &str) {
        if !sketch.differs(object) || self.suspects.contains(object) {
            return;
        }
        if self.suspects.len() < MAX_SUSPECTS {
            self.suspects.insert(object.to_owned());
        } else {
            self.is_whole = false;
        }
    }
}

fn each_stored(
    inner: &SyncState,
    ensured: &Ensured,
    mut each: impl FnMut(&Tuple),
) -> Result<(), Fault> {
    let is_newer = ensured.model_version > inner.model.version();
    let store_id = &ensured.pinned.store_id;
    inner.client.read_all(store_id, &mut |tuple| {
        // What a newer program stores is not ours to judge.
        if !is_newer || desired_tuples::is_known(&tuple) {
            each(&tuple);
        }
        !inner.is_stopped()
    })?;
    Ok(inner.check_stop()?)
}

fn each_desired(
    inner: &SyncState,
    tenant_id: Uuid,
    mut each: impl FnMut(&Tuple),
) -> Result<(), Fault> {
    desired_tuples::each_tuple(&mut inner.store.session()?, tenant_id, |tuple| {
        each(&tuple);
        inner.check_stop()
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(user: u32, object: u32) -> Tuple {
        Tuple {
            user: format!("user:{user}"),
            relation: "viewer".to_owned(),
            object: format!("project:{object}"),
        }
    }

    #[test]
    fn equal_sides_in_any_order_leave_nothing_and_one_that_differs_is_named() {
        let mut sketch = Sketch::new();
        for number in 0..5000 {
            sketch.add(&tuple(number, number % 700));
        }
        for number in (0..5000).rev() {
            sketch.take(&tuple(number, number % 700));
        }
        assert!(sketch.is_even());
        sketch.add(&tuple(1, 3));
        sketch.take(&tuple(2, 3));
        assert!(!sketch.is_even() && sketch.differs("project:3"));
        sketch.take(&tuple(1, 3));
        sketch.add(&tuple(2, 3));
        assert!(sketch.is_even());
    }
}
