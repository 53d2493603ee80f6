//! The two threads that run no jobs: one renews leases and watches for cancels, one rescues what others left.

use super::Core;
use crate::Result;
use crate::backoff::jittered;
use crate::claimed::{Batch, Stage};
use crate::protocol::{
    Became, Ending, Settlement, renew as renew_leases, rescue as rescue_leases, settle, watch,
};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::{info, warn};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub(super) fn renew(core: &Core, stop: &Receiver<()>) {
    let tick = core.watch.min(core.lease / 3);
    let mut last_renewal = Instant::now();
    while stop.recv_timeout(tick) != Err(RecvTimeoutError::Disconnected) {
        let whole = last_renewal.elapsed() + tick > core.lease / 3;
        if let Err(error) = renew_once(core, whole).and_then(|()| watch_once(core)) {
            warn!(core.log, "cannot renew leases"; "error" => %error);
        } else if whole {
            last_renewal = Instant::now();
        }
        let batches = core.batches();
        for batch in batches
            .values()
            .filter(|batch| batch.has_run_out())
            .cloned()
            .collect::<Vec<_>>()
        {
            batch.lose_all();
        }
    }
    if let Err(error) = hand_back(core).and_then(|()| renew_once(core, false)) {
        core.leases_left.store(true, Ordering::Relaxed);
        warn!(core.log, "cannot hand jobs back; their leases will run out"; "error" => %error);
    }
}

/// Drops the leases of settled batches; with `whole`, extends the others.
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
    let ids = |batches: &[Arc<Batch>]| {
        batches
            .iter()
            .map(|batch| batch.lease_id)
            .collect::<Vec<i64>>()
    };
    let asked_at = Instant::now();
    let standing = core
        .database
        .with(|client| renew_leases(client, &ids(&live), core.lease, &ids(&finished)))?;
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
    for (id, cancelled) in ended {
        for (_, slot) in running
            .iter()
            .filter(|((running_id, _), _)| *running_id == id)
        {
            slot.end(cancelled);
        }
    }
    Ok(())
}

/// At the end of a stop: what did not start or finish goes back, and is told so before anybody else can take it.
fn hand_back(core: &Core) -> Result<()> {
    let batches: Vec<Arc<Batch>> = core.batches().values().cloned().collect();
    let mut settlements = Vec::new();
    for batch in &batches {
        for slot in batch
            .slots
            .iter()
            .filter(|slot| slot.is_at(Stage::Queued) || slot.is_at(Stage::Running))
        {
            slot.end(false);
            settlements.push(Settlement {
                id: slot.id,
                lease_id: batch.lease_id,
                ending: Ending::HandBack,
            });
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
    Ok(())
}

const LEASES_A_ROUND: usize = 100;

pub(super) fn rescue(core: &Core, stop: &Receiver<()>) {
    let pause = (core.lease / 3).min(Duration::from_secs(10));
    while stop.recv_timeout(jittered(pause, 20)) != Err(RecvTimeoutError::Disconnected) {
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
