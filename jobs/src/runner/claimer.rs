//! Two threads a queue that claim in turns: as many jobs as there is room for, continuously while there are more, else
//! when woken and at each poll.
//!
//! A job that was claimed alone, as on an idle queue, is handled where it was claimed: it begins without waiting for
//! another thread to wake up. The other one, which waits for the same words, claims meanwhile, and hands out what it
//! claims to the crew: so at most one of the two handles, and no handler, however long it takes, holds up a claim.

use super::handler::{Hands, Work, text};
use super::{Core, Queue};
use crate::Result;
use crate::backoff::{Backoff, jittered};
use crate::claimed::Beside;
use crate::protocol::{Asked, ClaimedRow, Room, claim_ahead, draw_leases};
use crossbeam_channel::Receiver;
use slog::{info, warn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Waits between tries while the database is away.
pub(super) const AWAY: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_secs(2),
};

/// Reads what handlers are given with jobs that were just claimed, in the same order.
pub(super) type ReadBeside =
    Box<dyn Fn(&[ClaimedRow], Instant) -> Vec<Option<Beside>> + Send + Sync>;

/// Where a claimer learns that there is something to claim, and what it reads with it.
pub(super) struct Source {
    pub(super) poked: Receiver<()>,
    /// Told when jobs got through: all, or so many that half of the places are free.
    pub(super) eased: Receiver<()>,
    pub(super) read_beside: Option<ReadBeside>,
}

impl Source {
    /// What is read with these jobs, in their order, as far as it goes.
    fn read(&self, core: &Core, rows: &[ClaimedRow], asked_at: Instant) -> Vec<Option<Beside>> {
        let Some(read_beside) = &self.read_beside else {
            return Vec::new();
        };
        let read = catch_unwind(AssertUnwindSafe(|| read_beside(rows, asked_at)));
        read.unwrap_or_else(|panic| {
            warn!(core.log, "reading for jobs that were claimed panicked"; "panic" => text(panic.as_ref()));
            Vec::new()
        })
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

    /// Whether it drew some.
    fn draw_ahead(&mut self, core: &Core) -> bool {
        let drawn = (self.0.len() < Self::FEW).then(|| core.database.with(draw_leases));
        let Some(Ok(more)) = drawn else { return false };
        self.0.extend(more);
        true
    }
}

/// How many jobs got through their handlers of late.
struct Speed {
    since: Instant,
    /// By then, since the start.
    through: u64,
    /// Within the queue's `prefetch_time`, before then.
    before: usize,
}

impl Speed {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            through: 0,
            before: 0,
        }
    }

    /// Lets as many jobs wait for a thread as got through within the queue's `prefetch_time`.
    fn see(&mut self, queue: &Queue, now: Instant) {
        let within = queue.options.prefetch_time;
        if within.is_zero() {
            return;
        }
        let through = queue.through.load(Ordering::Relaxed);
        let more = usize::try_from(through - self.through).unwrap_or(usize::MAX);
        let passed = now.saturating_duration_since(self.since);
        let most = if passed < within {
            self.before.max(more)
        } else {
            let share = within.as_secs_f64() / passed.as_secs_f64();
            self.before = (more as f64 * share) as usize;
            (self.since, self.through) = (now, through);
            self.before
        };
        let prefetch = most.min(queue.options.prefetch);
        queue.prefetch.store(prefetch, Ordering::SeqCst);
    }
}

/// What the threads that claim hand to each other: who has it claims.
pub(super) struct Claims {
    leases: Leases,
    speed: Speed,
    more: bool,
    keyed_first: bool,
    failures: u32,
    next_poll: Instant,
    claimed_at: Option<Instant>,
    /// After a failure, when to try again.
    not_before: Option<Instant>,
    over: bool,
}

impl Claims {
    pub(super) fn new() -> Self {
        Self {
            leases: Leases::default(),
            speed: Speed::new(),
            more: true,
            keyed_first: false,
            failures: 0,
            next_poll: Instant::now(),
            claimed_at: None,
            not_before: None,
            over: false,
        }
    }

    /// While jobs are in hand, when the next claim may begin, if not yet.
    fn pace(&self, core: &Core, queue: &Queue, now: Instant) -> Option<Instant> {
        let pace = queue.options.pace + core.apart(queue.options.pace);
        let next = match queue.outstanding.load(Ordering::Acquire) {
            0 if queue.later.load(Ordering::Acquire) == 0 => return None,
            few if few <= queue.half() => self.claimed_at? + pace,
            _ => self.claimed_at? + 3 * pace,
        };
        Some(next).filter(|next| *next > now)
    }

    /// How long there is nothing to do; none if it is time to claim.
    fn wait(&self, queue: &Queue, room: Room, now: Instant) -> Option<Duration> {
        if let Some(not_before) = self.not_before.filter(|at| *at > now) {
            return Some(not_before - now);
        }
        if room.jobs == 0 {
            // A freed place pokes too; the bound only keeps a lost poke from mattering.
            return Some(Duration::from_secs(1));
        }
        let due = self.more || queue.woken.load(Ordering::Acquire) || now >= self.next_poll;
        (!due).then(|| self.next_poll - now)
    }
}

