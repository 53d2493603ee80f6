//! The thread that keeps this process's leases. It renews them, watches for cancels, and hands
//! unfinished jobs back at the end of a stop.

use super::state::{RunnerState, warn_unless_away};
use crate::Result;
use crate::batch::{Batch, Stage};
use crate::protocol::{Became, EndedJob, Ending, end_jobs, renew, watch};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::warn;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;

pub(super) fn run(runner: &RunnerState, stop: &Receiver<()>) {
    let tick = runner.watch.min(runner.lease / 3);
    let mut last_renewal = Instant::now();
    while stop.recv_timeout(tick) != Err(RecvTimeoutError::Disconnected) {
        let whole = last_renewal.elapsed() + tick > runner.lease / 3;
        let kept = renew_once(runner, whole).and_then(|()| watch_once(runner));
        if let Err(error) = kept {
            warn_unless_away!(runner, "cannot renew leases"; "error" => #error);
            continue;
        }
        if whole {
            last_renewal = Instant::now();
        }
    }
    if let Err(error) = hand_back(runner).and_then(|()| renew_once(runner, false)) {
        runner.leases_left.store(true, Ordering::Relaxed);
        warn!(runner.log, "cannot hand jobs back; their leases will run out"; "error" => #error);
    }
}

/// Drops the leases of ended batches, but those that are left to run out; with `whole`, extends the others.
fn renew_once(runner: &RunnerState, whole: bool) -> Result<()> {
    let (finished, live): (Vec<Arc<Batch>>, Vec<Arc<Batch>>) = runner
        .batches()
        .values()
        .cloned()
        .partition(|batch| batch.is_ended());
    let live = if whole { live } else { Vec::new() };
    if finished.is_empty() && live.is_empty() {
        return Ok(());
    }
    let live_ids: Vec<i64> = live.iter().map(|batch| batch.lease_id).collect();
    let over = finished.iter().filter(|batch| !batch.is_left());
    let over: Vec<i64> = over.map(|batch| batch.lease_id).collect();
    let asked_at = Instant::now();
    let standing = runner
        .lease_database
        .with(|client| renew(client, &live_ids, runner.lease, &over))?;
    let standing: HashSet<i64> = standing.into_iter().collect();
    for batch in live {
        if standing.contains(&batch.lease_id) {
            batch.renewed(asked_at, runner.lease);
        } else {
            batch.lose_all();
        }
    }
    let mut batches = runner.batches();
    for batch in finished {
        batches.remove(&batch.lease_id);
    }
    Ok(())
}

/// Only jobs that have run for a while: short ones are over before a cancel could matter.
fn watch_once(runner: &RunnerState) -> Result<()> {
    let batches: Vec<Arc<Batch>> = runner.batches().values().cloned().collect();
    let mut running = HashMap::new();
    for batch in batches
        .iter()
        .filter(|batch| batch.claimed_at.elapsed() >= runner.watch / 2)
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
    let ended = runner
        .lease_database
        .with(|client| watch(client, &ids, &leases))?;
    // The same job may run here twice, under a lost lease and a new one: each is told of its own.
    for (id, lease_id, cancelled) in ended {
        if let Some(slot) = running.get(&(id, lease_id)) {
            slot.end(cancelled);
        }
    }
    Ok(())
}

/// At the end of a stop: what did not start or finish goes back. Its handler is told before anybody else can take it.
fn hand_back(runner: &RunnerState) -> Result<()> {
    let batches: Vec<Arc<Batch>> = runner.batches().values().cloned().collect();
    let mut ended = Vec::new();
    let mut over = Vec::new();
    for batch in &batches {
        let mut rest_ended = true;
        for slot in &batch.slots {
            // Told first: whoever begins at this moment is seen to have begun, or finds that it lost.
            slot.end(false);
            fence(Ordering::SeqCst);
            let ending = if slot.is_at(Stage::Queued) {
                Ending::HandBack
            } else if slot.is_at(Stage::Running) {
                batch.cut()
            } else {
                rest_ended &= slot.is_at(Stage::Ended);
                continue;
            };
            ended.push(EndedJob {
                id: slot.id,
                lease_id: batch.lease_id,
                ending,
            });
        }
        if rest_ended && !batch.is_left() {
            over.push(batch.lease_id);
        }
    }
    if ended.is_empty() {
        return Ok(());
    }
    let became = runner
        .lease_database
        .with(|client| end_jobs(client, &ended))?;
    let waiting = became
        .iter()
        .filter(|(_, became)| *became == Became::Waiting)
        .count();
    runner
        .handed_back
        .fetch_add(waiting as u64, Ordering::Relaxed);
    // A lease that still has a job must stand, or nobody would ever rescue that job.
    runner
        .lease_database
        .with(|client| renew(client, &[], runner.lease, &over))?;
    Ok(())
}
