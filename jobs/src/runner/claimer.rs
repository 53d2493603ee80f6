//! One thread a queue that claims: as many jobs as there is room for, continuously while there are more, else when
//! woken and at each poll.

use super::handler::Work;
use super::{Core, Queue};
use crate::backoff::{Backoff, jittered};
use crate::claimed::Batch;
use crate::protocol::{ClaimedRow, Room, claim};
use crossbeam_channel::{Receiver, Sender};
use slog::{info, warn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Waits between tries while the database is away.
pub(super) const AWAY: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_secs(2),
};

pub(super) fn run(core: &Core, queue: &Queue, work: &Sender<Work>, poked: &Receiver<()>) {
    let mut more = true;
    let mut keyed_first = false;
    let mut failures = 0;
    let mut next_poll = Instant::now();
    while !core.stopping() {
        let room = room(queue);
        let asked_at = Instant::now();
        if room.jobs == 0 || !(more || queue.woken.load(Ordering::Acquire) || asked_at >= next_poll)
        {
            // A freed place pokes too; the bound only keeps a lost poke from mattering.
            let wait = if room.jobs == 0 {
                Duration::from_secs(1)
            } else {
                next_poll - asked_at
            };
            let _ = poked.recv_timeout(wait);
            continue;
        }
        queue.woken.store(false, Ordering::Release);
        keyed_first = !keyed_first;
        let rows = core.database.with(|client| {
            claim(
                client,
                &queue.name,
                &core.worker,
                room,
                core.lease,
                keyed_first,
            )
        });
        match rows {
            Ok(rows) => {
                if failures > 0 {
                    info!(core.log, "claiming again"; "queue" => &queue.name);
                }
                failures = 0;
                // Keys share a claim evenly, so one with more to give may have left room.
                more = rows.len() >= room.jobs || rows.iter().any(|row| row.key.is_some());
                next_poll = Instant::now() + jittered(queue.options.poll, 20);
                dispatch(core, queue, work, rows, asked_at);
            }
            Err(error) => {
                failures += 1;
                more = true;
                let wait = AWAY.after(failures);
                warn!(core.log, "cannot claim jobs"; "queue" => &queue.name, "error" => %error,
                    "failures" => failures, "waitMs" => wait.as_millis() as u64);
                sleep_unless_stopping(core, poked, wait);
            }
        }
    }
}

/// With prefetch, claims when half of it is used up, so that batches stay large; without, whenever a thread is free.
fn room(queue: &Queue) -> Room {
    let options = &queue.options;
    let outstanding = queue.outstanding.load(Ordering::Acquire);
    if options.prefetch > 0 && outstanding > options.threads + options.prefetch / 2 {
        return Room::from(0);
    }
    let jobs = (options.threads + options.prefetch)
        .saturating_sub(outstanding)
        .min(options.batch);
    let serial = options.serial_most.map_or(jobs, |most| {
        most.saturating_sub(queue.serial.load(Ordering::Acquire))
    });
    Room { jobs, serial }
}

fn dispatch(
    core: &Core,
    queue: &Queue,
    work: &Sender<Work>,
    rows: Vec<ClaimedRow>,
    asked_at: Instant,
) {
    let Some(first) = rows.first() else { return };
    let batch = Arc::new(Batch::new(
        first.lease_id,
        rows.iter().map(|row| row.id),
        asked_at,
        core.lease,
    ));
    core.batches().insert(batch.lease_id, Arc::clone(&batch));
    queue.outstanding.fetch_add(rows.len(), Ordering::AcqRel);
    let serial = rows.iter().filter(|row| row.is_serial()).count();
    queue.serial.fetch_add(serial, Ordering::AcqRel);
    queue
        .counts
        .claimed
        .fetch_add(rows.len() as u64, Ordering::Relaxed);
    for (place, row) in rows.into_iter().enumerate() {
        let one = Work {
            row,
            batch: Arc::clone(&batch),
            place,
        };
        // The channel holds as many as there can be outstanding, and handlers end only after this sender.
        if work.send(one).is_err() {
            return;
        }
    }
}

fn sleep_unless_stopping(core: &Core, poked: &Receiver<()>, wait: Duration) {
    let until = Instant::now() + wait;
    while !core.stopping() && poked.recv_deadline(until).is_ok() {}
}
