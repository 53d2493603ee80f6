//! Two threads that run no jobs: one renews leases, watches for cancels and counts the processes that share the work, one
//! rescues what others left.

use super::Core;
use crate::Result;
use crate::backoff::jittered;
use crate::claimed::{Batch, Stage};
use crate::protocol::{
    Became, Ending, Settlement, processes, renew as renew_leases, rescue as rescue_leases, settle,
    watch,
};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::{info, warn};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// With more, each claims as if there were so many: none waits for ever longer.
pub(super) const PROCESSES_MOST: u32 = 4;

pub(super) fn renew(core: &Core, stop: &Receiver<()>) {
    let tick = core.watch.min(core.lease / 3);
    let mut last_renewal = Instant::now();
    while stop.recv_timeout(tick) != Err(RecvTimeoutError::Disconnected) {
        let whole = last_renewal.elapsed() + tick > core.lease / 3;
        let kept = renew_once(core, whole).and_then(|()| watch_once(core));
        if let Err(error) = kept {
            warn!(core.log, "cannot renew leases"; "error" => %error);
            continue;
        }
        if whole {
            last_renewal = Instant::now();
        }
        if let Err(error) = count_processes(core) {
            warn!(core.log, "cannot count the processes that share the work"; "error" => %error);
        }
    }
    if let Err(error) = hand_back(core).and_then(|()| renew_once(core, false)) {
        core.leases_left.store(true, Ordering::Relaxed);
        warn!(core.log, "cannot hand jobs back; their leases will run out"; "error" => %error);
    }
}

/// Drops the leases of settled batches, but those that are left to run out; with `whole`, extends the others.
fn renew_once(core: &Core, whole: bool) -> Result<()> {
    let (finished, live): (Vec<Arc<Batch>>, Vec<Arc<Batch>>) = core
        .batches()
        .values()
        .cloned()
        .partition(|batch| batch.is_settled());
    let live = if whole { live } else { Vec::new() };
    if finished.is_empty() && live.is_empty() {
        return Ok(());
    }
    let live_ids: Vec<i64> = live.iter().map(|batch| batch.lease_id).collect();
    let over = finished.iter().filter(|batch| !batch.is_left());
    let over: Vec<i64> = over.map(|batch| batch.lease_id).collect();
    let asked_at = Instant::now();
    let standing = core
        .database
        .with(|client| renew_leases(client, &live_ids, core.lease, &over))?;
    let standing: HashSet<i64> = standing.into_iter().collect();
    for batch in live {
        if standing.contains(&batch.lease_id) {
            batch.renewed(asked_at, core.lease);
        } else {
            batch.lose_all();
        }
    }
    let mut batches = core.batches();
    for batch in finished {
        batches.remove(&batch.lease_id);
    }
    Ok(())
}

/// With how many others work is shared, where somebody wants to know.
fn count_processes(core: &Core) -> Result<()> {
    if core.queues.iter().any(|queue| queue.paces()) {
        let count = core.database.with(processes)?;
        core.processes
            .store(count.clamp(1, PROCESSES_MOST), Ordering::Relaxed);
    }
    Ok(())
}

/// Only jobs that have run for a while: short ones are over before a cancel could matter.
fn watch_once(core: &Core) -> Result<()> {
    let batches: Vec<Arc<Batch>> = core.batches().values().cloned().collect();
    let mut running = HashMap::new();
    for batch in batches
        .iter()
        .filter(|batch| batch.claimed_at.elapsed() >= core.watch / 2)
    {
        for slot in batch
            .slots
            .iter()
            .filter(|slot| slot.is_at(Stage::Running) || slot.is_at(Stage::Queued))
        {
            running.insert((slot.id, batch.lease_id), slot);
        }
    }
    if running.is_empty() {
        return Ok(());
    }
    let (ids, leases): (Vec<i64>, Vec<i64>) = running.keys().copied().unzip();
    let ended = core.database.with(|client| watch(client, &ids, &leases))?;
    // The same job may run here twice, under a lost lease and a new one: each is told of its own.
    for (id, lease_id, cancelled) in ended {
        if let Some(slot) = running.get(&(id, lease_id)) {
            slot.end(cancelled);
        }
    }
    Ok(())
}

/// At the end of a stop: what did not start or finish goes back, and is told so before anybody else can take it.
fn hand_back(core: &Core) -> Result<()> {
    let batches: Vec<Arc<Batch>> = core.batches().values().cloned().collect();
    let mut settlements = Vec::new();
    let mut over = Vec::new();
    for batch in &batches {
        let mut rest_settled = true;
        for slot in &batch.slots {
            // Told first: whoever begins at this moment is seen to have begun, or finds that it lost.
            slot.end(false);
            fence(Ordering::SeqCst);
            let ending = if slot.is_at(Stage::Queued) {
                Ending::HandBack
            } else if slot.is_at(Stage::Running) {
                batch.cut()
            } else {
                rest_settled &= slot.is_at(Stage::Settled);
                continue;
            };
            settlements.push(Settlement {
                id: slot.id,
                lease_id: batch.lease_id,
                ending,
            });
        }
        if rest_settled && !batch.is_left() {
            over.push(batch.lease_id);
        }
    }
    if settlements.is_empty() {
        return Ok(());
    }
    let became = core.database.with(|client| settle(client, &settlements))?;
    let waiting = became
        .iter()
        .filter(|(_, became)| *became == Became::Waiting)
        .count();
    core.handed_back
        .fetch_add(waiting as u64, Ordering::Relaxed);
    // A lease that still has a job must stand, or nobody would ever rescue that job.
    core.database
        .with(|client| renew_leases(client, &[], core.lease, &over))?;
    Ok(())
}

const LEASES_A_ROUND: usize = 100;

/// Whether leases may be taken. While the database was away nobody could renew his: once it is back, all have the time
/// of one lease to do so.
#[derive(Default)]
struct Amnesty {
    away: bool,
    until: Option<Instant>,
}

impl Amnesty {
    /// Asks the database for something that a renewal needs too, and learns from how that goes.
    fn holds(&mut self, core: &Core) -> bool {
        let asked_at = Instant::now();
        let asked = core
            .database
            .with(|client| Ok(client.simple_query("SELECT FROM job_leases LIMIT 1")?));
        if let Err(error) = asked {
            warn!(core.log, "cannot look for leases that ran out"; "error" => %error);
            self.away = true;
            return true;
        }
        let now = Instant::now();
        if std::mem::take(&mut self.away) || now - asked_at > core.lease / 3 {
            self.until = Some(now + core.lease);
        }
        self.until.is_some_and(|until| now < until)
    }
}

pub(super) fn rescue(core: &Core, stop: &Receiver<()>) {
    let pause = (core.lease / 3).min(Duration::from_secs(10));
    let mut amnesty = Amnesty::default();
    while stop.recv_timeout(jittered(pause, 20)) != Err(RecvTimeoutError::Disconnected) {
        if amnesty.holds(core) {
            continue;
        }
        match core
            .database
            .with(|client| rescue_leases(client, LEASES_A_ROUND))
        {
            Ok(rescued) if rescued.is_empty() => {}
            Ok(rescued) => {
                info!(core.log, "rescued jobs of leases that ran out"; "jobs" => rescued.len());
                for queue in &core.queues {
                    queue.wake();
                }
            }
            Err(error) => warn!(core.log, "cannot look for leases that ran out"; "error" => %error),
        }
    }
}
