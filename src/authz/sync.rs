//! Tells OpenFGA what Postgres asks for: one object, or all that differs.
//!
//! Guarantees: an object is told under the lock on its row, so that of two who tell it the later
//! one sees what the earlier one did; removals go first; an object counts as applied only when all
//! of it was written; the store is the one that Postgres names, which cannot change meanwhile. An
//! object that is gone loses its row with its last tuple.
//!
//! Left out: an object of more than 100,000 tuples, which is refused; and what is lost of a store
//! that is still there, which only a comparison sees.

use super::compare::{self, Compared, Progress};
use super::desired;
use super::fga::{Failure, Pinned, Tuple};
use super::permissions::Inner;
use super::stores;
use crate::error::{Code, Error};
use crate::store::Tx;
use crate::store::authz::{self, Held, Hold};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Rounds of a reconcile. Each but the last one puts right what it found; more than a few come up
/// only where very much differs.
const ROUNDS: usize = 1000;

/// Unapplied objects that are looked up at once.
pub(super) const PAGE: u16 = 100;

/// For telling one object where no request waits: an object may have very many tuples. Less than
/// the database lets a transaction rest.
const PATIENCE: Duration = Duration::from_secs(45);

/// How the message of a check without an answer begins (section 1.2).
const PREFIX: &str = "FGA Error: ";

/// Why something could not be told or asked.
#[derive(Debug)]
pub(super) enum Fault {
    /// OpenFGA's part.
    Fga(Failure),
    /// The database's part, or a bound of ours.
    Own(Error),
    /// There is no such tenant.
    Gone,
    /// The tenant has no store, or it was replaced meanwhile.
    Storeless,
    /// The store's model is newer than this program and is not there any more.
    NewerModelLost { lost: i32, ours: i32 },
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Fga(failure)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

impl Fault {
    /// Whether OpenFGA has something else than Postgres says it has.
    pub(super) fn is_lost_store(&self) -> bool {
        matches!(
            self,
            Self::Storeless | Self::Fga(Failure::StoreUnknown | Failure::ModelUnknown)
        )
    }

    /// Whether nothing else will do either at this time.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Fga(Failure::Contended) => false,
            Self::Fga(failure) => failure.is_transient(),
            Self::Own(error) => {
                matches!(error.code(), Code::DatabaseUnavailable | Code::ShuttingDown)
            }
            Self::Gone | Self::Storeless | Self::NewerModelLost { .. } => false,
        }
    }

    /// Whether others were at the same, or had all there is of what it takes.
    pub(super) fn is_contention(&self) -> bool {
        match self {
            Self::Fga(failure) => *failure == Failure::Contended,
            Self::Own(error) => {
                matches!(
                    error.code(),
                    Code::Overloaded | Code::AuthorizationUnavailable
                )
            }
            Self::Gone | Self::Storeless | Self::NewerModelLost { .. } => false,
        }
    }
}

impl From<Fault> for Error {
    /// As section 1.2 has it: a message that begins with `FGA Error:`.
    fn from(fault: Fault) -> Self {
        unavailable(match fault {
            Fault::Own(error) => return error,
            Fault::Fga(failure) => return unavailable(&failure).because(failure),
            Fault::Gone => "The tenant is gone.".to_owned(),
            Fault::Storeless => "The tenant's permissions are not in place yet.".to_owned(),
            Fault::NewerModelLost { lost, ours } => format!(
                "The tenant's model has version {lost}, which the authorization server has lost, and this program has version {ours}. Start the newer program again."
            ),
        })
    }
}

/// The error of a check that got no answer.
#[track_caller]
pub(super) fn unavailable(why: impl std::fmt::Display) -> Error {
    Error::new(Code::AuthorizationUnavailable, format!("{PREFIX}{why}"))
}

/// What [`unavailable`] was given, of its error or another one.
pub(super) fn reason(error: &Error) -> &str {
    let message = error.message();
    message.strip_prefix(PREFIX).unwrap_or(message)
}

/// What was changed of an object.
#[derive(Debug, Default)]
pub(super) struct Changed {
    pub(super) removed: Vec<Tuple>,
    pub(super) added: Vec<Tuple>,
    /// It was not marked: the store differed by itself.
    pub(super) was_applied: bool,
}

