//! The threads that run handlers.
//!
//! The number of working threads is fixed. A thread that one request holds beyond its deadline
//! counts as stuck, and another one replaces it, up to the same number again. When the stuck one
//! returns it ends, unless the pool is short of threads. So one dependency that hangs does not take
//! every thread.

use super::app::App;
use super::body::Intake;
use super::context::Context;
use super::counters::Counters;
use super::limits::Limits;
use super::queue::{Queue, Seat};
use super::reply::{Answer, Reply, Responder, convert};

use crate::error::{Code, Error};
use crate::log::{ErrorValue, Panic};
use slog::{error, warn};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Work for a request thread.
pub(super) enum Job {
    /// May this body be read, and how much of it?
    Admit {
        context: Arc<Context>,
        to: oneshot::Sender<Admission>,
    },
    /// A complete request.
    Handle { body: Intake, responder: Responder },
}

/// What becomes of a body.
pub(super) enum Admission {
    /// It is read, up to this many bytes.
    Read(u64),
    /// It is not: this is the answer.
    Refuse(Answer),
}

pub(super) struct Pool {
    limits: Arc<Limits>,
    app: Arc<dyn App>,
    counters: Arc<Counters>,
    pub(super) jobs: Queue<Job>,
    log: slog::Logger,
    opened: Instant,
    /// [`Pool::now`] when the threads were last looked after.
    looked_at: AtomicU64,
    members: Mutex<Members>,
    left: Condvar,
}

#[derive(Default)]
struct Members {
    /// Threads started so far; the next one's number.
    started: usize,
    /// Threads that take work.
    healthy: usize,
    /// The stop has been seen: nobody takes a stuck thread's place any more.
    ending: bool,
    alive: Vec<(Arc<Slot>, JoinHandle<()>)>,
}

/// One thread.
#[derive(Default)]
struct Slot {
    /// [`WAITING`], [`STUCK`], or [`Pool::now`] at the beginning of its job.
    busy_since: AtomicU64,
    ended: AtomicBool,
}

const WAITING: u64 = 0;
const STUCK: u64 = u64::MAX;

