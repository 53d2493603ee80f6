//! One thread a queue that claims: as many jobs as there is room for, continuously while there are more, else when
//! woken and at each poll.

use super::crew::Crew;
use super::handler::{Hands, Work};
use super::{Core, Queue, QueueOptions};
use crate::Result;
use crate::backoff::{Backoff, jittered};
use crate::claimed::Batch;
use crate::protocol::{ClaimedRow, Room, claim_ahead, draw_leases};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::{info, warn};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Waits between tries while the database is away.
pub(super) const AWAY: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_secs(2),
};

/// What a claim is asked for.
pub struct Asked<'a> {
    pub queue: &'a str,
    /// This process, for people.
    pub worker: &'a str,
    pub room: Room,
    pub lease: Duration,
    /// Whether jobs with a key are looked at before the others.
    pub keyed_first: bool,
}

/// A claimed job.
pub struct Taken {
    pub row: ClaimedRow,
    /// What its handler is given with it.
    pub beside: Option<Box<dyn Any + Send>>,
}

pub(super) type ClaimBy = Box<dyn Fn(&Asked<'_>) -> Result<Vec<Taken>> + Send + Sync>;

/// Where a claimer learns that there is something to claim, and how it does.
pub(super) struct Source {
    pub(super) poked: Receiver<()>,
    /// Told when jobs got through: all, or those of half of the threads.
    pub(super) eased: Receiver<()>,
    pub(super) claim_by: Option<ClaimBy>,
}

impl Source {
    fn claim(&self, leases: &mut Leases, core: &Core, asked: &Asked<'_>) -> Result<Vec<Taken>> {
        if let Some(claim_by) = &self.claim_by {
            return claim_by(asked);
        }
        let rows = leases.claim(core, asked)?;
        let alone = |row| Taken { row, beside: None };
        Ok(rows.into_iter().map(alone).collect())
    }

    /// Waits, while jobs are in hand, until the next claim may begin.
    fn keep_pace(&self, core: &Core, queue: &Queue, claimed_at: Option<Instant>) {
        let Some(claimed_at) = claimed_at else { return };
        let QueueOptions { pace, .. } = queue.options;
        while !core.stopping() {
            // What was told before is seen in the count.
            let _ = self.eased.try_recv();
            let next = match queue.outstanding.load(Ordering::Acquire) {
                0 => return,
                few if few <= queue.options.half() => claimed_at + pace,
                _ => claimed_at + 3 * pace,
            };
            if next <= Instant::now()
                || self.eased.recv_deadline(next) == Err(RecvTimeoutError::Timeout)
            {
                return;
            }
        }
    }
}

/// Lease ids for the claims to come.
#[derive(Default)]
struct Leases(Vec<i64>);

impl Leases {
    /// When fewer are left, more are drawn beside the claims, so that none waits for that.
    const FEW: usize = 64;

    fn claim(&mut self, core: &Core, asked: &Asked<'_>) -> Result<Vec<ClaimedRow>> {
        let rows = core.database.with(|client| {
            if self.0.is_empty() {
                self.0 = draw_leases(client)?;
            }
            let Some(lease_id) = self.0.pop() else {
                return Ok(Vec::new());
            };
            let rows = claim_ahead(client, lease_id, asked)?;
            if rows.is_empty() {
                self.0.push(lease_id);
            }
            Ok(rows)
        });
        if rows.is_err() {
            // It may be another server from now on, which knows nothing of these.
            self.0.clear();
        }
        rows
    }

    fn draw_ahead(&mut self, core: &Core) {
        if self.0.len() < Self::FEW
            && let Ok(more) = core.database.with(draw_leases)
        {
            self.0.extend(more);
        }
    }
}

/// Ends the crew with the claimer, however that ends.
struct Ending<'a>(&'a Crew);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

pub(super) fn run(hands: &Arc<Hands>, source: &Source) {
    let _ending = Ending(&hands.crew);
    let (core, queue) = (&*hands.core, &*hands.queue);
    let mut leases = Leases::default();
    let mut more = true;
    let mut keyed_first = false;
    let mut failures = 0;
    let mut next_poll = Instant::now();
    let mut claimed_at = None;
    while !core.stopping() {
        source.keep_pace(core, queue, claimed_at.take());
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
            let _ = source.poked.recv_timeout(wait);
            continue;
        }
        queue.woken.store(false, Ordering::Release);
        keyed_first = !keyed_first;
        let asked = Asked {
            queue: &queue.name,
            worker: &core.worker,
            room,
            lease: core.lease,
            keyed_first,
        };
        match source.claim(&mut leases, core, &asked) {
            Ok(rows) => {
                if failures > 0 {
                    info!(core.log, "claiming again"; "queue" => &queue.name);
                }
                failures = 0;
                // Keys share a claim evenly, so one with more to give may have left room.
                more = rows.len() >= room.jobs || rows.iter().any(|one| one.row.key.is_some());
                next_poll = Instant::now() + jittered(queue.options.poll, 20);
                claimed_at = Some(asked_at);
                dispatch(hands, rows, asked_at);
                if source.claim_by.is_none() {
                    leases.draw_ahead(core);
                }
            }
            Err(error) => {
                failures += 1;
                more = true;
                let wait = AWAY.after(failures);
                warn!(core.log, "cannot claim jobs"; "queue" => &queue.name, "error" => %error,
                    "failures" => failures, "waitMs" => wait.as_millis() as u64);
                sleep_unless_stopping(core, &source.poked, wait);
            }
        }
    }
}

fn room(queue: &Queue) -> Room {
    let options = &queue.options;
    let outstanding = queue.outstanding.load(Ordering::Acquire);
    if outstanding >= options.enough() {
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

fn dispatch(hands: &Arc<Hands>, rows: Vec<Taken>, asked_at: Instant) {
    let (core, queue) = (&*hands.core, &*hands.queue);
    let Some(first) = rows.first() else { return };
    let batch = Arc::new(Batch::new(
        first.row.lease_id,
        rows.iter().map(|one| one.row.id),
        asked_at,
        core.lease,
    ));
    core.batches().insert(batch.lease_id, Arc::clone(&batch));
    let outstanding = rows.len() + queue.outstanding.fetch_add(rows.len(), Ordering::AcqRel);
    let serial = rows.iter().filter(|one| one.row.is_serial()).count();
    queue.serial.fetch_add(serial, Ordering::AcqRel);
    queue
        .counts
        .claimed
        .fetch_add(rows.len() as u64, Ordering::Relaxed);
    let jobs = rows.into_iter().enumerate().map(|(place, one)| Work {
        row: one.row,
        batch: Arc::clone(&batch),
        place,
        beside: one.beside,
    });
    let start = |number| hands.start(number);
    if let Err(error) = hands.crew.hand_out(jobs, outstanding, start) {
        warn!(core.log, "no further thread, jobs wait for those that there are"; "queue" => &queue.name,
            "error" => %error);
    }
}

fn sleep_unless_stopping(core: &Core, poked: &Receiver<()>, wait: Duration) {
    let until = Instant::now() + wait;
    while !core.stopping() && poked.recv_deadline(until).is_ok() {}
}