/// When who tells an object, and has no request to answer, gives up.
pub(super) fn patience() -> Instant {
    Instant::now() + PATIENCE
}

/// Tells one object, if it is not applied or `always`. All of it, the waits included, ends by the
/// deadline, but for those of the database's pool.
pub(super) fn apply(
    inner: &Inner,
    tenant_id: Uuid,
    object: &str,
    always: bool,
    deadline: Instant,
) -> Result<Changed, Fault> {
    let _permit = inner.applies.take(deadline).ok_or_else(|| {
        Error::new(
            Code::Overloaded,
            "Too many changes of permissions wait to be applied. Try again shortly.",
        )
    })?;
    if desired::Object::parse(object).is_none() {
        // No row of ours has it, and nobody else writes it.
        let standing = authz::standing(&mut inner.store.session()?, tenant_id)?;
        let standing = standing.ok_or(Fault::Storeless)?;
        let on = stores::pinned(&standing);
        let is_newer = standing.model_version > inner.model.version();
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

fn apply_held(
    inner: &Inner,
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
    let desired = desired::tuples_of(tx, tenant_id, object)?;
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
    inner: &Inner,
    on: &Pinned,
    is_newer: bool,
    object: &str,
    desired: &BTreeSet<Tuple>,
    deadline: Instant,
) -> Result<Changed, Fault> {
    let client = inner.client.until(deadline);
    let told = client.read_object(&on.store_id, object)?;
    // A store that was lost reads as an empty one and takes what is written.
    if told.is_empty() && !client.store_exists(&on.store_id)? {
        return Err(Failure::StoreUnknown.into());
    }
    let extra = told.difference(desired);
    // What a newer program stores is not ours to judge.
    let removed: Vec<_> = extra
        .filter(|tuple| !is_newer || desired::is_known(tuple))
        .cloned()
        .collect();
    let added: Vec<_> = desired.difference(&told).cloned().collect();
    client.write(on, &removed, &added)?;
    Ok(Changed {
        removed,
        added,
        was_applied: true,
    })
}

/// Brings a tenant's store wholly in step. Gives the id of the store that is now as Postgres wants.
pub(super) fn reconcile(
    inner: &Inner,
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
            let changed = apply(inner, tenant_id, object, true, patience())?;
            say_removed(inner, tenant_id, &changed);
            each(&changed);
        }
        if is_whole {
            break;
        }
    }
    let standing = authz::standing(&mut inner.store.session()?, tenant_id)?;
    if standing.is_none_or(|standing| standing.store_id != ensured.pinned.store_id) {
        return Err(Fault::Storeless);
    }
    if ensured.is_new {
        greet(inner, tenant_id, &ensured)?;
    }
    Ok(ensured.pinned.store_id)
}

/// Tells what is marked and was not told.
fn apply_unapplied(
    inner: &Inner,
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
            each(&apply(inner, tenant_id, object, false, patience())?);
        }
        match ours.last() {
            Some(last) if ours.len() == usize::from(PAGE) => after = last.clone(),
            _ => return Ok(()),
        }
    }
}

/// Tuples that nobody asked for are each logged.
fn say_removed(inner: &Inner, tenant_id: Uuid, changed: &Changed) {
    for tuple in changed.removed.iter().filter(|_| changed.was_applied) {
        slog::warn!(inner.log, "A permission that nothing asks for was removed from the authorization server";
            "tenantId" => %tenant_id, "user" => &tuple.user, "relation" => &tuple.relation, "object" => &tuple.object);
    }
}

/// The line that section 1.2 asks for.
fn greet(inner: &Inner, tenant_id: Uuid, ensured: &stores::Ensured) -> Result<(), Fault> {
    let seeded = inner.seed.filter(|(seeded, _)| *seeded == tenant_id);
    let admin = match seeded {
        Some((_, user_id)) => Some(user_id),
        None => authz::first_admin(&mut inner.store.session()?, tenant_id)?,
    };
    if let Some(user_id) = admin {
        slog::info!(inner.log, "user:{} is admin@tenant via FGA bootstrap", user_id;
            "tenantId" => %tenant_id, "userId" => %user_id, "storeId" => &ensured.pinned.store_id);
    }
    Ok(())
}
