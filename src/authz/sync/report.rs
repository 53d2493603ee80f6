//! For operators: how a tenant's store differs from PostgreSQL, and its repair.
//!
//! Guarantees: a difference is reported only if it was seen with the object locked, so a change in
//! progress is none. A report changes nothing. The list is bounded; the count is complete.

use super::compare;
pub use super::compare::Progress;
use super::desired_tuples;
use super::error::Fault;
use super::permissions::Permissions;
use super::state::SyncState;
use super::stores::{self, Ensured};
use super::tenant;
use crate::authz::fga::Tuple;
use crate::error::{Error, Result};
use crate::store::authz;
use serde::Serialize;
use uuid::Uuid;

/// Tuples that differ, of one kind.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tuples {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Tuple>,
}

/// How a tenant's store stands to Postgres.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The tenant.
    pub tenant_id: Uuid,
    /// Its store; none: it has none, or the server has lost it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_id: Option<String>,
    /// The version of its model; none: the server has no such model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_version: Option<i32>,
    /// Asked for and not there.
    pub missing: Tuples,
    /// There and not asked for.
    pub extra: Tuples,
    /// There were more differences than one look takes in.
    pub more: bool,
}

impl Report {
    /// Nothing differs.
    pub fn is_equal(&self) -> bool {
        self.store_id.is_some()
            && self.model_version.is_some()
            && self.missing.count + self.extra.count == 0
            && !self.more
    }
}

impl Tuples {
    fn add(&mut self, tuple: &Tuple, limit: usize) {
        self.count += 1;
        if self.first.len() < limit {
            self.first.push(tuple.clone());
        }
    }
}

impl Permissions {
    /// Every tenant, some at a time.
    pub fn tenants(&self, after: Uuid, limit: u16) -> Result<Vec<Uuid>> {
        authz::tenants(&mut self.inner().store.session()?, after, i64::from(limit))
    }

    /// Compares a tenant's store with Postgres, lists at most `limit` tuples of each kind, and
    /// changes nothing.
    ///
    /// # Errors
    /// `authorization-unavailable`, `database-unavailable`, `overloaded`.
    pub fn verify(
        &self,
        tenant_id: Uuid,
        limit: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report> {
        verify(self.inner(), tenant_id, limit, progress).map_err(Error::from)
    }

    /// Brings a tenant's store in step with Postgres: what was missing was added, what was extra
    /// removed.
    ///
    /// # Errors
    /// `authorization-unavailable`, `database-unavailable`, `overloaded`.
    pub fn repair(
        &self,
        tenant_id: Uuid,
        limit: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report> {
        let mut report = Report {
            tenant_id,
            ..Report::default()
        };
        let store_id = tenant::reconcile(self.inner(), tenant_id, progress, &mut |changed| {
            for tuple in &changed.added {
                report.missing.add(tuple, limit);
            }
            for tuple in &changed.removed {
                report.extra.add(tuple, limit);
            }
        })?;
        let tenant_store = authz::tenant_store(&mut self.inner().store.session()?, tenant_id)?;
        report.store_id = Some(store_id);
        report.model_version = tenant_store.map(|tenant_store| tenant_store.model_version);
        Ok(report)
    }
}

fn verify(
    inner: &SyncState,
    tenant_id: Uuid,
    limit: usize,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, Fault> {
    let mut report = Report {
        tenant_id,
        ..Report::default()
    };
    let tenant_store = authz::tenant_store(&mut inner.store.session()?, tenant_id)?;
    let tenant_store = match tenant_store {
        Some(tenant_store) if inner.client.store_exists(&tenant_store.store_id)? => tenant_store,
        _ => {
            desired_tuples::each_tuple(&mut inner.store.session()?, tenant_id, |tuple| {
                report.missing.add(&tuple, limit);
                Ok(())
            })?;
            return Ok(report);
        }
    };
    let ensured = Ensured {
        pinned: stores::pinned(&tenant_store),
        model_version: tenant_store.model_version,
        is_new: false,
    };
    if inner.client.model_exists(&ensured.pinned)? {
        report.model_version = Some(tenant_store.model_version);
    }
    let compared = compare::suspects(inner, tenant_id, &ensured, progress)?;
    report.more = !compared.is_whole;
    for object in compared.suspects {
        look(inner, tenant_id, &ensured, &object, limit, &mut report)?;
    }
    report.store_id = Some(ensured.pinned.store_id);
    Ok(report)
}

/// How one object differs, under its lock.
fn look(
    inner: &SyncState,
    tenant_id: Uuid,
    ensured: &Ensured,
    object: &str,
    limit: usize,
    report: &mut Report,
) -> Result<(), Fault> {
    let is_newer = ensured.model_version > inner.model.version();
    let (stored, desired) = inner.store.transact(|tx| {
        // An object without a row is not written.
        authz::try_hold(tx, tenant_id, object)?;
        let stored = inner.client.read_object(&ensured.pinned.store_id, object);
        let desired = desired_tuples::tuples_of(tx, tenant_id, object)?;
        Ok(stored.map(|stored| (stored, desired)))
    })??;
    for tuple in desired.difference(&stored) {
        report.missing.add(tuple, limit);
    }
    let extra = stored.difference(&desired);
    for tuple in extra.filter(|tuple| !is_newer || desired_tuples::is_known(tuple)) {
        report.extra.add(tuple, limit);
    }
    Ok(())
}
