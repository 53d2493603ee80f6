//! One thread for each queue that claims as many jobs as there is room for: repeatedly while there
//! are more, else when woken and at each poll. It never runs a job itself, so no handler delays a
//! claim.

use super::state::{Condition, QueueState, warn_unless_away};
use super::worker::{ReadBeside, WorkerContext, read_beside};
use crate::Result;
use crate::backoff::{AWAY, jittered};
use crate::protocol::{Claim, ClaimedRow, Room, claim_ahead, draw_leases};
use crossbeam_channel::Receiver;
use slog::debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Where the claimer learns that there is something to claim, and what it reads with it. It is the claimer's own and ends with
/// it: what `is_held` holds may well hold the runner's handle.
pub(super) struct Source {
    pub(super) poked: Receiver<()>,
    pub(super) read_beside: Option<ReadBeside>,
    /// While it says so, nothing is claimed.
    pub(super) is_held: Option<Condition>,
}

/// How often a queue that is held is looked at again, when nothing else wakes it.
const HELD: Duration = Duration::from_millis(500);

/// Names no key: a claim that steps over it alone goes from key to key, so that each has its turn. The oldest jobs first
/// would let one key with many quick jobs, whose threads are free again at each claim, keep all others waiting.
const NO_KEY: &str = "";

/// A claim from key to key looks at each key that has jobs, due or not. So long after it, times what it took, the oldest jobs
/// come first.
const TURNS_SHARE: u32 = 4;

/// Lease ids for the claims to come.
#[derive(Default)]
struct Leases(Vec<i64>);

impl Leases {
    /// When fewer are left, more are drawn beside the claims, so that none waits for that.
    const FEW: usize = 64;

