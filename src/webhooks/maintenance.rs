//! Maintenance of the tables of webhooks: makes partitions ahead, drops months past their
//! retention, deletes endpoints without deliveries, and finishes an interrupted unregistering. Safe
//! on every replica at once.

use super::Inner;
use super::job::Deliver;
use crate::error::{Error, Result};
use crate::store::{
    clock, partitions, queue_error, webhook_deliveries as rows, webhook_endpoints as endpoints,
};
use crate::threads;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// An endpoint without a success is counted from then on.
const FAILING_LONG: Duration = Duration::from_secs(3600);
/// How often what is due, and what fails, is counted.
const COUNTED_EVERY: Duration = Duration::from_secs(60);
/// Beyond the retention: an event may be sent again shortly before its time is over. With the shortest retention this is more
/// than the week for which `attach_webhook_partitions` makes the month before.
const SLACK: time::Duration = time::Duration::days(7);
/// An endpoint stays at least this long after it was unregistered.
const ENDPOINT_STAYS: time::Duration = time::Duration::days(1);
/// Endpoints with something left that one round sees to.
const ENDPOINTS: i64 = 1000;
/// How often the thread looks whether it is to end, while it fails what waits.
const FAILING: Duration = Duration::from_secs(1);

/// The thread `webhooks-upkeep`. Dropping this ends the thread and waits for that.
pub struct Maintenance {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has been logged by the panic hook.
            let _ = thread.join();
        }
    }
}

pub(super) fn start(inner: &Arc<Inner>) -> Result<Maintenance> {
    let (stop, stopped) = bounded(0);
    let inner = Arc::clone(inner);
    let work = move || repeat(&inner, &stopped);
    let thread =
        threads::start("webhooks-upkeep", Some(256 * 1024), work).map_err(Error::internal)?;
    Ok(Maintenance {
        stop: Some(stop),
        thread: Some(thread),
    })
}

fn repeat(inner: &Inner, stop: &Receiver<()>) {
    let mut next_count = Instant::now();
    let count = || {
        let now = Instant::now();
        if now < next_count {
            return;
        }
        next_count = now + COUNTED_EVERY;
        if let Err(error) = count_due(inner).and_then(|()| count_failing(inner)) {
            slog::debug!(inner.log, "What is due, and what fails, was not counted"; crate::log::ErrorValue(&error));
        }
    };
    partitions::keep(
        &inner.clock,
        stop,
        || round(inner, stop),
        count,
        |error| crate::warn_unless!(inner.store.is_away(), inner.log, "The upkeep of the tables of webhooks failed; it will be tried again"; crate::log::ErrorValue(error)),
    );
}

pub(super) fn attach_partitions(inner: &Inner) -> Result<()> {
    rows::attach_partitions(&mut inner.store.session()?, inner.clock.now().date())
}

fn count_due(inner: &Inner) -> Result<()> {
    let queue = <Deliver as jobs::Job>::QUEUE;
    let depth = inner
        .store
        .transact(|tx| jobs::depth(tx.raw(), queue).map_err(queue_error))?;
    inner.counts.set_due(depth.due);
    Ok(())
}

fn count_failing(inner: &Inner) -> Result<()> {
    let failing = endpoints::count_failing(&mut inner.store.session()?, FAILING_LONG)?;
    inner.counts.set_failing(failing);
    Ok(())
}

/// One round.
fn round(inner: &Inner, stop: &Receiver<()>) -> Result<()> {
    attach_partitions(inner)?;
    let left = rows::unregistered_waiting(&mut inner.store.session()?, ENDPOINTS)?;
    for (tenant_id, endpoint_id) in left {
        while !inner.fail_all(tenant_id, endpoint_id, Instant::now() + FAILING)? {
            if stop.try_recv() == Err(TryRecvError::Disconnected) {
                return Ok(());
            }
        }
    }
    let now = clock::earlier(&mut inner.store.session()?, &inner.clock)?;
    let dropped = drop_months(inner, now);
    // Endpoints that have no delivery left go also while a month cannot be dropped.
    rows::prune_endpoints(&mut inner.store.session()?, now - ENDPOINT_STAYS)?;
    dropped
}

fn drop_months(inner: &Inner, now: OffsetDateTime) -> Result<()> {
    let mut session = inner.store.session()?;
    let retention = time::Duration::days(inner.options.retention_days.into());
    let before = now - retention - SLACK;
    for month in rows::months(&mut session)? {
        if partitions::end_of(month) > before {
            break;
        }
        if !session.transact(|tx| rows::drop_month(tx, month))? {
            slog::warn!(inner.log, "A month of deliveries is past its time and stays: something in it still waits"; "month" => %month);
            break;
        }
        slog::info!(inner.log, "Dropped a month of deliveries"; "month" => %month);
    }
    Ok(())
}
