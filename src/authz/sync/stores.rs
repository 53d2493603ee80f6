//! The life cycle of a tenant's store: created once, found again, repaired, its model upgraded.
//!
//! Guarantees: each tenant has one store, named `tenant-<tenant_id>`, whatever starts concurrently,
//! crashes in between or is lost. A model is only ever replaced by a newer one, even if its store
//! is lost. Creating or changing a store holds the lock on the tenant's row in PostgreSQL, so two
//! processes never do it at once.
//!
//! Not here: the tuples in the store (`tenant`, `write`).

use super::error::Fault;
use super::state::SyncState;
use crate::authz::fga::{self, Failure, Pinned};
use crate::store::authz::{self, TenantStore};
use uuid::Uuid;

/// A tenant's store as it stands.
#[derive(Debug)]
pub(super) struct Ensured {
    pub(super) pinned: Pinned,
    pub(super) model_version: i32,
    /// It was made or taken over just now, and holds nothing of ours yet.
    pub(super) is_new: bool,
}

/// The name of a tenant's store (section 1.2).
pub(super) fn name(tenant_id: Uuid) -> String {
    format!("tenant-{tenant_id}")
}

/// Finds the tenant's store, or makes it, and gives it its model.
pub(super) fn ensure(inner: &SyncState, tenant_id: Uuid) -> Result<Ensured, Fault> {
    let tenant_store = authz::tenant_store(&mut inner.store.session()?, tenant_id)?;
    if let Some(tenant_store) = tenant_store {
        let pinned = pinned(&tenant_store);
        let named = inner.client.stores_named(&name(tenant_id))?;
        let alone = named == [pinned.store_id.clone()];
        if alone && is_right(inner, &tenant_store, &pinned)? {
            return Ok(Ensured {
                pinned,
                model_version: tenant_store.model_version,
                is_new: false,
            });
        }
    }
    inner.store.transact(|tx| {
        if !authz::lock_tenant(tx, tenant_id)? {
            return Ok(Err(Fault::Gone));
        }
        let before = authz::tenant_store(tx, tenant_id)?;
        let after = match tenant_store_for(inner, tenant_id, before.as_ref()) {
            Ok(after) => after,
            Err(fault) => return Ok(Err(fault)),
        };
        if before.as_ref() != Some(&after) {
            authz::put_tenant_store(tx, tenant_id, &after, inner.clock.now())?;
        }
        Ok(Ok(Ensured {
            pinned: pinned(&after),
            model_version: after.model_version,
            is_new: before.is_none_or(|before| before.store_id != after.store_id),
        }))
    })?
}

pub(super) fn pinned(tenant_store: &TenantStore) -> Pinned {
    Pinned {
        store_id: tenant_store.store_id.clone(),
        model_id: tenant_store.model_id.clone(),
    }
}

/// Whether the model that the tenant is pinned to is there, and the one that it should have.
fn is_right(
    inner: &SyncState,
    tenant_store: &TenantStore,
    pinned: &Pinned,
) -> Result<bool, Failure> {
    let ours = &inner.model;
    let is_wanted = tenant_store.model_version > ours.version()
        || tenant_store.model_version == ours.version()
            && tenant_store.model_digest == ours.digest();
    Ok(is_wanted && inner.client.model_exists(pinned)?)
}

/// What the tenant's store is to be from now on. The tenant is locked.
fn tenant_store_for(
    inner: &SyncState,
    tenant_id: Uuid,
    before: Option<&TenantStore>,
) -> Result<TenantStore, Fault> {
    let ours = &inner.model;
    if let Some(newer) = before.filter(|before| before.model_version > ours.version()) {
        // An older model in another store would take away what the newer one gives.
        let pinned = pinned(newer);
        if !inner.client.store_exists(&pinned.store_id)? || !inner.client.model_exists(&pinned)? {
            return Err(Fault::NewerModelLost {
                lost: newer.model_version,
                ours: ours.version(),
            });
        }
    }
    let store_id = find(inner, tenant_id, before)?;
    let known = before.filter(|before| before.store_id == store_id);
    if let Some(tenant_store) = known {
        if is_right(inner, tenant_store, &pinned(tenant_store))? {
            return Ok(tenant_store.clone());
        }
        if tenant_store.model_version < ours.version() {
            slog::info!(inner.log, "The authorization model goes from version {} to {}", tenant_store.model_version, ours.version();
                "tenantId" => %tenant_id, "storeId" => &store_id);
        } else {
            slog::warn!(inner.log, "The authorization model is written again: version {} was lost or differs", ours.version();
                "tenantId" => %tenant_id, "storeId" => &store_id);
        }
    }
    Ok(TenantStore {
        model_id: inner.client.write_model(&store_id, &ours.json)?,
        store_id,
        model_version: ours.version(),
        model_digest: ours.digest(),
    })
}

/// The store's id: the one we know if it is there, else the oldest of the name, else a new one.
/// Others of the name are what a crash left; those without a tuple are removed.
fn find(inner: &SyncState, tenant_id: Uuid, before: Option<&TenantStore>) -> Result<String, Fault> {
    let name = name(tenant_id);
    let mut named = inner.client.stores_named(&name)?;
    let known = before.map(|before| &before.store_id);
    if let Some(lost) = known.filter(|known| !named.contains(known)) {
        slog::warn!(inner.log, "The authorization server has lost the tenant's store; it gets another one";
            "tenantId" => %tenant_id, "storeId" => lost);
    }
    if named.is_empty() {
        inner.client.create_store(&name)?;
        // One that was asked for in vain may have come after all, and be the older one.
        named = inner.client.stores_named(&name)?;
    }
    let chosen = known
        .filter(|known| named.contains(known))
        .or(named.first())
        .ok_or(Fault::Fga(Failure::StoreUnknown))?
        .clone();
    for other in named.iter().filter(|other| **other != chosen) {
        remove_empty(inner, tenant_id, other)?;
    }
    Ok(chosen)
}

fn remove_empty(inner: &SyncState, tenant_id: Uuid, store_id: &str) -> Result<(), fga::Failure> {
    let mut is_empty = true;
    inner.client.read_all(store_id, &mut |_| {
        is_empty = false;
        false
    })?;
    if is_empty {
        slog::warn!(inner.log, "A second, empty store of the tenant was found and is removed"; "tenantId" => %tenant_id, "storeId" => store_id);
        return inner.client.delete_store(store_id);
    }
    slog::warn!(inner.log, "The authorization server has a second store of the tenant's name, with permissions in it. It is not used; remove it";
        "tenantId" => %tenant_id, "storeId" => store_id);
    Ok(())
}
