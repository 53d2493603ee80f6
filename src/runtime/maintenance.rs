//! Maintenance of the tables of runs: makes partitions ahead, deletes old idempotency keys and
//! left-over text, old sessions, and erases what runs have said that ended long ago. Safe on every replica at once.

use super::erasure::Batches;
use super::services::Services;
use crate::error::Result;
use crate::ids::Clock;
use crate::store::{
    Store, approvals, authz, clock as database_clock, deltas, partitions, runs, sessions,
};
use crossbeam_channel::{Receiver, TryRecvError};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

/// How long a request's key is kept.
const KEY_AGE: time::Duration = time::Duration::hours(24);
/// How long a session is kept after its end.
const SESSION_AGE: time::Duration = time::Duration::days(30);
/// Rows deleted in one statement.
const BATCH: u32 = 1000;
/// Statements in one round.
const BATCHES: usize = 1000;
/// How often what the metrics say of the database is read.
const FIGURES_EVERY: Duration = Duration::from_secs(15);
/// Tenants looked at in one statement.
const TENANTS: i64 = 1000;

/// The thread `runs-upkeep`. Ends when `stop` disconnects.
pub(super) fn repeat(services: &Services, stop: &Receiver<()>) {
    let mut figures = DatabaseFigures::default();
    partitions::keep(
        &services.clock,
        stop,
        || {
            round(&services.store, &services.clock)?;
            erase_old(services, stop)
        },
        || figures.look(services),
        |error| crate::warn_unless!(services.store.is_away(), services.log, "Maintenance of the tables of runs failed; it will be tried again"; crate::log::ErrorValue(error)),
    );
}

/// Reads what the metrics say of approvals that wait, and of open sessions.
#[derive(Default)]
struct DatabaseFigures {
    read_at: Option<Instant>,
}

impl DatabaseFigures {
    /// Reads it again if that is due. What cannot be read stays as it was.
    fn look(&mut self, services: &Services) {
        if self.read_at.is_some_and(|at| at.elapsed() < FIGURES_EVERY) {
            return;
        }
        self.read_at = Some(Instant::now());
        let open = services.options.sessions.at(services.clock.now());
        let read = services.store.session().and_then(|mut session| {
            Ok((
                approvals::figures(&mut session)?,
                sessions::count(&mut session, open)?,
            ))
        });
        match read {
            Ok((approvals, sessions)) => services.counts.in_database(approvals, sessions),
            Err(error) => {
                slog::debug!(services.log, "Approvals that wait and open sessions were not counted"; crate::log::ErrorValue(&error));
            }
        }
    }
}

/// One round.
pub(super) fn round(store: &Store, clock: &Clock) -> Result<()> {
    let mut session = store.session()?;
    // Ids carry this clock's time, so it says which months there must be.
    runs::attach_partitions(&mut session, clock.now().date())?;
    let now = database_clock::earlier(&mut session, clock)?;
    for _ in 0..BATCHES {
        if runs::forget_keys(&mut session, now - KEY_AGE, i64::from(BATCH))? < u64::from(BATCH) {
            break;
        }
    }
    for _ in 0..BATCHES {
        let deleted = sessions::delete_old(&mut session, now - SESSION_AGE, i64::from(BATCH))?;
        if deleted < u64::from(BATCH) {
            break;
        }
    }
    for _ in 0..BATCHES {
        if deltas::sweep(&mut session, i64::from(BATCH))? == 0 {
            break;
        }
    }
    Ok(())
}

/// Erases the payloads of runs that ended longer ago than they are kept. What a round does not come to, the next one does.
pub(super) fn erase_old(services: &Services, stop: &Receiver<()>) -> Result<()> {
    let Some(kept) = services.options.payload_retention else {
        return Ok(());
    };
    let before = database_clock::earlier(&mut services.store.session()?, &services.clock)? - kept;
    let mut last = Uuid::nil();
    loop {
        let tenants = authz::tenants(&mut services.store.session()?, last, TENANTS)?;
        let Some(newest) = tenants.last() else {
            return Ok(());
        };
        last = *newest;
        for tenant_id in tenants {
            if erase_old_of(services, stop, tenant_id, before)?.is_break() {
                return Ok(());
            }
        }
    }
}

/// Erases those of one tenant; a break when the process stops. What fails holds up its tenant alone.
fn erase_old_of(
    services: &Services,
    stop: &Receiver<()>,
    tenant_id: Uuid,
    before: OffsetDateTime,
) -> Result<ControlFlow<()>> {
    let mut batches = Batches::of(tenant_id);
    for _ in 0..BATCHES {
        if stop.try_recv() == Err(TryRecvError::Disconnected) {
            return Ok(ControlFlow::Break(()));
        }
        let found_some = batches.erase_next(services, |tx, after, most| {
            runs::ended_before(tx, tenant_id, before, after, most)
        });
        match found_some {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if services.store.is_away() => return Err(error),
            Err(error) => {
                slog::warn!(services.log, "Old payloads of a tenant could not be erased; it will be tried again";
                    "tenantId" => %tenant_id, crate::log::ErrorValue(&error));
                break;
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}
