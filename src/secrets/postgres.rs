//! The backend `postgres`: encrypted rows in the database (`envelope`), read through a cache.
//!
//! Guarantees: no database connection is held during a call of the key-management service. Of two
//! concurrent puts each becomes a version, or one fails and says so.

use super::cache::{Cache, Key};
use super::envelope::{Keys, RowIdentity, Unopened};
use super::kms::{DEADLINE, Kind, KmsFailure};
use super::{OVERLAP, Rewrapped, SecretRef, Unreadable};
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::outbound::{Outbound, Peer};
use crate::proof::{Admin, May};
use crate::secret::Secret;
use crate::store::secrets::{self, Described, ListRequest, Located, Sealed, Stored};
use crate::store::{Store, tenants::Tenant};
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

/// How often a put starts again after a concurrent one.
const TRIES: usize = 5;

/// Versions read with one statement.
const BATCH: i64 = 100;

/// The backend. Clones share the cache.
#[derive(Clone)]
pub(super) struct Postgres {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) keys: Keys,
    pub(super) cache: Arc<Cache<Secret>>,
    /// Previous values that recently failed to open.
    pub(super) failed: Arc<Cache<()>>,
    pub(super) outbound: Outbound,
    pub(super) log: slog::Logger,
}

impl Postgres {
    /// Wipes expired values.
    pub(super) fn sweep(&self) {
        self.cache.sweep();
        self.failed.sweep();
    }

    fn forget(&self, tenant_id: Uuid, at: &SecretRef) {
        self.cache.forget(tenant_id, at);
        self.failed.forget(tenant_id, at);
    }

    /// The present version, and the previous one.
    fn read(&self, tenant_id: Uuid, at: &SecretRef) -> Result<Vec<Sealed>, Unreadable> {
        let read = self
            .store
            .session()
            .and_then(|mut session| secrets::read(&mut session, tenant_id, at))
            .map_err(|error| Unreadable::DatabaseAway(error.message().to_owned()))?;
        versions(at, read)
    }

    fn open(
        &self,
        tenant_id: Uuid,
        at: &SecretRef,
        sealed: &Sealed,
        within: Duration,
    ) -> Result<Secret, Unreadable> {
        let key = Key::of(tenant_id, at, sealed);
        if let Some(value) = self.cache.get(&key) {
            return Ok(value);
        }
        let identity = RowIdentity::of(tenant_id, at, sealed);
        let opened = self.keys.open(&identity, sealed, within);
        match &opened {
            Ok(value) => self.cache.put(key, value),
            Err(unreadable) => {
                crate::warn_unless!(self.outbound.is_away(Peer::KeyManagement), self.log, "A secret cannot be read"; "tenantId" => %tenant_id,
                    "environment" => &at.environment, "secretName" => &at.name,
                    "version" => sealed.version, crate::log::ErrorValue(unreadable));
            }
        }
        opened
    }

    pub(super) fn resolve(&self, tenant_id: Uuid, at: &SecretRef) -> Result<Secret, Unreadable> {
        let versions = self.read(tenant_id, at)?;
        let stands = versions.first().ok_or(Unreadable::NotFound)?;
        self.open(tenant_id, at, stands, DEADLINE)
    }

    /// Opens the previous value by `until`. A recent failure is not retried immediately.
    fn open_beside(
        &self,
        tenant_id: Uuid,
        at: &SecretRef,
        sealed: &Sealed,
        until: Instant,
    ) -> Option<Secret> {
        let key = Key::of(tenant_id, at, sealed);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || self.failed.get(&key).is_some() {
            return None;
        }
        let opened = self.open(tenant_id, at, sealed, left);
        if opened.is_err() {
            self.failed.put(key, &());
        }
        opened.ok()
    }

    pub(super) fn resolve_beside(
        &self,
        tenant_id: Uuid,
        at: &SecretRef,
        until: Instant,
    ) -> Result<Option<Secret>, Unreadable> {
        let versions = match self.read(tenant_id, at) {
            Err(away @ Unreadable::DatabaseAway(_)) => return Err(away),
            read => read.unwrap_or_default(),
        };
        let stands = versions.first();
        Ok(stands.and_then(|stands| self.open_beside(tenant_id, at, stands, until)))
    }

    pub(super) fn exists(&self, tenant_id: Uuid, at: &SecretRef) -> Result<bool, Unreadable> {
        match self.read(tenant_id, at) {
            Ok(_) => Ok(true),
            Err(Unreadable::NotFound) => Ok(false),
            Err(unreadable) => Err(unreadable),
        }
    }

    pub(super) fn signing(
        &self,
        tenant_id: Uuid,
        at: &SecretRef,
        read: Option<Stored>,
        until: Instant,
    ) -> Result<Vec<Secret>, Unreadable> {
        let versions = match read {
            Some(read) => versions(at, read)?,
            None => self.read(tenant_id, at)?,
        };
        let stands = versions.first().ok_or(Unreadable::NotFound)?;
        let mut signing = vec![self.open(tenant_id, at, stands, DEADLINE)?];
        if let Some(before) = versions.get(1)
            && self.clock.now() - stands.created_at < OVERLAP
        {
            // A receiver that knows the present secret needs no other.
            signing.extend(self.open_beside(tenant_id, at, before, until));
        }
        Ok(signing)
    }