impl Pool {
    pub(super) fn new(
        limits: Arc<Limits>,
        app: Arc<dyn App>,
        counters: Arc<Counters>,
        log: slog::Logger,
    ) -> Self {
        Self {
            jobs: Queue::new(limits.queue_length),
            limits,
            app,
            counters,
            log,
            opened: Instant::now(),
            looked_at: AtomicU64::new(1),
            members: Mutex::default(),
            left: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts threads until the pool has its number, stuck ones apart.
    pub(super) fn fill(self: &Arc<Self>) -> std::io::Result<()> {
        let mut members = self.lock();
        while members.healthy < self.limits.request_threads
            && members.alive.len() < 2 * self.limits.request_threads
            && !members.ending
        {
            let slot = Arc::new(Slot::default());
            let (pool, own) = (Arc::clone(self), Arc::clone(&slot));
            let thread = std::thread::Builder::new()
                .name(format!("request-{}", members.started))
                .spawn(move || pool.work(&own))?;
            if members.started >= self.limits.request_threads {
                self.counters
                    .threads_replaced
                    .fetch_add(1, Ordering::Relaxed);
            }
            members.started += 1;
            members.alive.push((slot, thread));
            self.set_healthy(&mut members, 1);
        }
        Ok(())
    }

    fn set_healthy(&self, members: &mut Members, change: isize) {
        members.healthy = members.healthy.saturating_add_signed(change);
        let healthy = members.healthy;
        self.counters
            .request_threads
            .store(healthy, Ordering::Relaxed);
    }

    /// Finds threads held beyond the request deadline and starts others in their place.
    pub(super) fn look_after(self: &Arc<Self>) {
        let now = self.now();
        self.looked_at.store(now, Ordering::Relaxed);
        let most = u64::try_from(self.limits.request_deadline.as_millis()).unwrap_or(u64::MAX);
        let mut members = self.lock();
        let mut newly_stuck = 0;
        for (slot, thread) in &members.alive {
            let since = slot.busy_since.load(Ordering::Acquire);
            let held = since != WAITING && since != STUCK && now.saturating_sub(since) > most;
            // It fails where the thread has just finished that job.
            let mark = || {
                slot.busy_since
                    .compare_exchange(since, STUCK, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok()
            };
            if held && mark() {
                newly_stuck += 1;
                warn!(self.log, "a request holds its thread beyond its deadline";
                    "thread" => thread.thread().name().unwrap_or_default().to_owned());
            }
        }
        members
            .alive
            .retain(|(slot, _)| !slot.ended.load(Ordering::Acquire));
        self.set_healthy(&mut members, -newly_stuck);
        let stuck = newly_stuck.unsigned_abs();
        self.counters
            .stuck_threads
            .fetch_add(stuck, Ordering::Relaxed);
        drop(members);
        if let Err(cause) = self.fill() {
            error!(self.log, "a request thread could not be started"; ErrorValue(&cause));
        }
    }

    /// How long ago the threads were last looked after.
    pub(super) fn unattended(&self) -> Duration {
        let since = self.looked_at.load(Ordering::Relaxed);
        Duration::from_millis(self.now().saturating_sub(since))
    }

    /// Milliseconds since the pool was made, plus 1, so never 0.
    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn work(&self, slot: &Slot) {
        let mut healthy = true;
        let seat = Arc::<Seat<Job>>::default();
        while healthy {
            let Some(job) = self.jobs.next(&seat) else {
                break;
            };
            slot.busy_since.store(self.now(), Ordering::Release);
            self.run(job);
            let was = slot.busy_since.swap(WAITING, Ordering::AcqRel);
            healthy = was != STUCK || self.comes_back();
        }
        let mut members = self.lock();
        slot.ended.store(true, Ordering::Release);
        if healthy {
            self.set_healthy(&mut members, -1);
        }
        self.left.notify_all();
    }

    /// A stuck thread is free again: it stays where the pool is short of threads.
    fn comes_back(&self) -> bool {
        let mut members = self.lock();
        self.counters.stuck_threads.fetch_sub(1, Ordering::Relaxed);
        let short = members.healthy < self.limits.request_threads;
        if short {
            self.set_healthy(&mut members, 1);
        }
        short
    }

    fn run(&self, job: Job) {
        match job {
            Job::Admit { context, to } if !to.is_closed() => {
                let asked = || {
                    let head = context.request(Vec::new());
                    self.app.admit(&head, &context)
                };
                let most = self.limits.answer_bytes;
                let admission = match catch_unwind(AssertUnwindSafe(asked)) {
                    Ok(Ok(bytes)) => Admission::Read(bytes),
                    Ok(Err(refused)) => {
                        Admission::Refuse(convert(Reply::Full(refused), most, &context))
                    }
                    Err(panic) => {
                        self.note_panic(&context, &*panic);
                        Admission::Refuse(Err(Error::internal("admit panicked")))
                    }
                };
                // Nobody waits any more: the client left meanwhile.
                let _ = to.send(admission);
            }
            Job::Handle {
                mut body,
                responder,
            } if responder.is_wanted() => {
                let context = Arc::clone(responder.context());
                let request = context.request(body.take());
                let handled = || self.app.handle(&request, responder);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(handled)) {
                    self.note_panic(&context, &*panic);
                }
            }
            // The client has left, or the deadline passed in the queue.
            Job::Admit { .. } | Job::Handle { .. } => {}
        }
    }

    fn note_panic(&self, context: &Context, panic: &(dyn Any + Send)) {
        self.counters.panics.fetch_add(1, Ordering::Relaxed);
        error!(context.log(&self.log), "a handler panicked"; ErrorValue(&Panic::caught(panic)));
    }

    /// Waits for every thread to end, which they do once nothing can queue work any more.
    pub(super) fn join(&self, deadline: Instant) -> bool {
        let mut members = self.lock();
        members.ending = true;
        while members
            .alive
            .iter()
            .any(|(slot, _)| !slot.ended.load(Ordering::Acquire))
        {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            members = self
                .left
                .wait_timeout(members, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(guard, _)| guard);
        }
        let alive = std::mem::take(&mut members.alive);
        drop(members);
        alive.into_iter().all(|(_, thread)| thread.join().is_ok())
    }
}

/// 503, where the queue has no room.
pub(super) fn queue_full() -> Error {
    Error::new(
        Code::Overloaded,
        "Too many requests are waiting. Try again shortly.",
    )
}
