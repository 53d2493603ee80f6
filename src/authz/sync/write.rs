//! Writes one object's tuples to OpenFGA, as PostgreSQL has them.
//!
//! Guarantees: an object is written under the lock on its row, so of two writers the later one sees
//! the result of the earlier one. Removals go first. An object counts as applied only when all of
//! it was written. The store is the one that PostgreSQL names, which cannot change meanwhile. An
//! object that no longer exists loses its row with its last tuple.
//!
//! Left out: an object of more than 100,000 tuples, which is refused.

use super::desired_tuples;
use super::error::{self, Fault};
use super::state::SyncState;
use super::stores;
use crate::authz::fga::{Failure, Pinned, Tuple};
use crate::error::{Code, Error};
use crate::store::Tx;
use crate::store::authz::{self, Held, Hold};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// For one object where no request waits: it may have very many tuples. Shorter than the database
/// lets a transaction be idle.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(45);

/// What was changed of an object.
#[derive(Debug, Default)]
pub(super) struct Changed {
    pub(super) removed: Vec<Tuple>,
    pub(super) added: Vec<Tuple>,
    /// It was not marked: the store differed by itself.
    pub(super) was_applied: bool,
}

/// The deadline of a write for which no request waits.
pub(super) fn background_deadline() -> Instant {
    Instant::now() + BACKGROUND_TIMEOUT
}

/// Writes one object, if it is not applied or `always`. All of it ends by the deadline, except waits
/// for the database's pool.
pub(super) fn apply(
    inner: &SyncState,
    tenant_id: Uuid,
    object: &str,
    always: bool,
    deadline: Instant,
) -> Result<Changed, Fault> {
    let permit = inner.applies.acquire(deadline);
    let _permit = permit.ok_or_else(|| no_room(inner))?;
    if desired_tuples::Object::parse(object).is_none() {
        // No row of ours has it, and nobody else writes it.
        let tenant_store = authz::tenant_store(&mut inner.store.session()?, tenant_id)?;
        let tenant_store = tenant_store.ok_or(Fault::Storeless)?;
        let on = stores::pinned(&tenant_store);
        let is_newer = tenant_store.model_version > inner.model.version();
        return write(inner, &on, is_newer, object, &BTreeSet::new(), deadline);
    }
    inner.store.transact(|tx| {
        let left = deadline.saturating_duration_since(Instant::now());
        let held = match authz::hold(tx, tenant_id, object, always, left)? {
            Hold::Storeless => return Ok(Err(Fault::Storeless)),
            Hold::Unmarked => return Ok(Ok(Changed::default())),
            Hold::Held(held) => held,
        };
        let was_applied = held.applied >= held.desired;
        if was_applied && !always {
            return Ok(Ok(Changed::default()));
        }
        match apply_held(inner, tx, tenant_id, object, &held, deadline) {
            Err(Fault::Own(error)) => Err(error),
            Err(fault) => Ok(Err(fault)),
            Ok(changed) => Ok(Ok(Changed {
                was_applied,
                ..changed
            })),
        }
    })?
}

/// Why there is no room for a write: a server that hangs, or many changes at once.
fn no_room(inner: &SyncState) -> Error {
    let silent_for = inner.client.silent_for();
    if silent_for >= inner.timeout / 2 {
        return error::silent(silent_for);
    }
    Error::new(
        Code::Overloaded,
        "Too many changes of permissions wait to be applied. Try again shortly.",
    )
}

fn apply_held(
    inner: &SyncState,
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    object: &str,
    held: &Held,
    deadline: Instant,
) -> Result<Changed, Fault> {
    let on = Pinned {
        store_id: held.store_id.clone(),
        model_id: held.model_id.clone(),
    };
    let desired = desired_tuples::tuples_of(tx, tenant_id, object)?;
    let is_newer = held.model_version > inner.model.version();
    let changed = write(inner, &on, is_newer, object, &desired, deadline)?;
    if desired.is_empty() {
        // It is gone. Who marks it once more makes a row anew, after this transaction.
        authz::remove_object(tx, tenant_id, object)?;
    } else if held.applied < held.desired {
        authz::set_applied(tx, tenant_id, object)?;
    }
    Ok(changed)
}

fn write(
    inner: &SyncState,
    on: &Pinned,
    is_newer: bool,
    object: &str,
    desired: &BTreeSet<Tuple>,
    deadline: Instant,
) -> Result<Changed, Fault> {
    let client = inner.client.until(deadline);
    let stored = client.read_object(&on.store_id, object)?;
    // A store that was lost reads as an empty one and takes what is written.
    if stored.is_empty() && !client.store_exists(&on.store_id)? {
        return Err(Failure::StoreUnknown.into());
    }
    let extra = stored.difference(desired);
    // What a newer program stores is not ours to judge.
    let removed: Vec<_> = extra
        .filter(|tuple| !is_newer || desired_tuples::is_known(tuple))
        .cloned()
        .collect();
    let added: Vec<_> = desired.difference(&stored).cloned().collect();
    client.write(on, &removed, &added)?;
    Ok(Changed {
        removed,
        added,
        was_applied: true,
    })
}