    pub(super) fn find(
        &self,
        may: &impl May<Admin, Tenant>,
        at: &SecretRef,
    ) -> Result<Option<Described>> {
        secrets::find(&mut self.store.session()?, may, at)
    }

    pub(super) fn list(
        &self,
        may: &impl May<Admin, Tenant>,
        page: &ListRequest,
    ) -> Result<Vec<Described>> {
        secrets::list(&mut self.store.session()?, may, page)
    }

    /// Stores a value. The flag is true if the name is new.
    pub(super) fn put(
        &self,
        may: &impl May<Admin, Tenant>,
        author: Uuid,
        at: &SecretRef,
        value: &Secret,
    ) -> Result<(Described, bool)> {
        for _ in 0..TRIES {
            let before = self.find(may, at)?.map(|before| before.version);
            let identity = RowIdentity {
                tenant_id: may.tenant_id(),
                at,
                version: before.unwrap_or_default() + 1,
                created_by: author,
                created_at: whole_microseconds(self.clock.now()),
            };
            let sealed = self.keys.seal(&identity, value).map_err(unavailable)?;
            let put = self.store.transact(|tx| {
                if !secrets::put(tx, may, at, before, &sealed)? {
                    return Ok(None);
                }
                secrets::find(tx, may, at)
            })?;
            if let Some(described) = put {
                self.forget(may.tenant_id(), at);
                return Ok((described, before.is_none()));
            }
        }
        Err(Error::new(
            Code::Conflict,
            format!("The secret {at} is being put by others at the same time. Try again."),
        ))
    }

    pub(super) fn delete(&self, may: &impl May<Admin, Tenant>, at: &SecretRef) -> Result<bool> {
        let deleted = secrets::delete(&mut self.store.session()?, may, at)?;
        self.forget(may.tenant_id(), at);
        Ok(deleted)
    }

    /// Wraps anew what the present key has not wrapped. A dry run reads the other versions too.
    pub(super) fn rewrap(
        &self,
        dry_run: bool,
        mut progress: impl FnMut(&Rewrapped),
    ) -> Result<Rewrapped> {
        let mut rewrapped = Rewrapped::default();
        let mut last: Option<Located> = None;
        loop {
            let batch = secrets::versions_after(&mut self.store.session()?, last.as_ref(), BATCH)?;
            if batch.is_empty() {
                return Ok(rewrapped);
            }
            for placed in &batch {
                rewrapped.versions += 1;
                let key = &placed.sealed.wrapping_key;
                let is_current = self.keys.kms.is_current(key).map_err(unavailable)?;
                if is_current && !dry_run {
                    rewrapped.current += 1;
                } else {
                    self.rewrap_one(placed, is_current, dry_run, &mut rewrapped)?;
                }
                progress(&rewrapped);
            }
            last = batch.into_iter().last();
        }
    }

    fn rewrap_one(
        &self,
        placed: &Located,
        is_current: bool,
        dry_run: bool,
        rewrapped: &mut Rewrapped,
    ) -> Result<()> {
        let identity = RowIdentity::of(placed.tenant_id, &placed.at, &placed.sealed);
        let wrap = match self.keys.rewrap(&identity, &placed.sealed) {
            Ok(wrap) => wrap,
            // A failing service fails for every version: stop here.
            Err(Unopened::Kms(failure)) if !is_of_the_row(failure.kind) => {
                return Err(unavailable(failure));
            }
            Err(Unopened::Row(message) | Unopened::Kms(KmsFailure { message, .. })) => {
                let fault = format!("tenant {}: {message}", placed.tenant_id);
                rewrapped.unreadable.push(fault);
                return Ok(());
            }
        };
        if !dry_run {
            let wrapped = wrap().map_err(unavailable)?;
            let now = self.clock.now();
            // The row was replaced or deleted meanwhile.
            secrets::wrap(
                &mut self.store.session()?,
                placed,
                &wrapped.key,
                &wrapped.bytes,
                now,
            )?;
        }
        match is_current {
            true => rewrapped.current += 1,
            false => rewrapped.rewrapped += 1,
        }
        Ok(())
    }
}

/// The versions of a secret, the present one first.
fn versions(at: &SecretRef, stored: Stored) -> Result<Vec<Sealed>, Unreadable> {
    let stands = stored.stands.ok_or(Unreadable::NotFound)?;
    match stored.versions.first() {
        Some(newest) if newest.version == stands => Ok(stored.versions),
        _ => Err(Unreadable::Altered(format!(
            "The secret {at} cannot be read: its version {stands} stands, but the rows of its \
             versions were removed, moved or altered."
        ))),
    }
}

/// Whether other rows may open although this one did not.
fn is_of_the_row(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::NotFound | Kind::KeyDisabled | Kind::Altered | Kind::Invalid
    )
}

/// A time with PostgreSQL's precision.
fn whole_microseconds(at: OffsetDateTime) -> OffsetDateTime {
    at.replace_microsecond(at.microsecond()).unwrap_or(at)
}

fn unavailable(failure: KmsFailure) -> Error {
    Error::new(Code::SecretsUnavailable, failure.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_comes_back_from_the_database_as_it_was_sealed() {
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_700_000_000_123_456_789).unwrap();
        assert_eq!(whole_microseconds(at).nanosecond(), 123_456_000);
    }
}
