//! Synchronizes one tenant's store with PostgreSQL: the store itself, the marked objects, and every
//! other difference.
//!
//! Not here: when that happens (`reconciler`, `report`).

use super::compare::{self, Compared, Progress};
use super::error::Fault;
use super::state::SyncState;
use super::stores;
use super::write::{self, Changed};
use crate::store::authz;
use uuid::Uuid;

/// Rounds of a reconcile. Each but the last one puts right what it found; more than a few come up
/// only where very much differs.
const ROUNDS: usize = 1000;

/// Unapplied objects that are looked up at once.
const PAGE: u16 = 100;

/// Brings a tenant's store wholly in step. Gives the id of the store that is now as Postgres wants.
pub(super) fn reconcile(
    inner: &SyncState,
    tenant_id: Uuid,
    progress: &mut dyn FnMut(Progress),
    each: &mut dyn FnMut(&Changed),
) -> Result<String, Fault> {
    let ensured = stores::ensure(inner, tenant_id)?;
    if ensured.model_version > inner.model.version() {
        slog::info!(inner.log, "The tenant's authorization model has version {}, newer than this program's {}: it stays", ensured.model_version, inner.model.version();
            "tenantId" => %tenant_id);
    }
    apply_unapplied(inner, tenant_id, each)?;
    for _ in 0..ROUNDS {
        let Compared { suspects, is_whole } =
            compare::suspects(inner, tenant_id, &ensured, progress)?;
        for object in &suspects {
            inner.check_stop()?;
            let changed =
                write::apply(inner, tenant_id, object, true, write::background_deadline())?;
            say_removed(inner, tenant_id, &changed);
            each(&changed);
        }
        if is_whole {
            break;
        }
    }
    let tenant_store = authz::tenant_store(&mut inner.store.session()?, tenant_id)?;
    if tenant_store.is_none_or(|tenant_store| tenant_store.store_id != ensured.pinned.store_id) {
        return Err(Fault::Storeless);
    }
    if ensured.is_new {
        log_admin(inner, tenant_id, &ensured)?;
    }
    Ok(ensured.pinned.store_id)
}

/// Applies what is marked and was not applied.
fn apply_unapplied(
    inner: &SyncState,
    tenant_id: Uuid,
    each: &mut dyn FnMut(&Changed),
) -> Result<(), Fault> {
    let mut after = (tenant_id, String::new());
    loop {
        let found = authz::unapplied(&mut inner.store.session()?, &after, i64::from(PAGE))?;
        let ours: Vec<_> = found
            .into_iter()
            .take_while(|(of, _)| *of == tenant_id)
            .collect();
        for (_, object) in &ours {
            inner.check_stop()?;
            each(&write::apply(
                inner,
                tenant_id,
                object,
                false,
                write::background_deadline(),
            )?);
        }
        match ours.last() {
            Some(last) if ours.len() == usize::from(PAGE) => after = last.clone(),
            _ => return Ok(()),
        }
    }
}

/// Logs each tuple that was removed because Postgres does not have it.
fn say_removed(inner: &SyncState, tenant_id: Uuid, changed: &Changed) {
    for tuple in changed.removed.iter().filter(|_| changed.was_applied) {
        slog::warn!(inner.log, "A permission that Postgres does not have was removed from the authorization server";
            "tenantId" => %tenant_id, "user" => &tuple.user, "relation" => &tuple.relation, "object" => &tuple.object);
    }
}

/// The line that section 1.2 asks for. A seeded tenant's names the seed user or nobody: the store that takes a lost one's
/// place is made for the admins of now, and the seed user may not be one of them any more.
fn log_admin(inner: &SyncState, tenant_id: Uuid, ensured: &stores::Ensured) -> Result<(), Fault> {
    let seeded = inner.seed.filter(|(seeded, _)| *seeded == tenant_id);
    let only = seeded.map(|(_, user_id)| user_id);
    let admin = authz::first_admin(&mut inner.store.session()?, tenant_id, only)?;
    if let Some(user_id) = admin {
        slog::info!(inner.log, "user:{} is admin@tenant via FGA bootstrap", user_id;
            "tenantId" => %tenant_id, "userId" => %user_id, "storeId" => &ensured.pinned.store_id);
    }
    Ok(())
}