/// What a thread that claims does next.
enum Turn {
    Wait(Duration),
    /// Waits until then, or until jobs got through.
    Pace(Instant),
    /// Claims again, or finds that there is nothing to claim.
    GoOn,
    /// Handles this job, while another one claims.
    Handle(Work),
    End,
}

/// Ends the crew with the first of those that claim, however that ends, and the others after it.
struct Ending<'a>(&'a Hands);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut claims = self.0.claims();
        claims.over = true;
        self.0.crew.end();
        drop(claims);
        self.0.queue.poke();
    }
}

pub(super) fn run(hands: &Arc<Hands>, source: &Source) {
    let _ending = Ending(hands);
    loop {
        match turn(hands, source) {
            Turn::Wait(wait) => {
                let _ = source.poked.recv_timeout(wait);
            }
            Turn::Pace(until) => {
                let _ = source.eased.recv_deadline(until);
            }
            Turn::GoOn => {}
            Turn::Handle(work) => {
                let mut next = Some(work);
                while let Some(work) = next {
                    if !hands.handle(work) {
                        return;
                    }
                    next = hands.crew.next_or_leave();
                }
            }
            Turn::End => return,
        }
    }
}

fn turn(hands: &Arc<Hands>, source: &Source) -> Turn {
    let (core, queue) = (&*hands.core, &*hands.queue);
    let mut claims = hands.claims();
    let claims = &mut *claims;
    if claims.over || core.stopping() {
        return Turn::End;
    }
    let asked_at = Instant::now();
    if let Some(until) = claims.pace(core, queue, asked_at) {
        return Turn::Pace(until);
    }
    claims.speed.see(queue, asked_at);
    let room = room(queue);
    if let Some(wait) = claims.wait(queue, room, asked_at) {
        if claims.not_before.is_none() && claims.leases.draw_ahead(core) {
            return Turn::GoOn;
        }
        return Turn::Wait(wait);
    }
    queue.woken.store(false, Ordering::Release);
    claims.keyed_first = !claims.keyed_first;
    let asked = Asked {
        queue: &queue.name,
        worker: &core.worker,
        room,
        lease: core.lease.max(queue.options.lease_at_least),
        keyed_first: claims.keyed_first,
        vacated: queue.vacated().iter().unzip(),
    };
    match claims.leases.claim(core, &asked) {
        Ok(rows) => {
            if claims.failures > 0 {
                info!(core.log, "claiming again"; "queue" => &queue.name);
            }
            claims.failures = 0;
            claims.not_before = None;
            // Keys share a claim evenly, so one with more to give may have left room.
            claims.more = rows.len() >= room.jobs || rows.iter().any(|row| row.key.is_some());
            claims.next_poll = Instant::now() + jittered(queue.options.poll, 20);
            claims.claimed_at = Some(asked_at);
            match dispatch(hands, source, rows, asked_at) {
                Some(work) => {
                    if claims.more {
                        queue.poke();
                    }
                    Turn::Handle(work)
                }
                None => {
                    claims.leases.draw_ahead(core);
                    Turn::GoOn
                }
            }
        }
        Err(error) => {
            claims.failures += 1;
            claims.more = true;
            let wait = AWAY.after(claims.failures);
            claims.not_before = Some(Instant::now() + wait);
            warn!(core.log, "cannot claim jobs"; "queue" => &queue.name, "error" => %error,
                "failures" => claims.failures, "waitMs" => wait.as_millis() as u64);
            Turn::Wait(wait)
        }
    }
}

fn room(queue: &Queue) -> Room {
    let options = &queue.options;
    let outstanding = queue.outstanding.load(Ordering::SeqCst);
    if outstanding >= queue.enough() {
        return Room::from(0);
    }
    let jobs = (options.threads + queue.prefetch.load(Ordering::SeqCst))
        .saturating_sub(outstanding)
        .min(options.batch);
    let serial = options.serial_most.map_or(jobs, |most| {
        most.saturating_sub(queue.serial.load(Ordering::Acquire))
    });
    Room { jobs, serial }
}

/// Hands out what was claimed; a job that came alone stays with this thread, if another one may claim and one more may
/// be in a handler: nobody has to be woken before it begins.
fn dispatch(
    hands: &Arc<Hands>,
    source: &Source,
    rows: Vec<ClaimedRow>,
    asked_at: Instant,
) -> Option<Work> {
    let queue = &*hands.queue;
    if rows.is_empty() {
        return None;
    }
    let outstanding = rows.len() + queue.outstanding.fetch_add(rows.len(), Ordering::AcqRel);
    let alone = rows.len() == 1;
    // Before anything is read: a stop that comes meanwhile gives them back.
    let batch = hands.enlist(&rows, asked_at);
    let read = source.read(&hands.core, &rows, asked_at);
    let beside = read.into_iter().chain(std::iter::repeat_with(|| None));
    let mut jobs = Work::of(&batch, rows.into_iter().zip(beside));
    if alone && hands.crew.join() {
        return jobs.next();
    }
    hands.hand_out(jobs, outstanding);
    None
}