    fn claim(&mut self, context: &WorkerContext, claim: &Claim<'_>) -> Result<Vec<ClaimedRow>> {
        let rows = context.runner.database.with(|client| {
            if self.0.is_empty() {
                self.0 = draw_leases(client)?;
            }
            let Some(lease_id) = self.0.pop() else {
                return Ok(Vec::new());
            };
            let rows = claim_ahead(client, lease_id, claim)?;
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
    fn draw_ahead(&mut self, context: &WorkerContext) -> bool {
        let database = &context.runner.database;
        let drawn = (self.0.len() < Self::FEW).then(|| database.with(draw_leases));
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
    fn see(&mut self, queue: &QueueState, now: Instant) {
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

/// Ends the threads of handlers, however the claimer ends.
struct EndOfPool<'a>(&'a WorkerContext);

impl Drop for EndOfPool<'_> {
    fn drop(&mut self) {
        self.0.pool.end();
    }
}

struct Claimer<'a> {
    context: &'a Arc<WorkerContext>,
    source: Source,
    leases: Leases,
    speed: Speed,
    /// The last claim may have left something.
    more: bool,
    keyed_first: bool,
    /// The fairness key that the last claim from key to key served last.
    served: String,
    /// The last claim took all that it had room for, so some keys may wait behind the others.
    has_backlog: bool,
    /// When a claim goes from key to key again, although none is full.
    next_turns: Instant,
    failures: u32,
    next_poll: Instant,
    /// After a failure, when to try again.
    not_before: Option<Instant>,
}

pub(super) fn run(context: &Arc<WorkerContext>, source: Source) {
    let _end = EndOfPool(context);
    let mut claimer = Claimer {
        context,
        source,
        leases: Leases::default(),
        speed: Speed::new(),
        more: true,
        keyed_first: false,
        served: String::new(),
        has_backlog: false,
        next_turns: Instant::now(),
        failures: 0,
        next_poll: Instant::now(),
        not_before: None,
    };
    while !context.runner.is_stopping() {
        claimer.claim_or_wait();
    }
}

impl Claimer<'_> {
    fn claim_or_wait(&mut self) {
        let now = Instant::now();
        let queue = &*self.context.queue;
        self.speed.see(queue, now);
        // Before the look at what is full: what is freed after it wakes again.
        self.more |= queue.woken.swap(false, Ordering::AcqRel);
        let (room, full) = room(queue);
        if let Some(wait) = self.idle_for(room, now) {
            // What comes meanwhile finds lease ids.
            if self.not_before.is_some() || !self.leases.draw_ahead(self.context) {
                let _ = self.source.poked.recv_timeout(wait);
            }
            return;
        }
        if self
            .source
            .is_held
            .as_ref()
            .is_some_and(|is_held| is_held())
        {
            // What is due stays so.
            let _ = self.source.poked.recv_timeout(HELD);
            return;
        }
        let takes_turns = queue.options.fair
            && full.is_empty()
            && self.has_backlog
            && Instant::now() >= self.next_turns;
        let full = match takes_turns {
            true => vec![NO_KEY.to_owned()],
            false => full,
        };
        self.keyed_first = !self.keyed_first;
        let runner = &*self.context.runner;
        let claim = Claim {
            queue: &queue.name,
            worker: &runner.worker,
            room,
            lease: runner.lease.max(queue.options.lease_at_least),
            keyed_first: self.keyed_first,
            full: &full,
            after: &self.served,
        };
        let asked = Instant::now();
        match self.leases.claim(self.context, &claim) {
            Ok(rows) => {
                if takes_turns {
                    self.next_turns = Instant::now() + TURNS_SHARE * asked.elapsed();
                }
                self.has_backlog = rows.len() >= room.jobs;
                if !full.is_empty() {
                    self.serve_next(&rows);
                }
                self.claimed(rows, room, now);
            }
            Err(error) => self.failed(&error),
        }
    }

    /// The next claim that steps over full keys begins behind the last key that this one served, so that each has its turn.
    fn serve_next(&mut self, rows: &[ClaimedRow]) {
        let keys = rows.iter().filter_map(|row| row.fairness_key.as_deref());
        // A claim goes to the end of the keys, and on from their beginning.
        let last = keys.max_by_key(|key| (*key <= self.served.as_str(), *key));
        if let Some(last) = last {
            self.served = last.to_owned();
        }
    }

    /// How long there is nothing to do; none if it is time to claim.
    fn idle_for(&self, room: Room, now: Instant) -> Option<Duration> {
        if let Some(not_before) = self.not_before.filter(|at| *at > now) {
            return Some(not_before - now);
        }
        if room.jobs == 0 {
            // A job that gets through its handler pokes; the bound only keeps a lost poke from mattering.
            return Some(Duration::from_secs(1));
        }
        let due = self.more || now >= self.next_poll;
        (!due).then(|| self.next_poll - now)
    }

    fn claimed(&mut self, rows: Vec<ClaimedRow>, room: Room, asked_at: Instant) {
        let (runner, queue) = (&*self.context.runner, &*self.context.queue);
        if self.failures > 0 {
            debug!(runner.log, "claiming again"; "queue" => &queue.name);
        }
        self.failures = 0;
        self.not_before = None;
        // Keys share a claim evenly, so one with more to give may have left room.
        self.more = rows.len() >= room.jobs || rows.iter().any(|row| row.key.is_some());
        self.next_poll = Instant::now() + jittered(queue.options.poll, 20);
        if !rows.is_empty() {
            let outstanding =
                rows.len() + queue.outstanding.fetch_add(rows.len(), Ordering::AcqRel);
            // Before anything is read: a stop that comes meanwhile gives them back.
            let batch = self.context.enlist(&rows, asked_at);
            let beside = match &self.source.read_beside {
                Some(read) => read_beside(&runner.log, read, &rows, asked_at),
                None => Vec::new(),
            };
            self.context.hand_out(&batch, rows, beside, outstanding);
        }
        self.leases.draw_ahead(self.context);
    }

    fn failed(&mut self, error: &crate::Error) {
        self.failures += 1;
        self.more = true;
        let wait = AWAY.after(self.failures);
        self.not_before = Some(Instant::now() + wait);
        warn_unless_away!(self.context.runner, "cannot claim jobs"; "queue" => &self.context.queue.name, "error" => #error,
            "failures" => self.failures, "waitMs" => wait.as_millis() as u64);
    }
}

/// What may be claimed, and the fairness keys that nothing more may be claimed of.
fn room(queue: &QueueState) -> (Room, Vec<String>) {
    let options = &queue.options;
    let outstanding = queue.outstanding.load(Ordering::SeqCst);
    if outstanding >= queue.enough() {
        return (Room::from(0), Vec::new());
    }
    let (jobs, full) = if options.fair {
        queue.shares.room(options.threads)
    } else {
        let most = options.threads + queue.prefetch.load(Ordering::SeqCst);
        (most.saturating_sub(outstanding), Vec::new())
    };
    let jobs = jobs.min(options.batch);
    let serial = options.serial_most.map_or(jobs, |most| {
        most.saturating_sub(queue.serial.load(Ordering::Acquire))
    });
    (Room { jobs, serial }, full)
}
