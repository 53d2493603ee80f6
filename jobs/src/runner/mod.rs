//! Threads that run jobs. For each queue two that claim, those that handle, one that settles; for all of them one that
//! renews leases, one that rescues what others left, and one that has the database sweep up. Handlers' threads are started
//! when they are needed, up to their number (`crew`), among which counts one that claims while it handles a job itself;
//! all end on stop.
//!
//! Data flows one way: claimer → bounded channels → handlers → bounded channel → settler. A queue never has more jobs
//! claimed than it has threads and prefetch places free; jobs that are enqueued as claimed while a claim is under way
//! come on top, one for each thread at most (`place`).

mod claimer;
mod crew;
mod handler;
mod keeper;
mod place;
mod settler;
mod start;
mod sweeper;

pub(crate) use handler::Hands;
pub use handler::{Later, Outcome};
pub use place::{Place, Taken};
pub use start::{Builder, QueueOptions};

use crate::Database;
use crate::claimed::{Batch, Stage};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What all threads of a runner share.
pub(crate) struct Core {
    database: Database,
    log: slog::Logger,
    worker: String,
    lease: Duration,
    watch: Duration,
    stopping: Arc<AtomicBool>,
    /// Every unsettled lease of this process.
    batches: Mutex<BTreeMap<i64, Arc<Batch>>>,
    queues: Vec<Arc<Queue>>,
    handed_back: AtomicU64,
    leases_left: AtomicBool,
    /// That have jobs in hand, this one included, as of the last look; at most [`keeper::PROCESSES_MOST`].
    processes: AtomicU32,
    /// Disconnected when the deadline of a stop has passed: whoever still waits for the database gives up.
    giving_up: Receiver<()>,
}

pub(crate) struct Queue {
    name: String,
    options: QueueOptions,
    /// Claimed and not yet through their handler, and places that are taken.
    outstanding: AtomicUsize,
    /// How many of them may wait for a thread now.
    prefetch: AtomicUsize,
    /// Through their handlers since the start.
    through: AtomicU64,
    /// Of them, those of serial keys.
    serial: AtomicUsize,
    running: AtomicUsize,
    /// Through their handlers, with an end that is still being written.
    later: AtomicUsize,
    /// Of them, those that take no place of their key any more, and their leases.
    vacated: Mutex<HashMap<i64, i64>>,
    woken: AtomicBool,
    poke: Sender<()>,
    /// Told when nothing is outstanding any more, and when half of the places are free.
    ease: Sender<()>,
    counts: Counts,
    /// Whoever handles its jobs, once that has begun and as long as it goes on.
    hands: OnceLock<Weak<Hands>>,
    /// When a place was filled last.
    filled_at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Counts {
    claimed: AtomicU64,
    done: AtomicU64,
    retried: AtomicU64,
    snoozed: AtomicU64,
    dead: AtomicU64,
    cancelled: AtomicU64,
    merged: AtomicU64,
    lost: AtomicU64,
    handed_back: AtomicU64,
}

/// What a queue's threads in this process have done since the start, and have in hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub claimed: u64,
    /// Completed, by the runner or by the handler itself.
    pub done: u64,
    /// Failed and waiting for another attempt.
    pub retried: u64,
    pub snoozed: u64,
    pub dead: u64,
    pub cancelled: u64,
    /// Gone because another job of the same unique key waited.
    pub merged: u64,
    /// No longer under their lease when they were to be settled.
    pub lost: u64,
    pub handed_back: u64,
    /// In a handler now.
    pub running: u64,
    /// Claimed and waiting for a thread now.
    pub queued: u64,
}

impl Core {
    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn processes(&self) -> u32 {
        self.processes.load(Ordering::Relaxed)
    }

    /// What comes is divided among processes, and for each of them it costs about as much to see to few jobs as to many. So
    /// for each other one twice this pace is added to it.
    fn apart(&self, pace: Duration) -> Duration {
        pace * (2 * (self.processes() - 1))
    }

    fn batches(&self) -> MutexGuard<'_, BTreeMap<i64, Arc<Batch>>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn new(name: String, options: QueueOptions, poke: Sender<()>, ease: Sender<()>) -> Self {
        Self {
            name,
            outstanding: AtomicUsize::new(0),
            prefetch: AtomicUsize::new(options.prefetch),
            through: AtomicU64::new(0),
            options,
            serial: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            later: AtomicUsize::new(0),
            vacated: Mutex::default(),
            woken: AtomicBool::new(false),
            poke,
            ease,
            counts: Counts::default(),
            hands: OnceLock::new(),
            filled_at: Mutex::new(None),
        }
    }

    fn filled_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.filled_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one that claims look at the queue's state.
    fn poke(&self) {
        // A poke that waits already says the same.
        let _ = self.poke.try_send(());
    }

    /// With no more outstanding jobs than this, half of the places for them are free.
    fn half(&self) -> usize {
        usize::midpoint(self.options.threads, self.prefetch.load(Ordering::SeqCst))
    }

    /// So many outstanding jobs that no more are claimed. With prefetch, half of it has to be used up first, so that
    /// batches stay large; without, a thread is to be free.
    fn enough(&self) -> usize {
        match self.prefetch.load(Ordering::SeqCst) {
            0 => self.options.threads,
            prefetch => self.options.threads + prefetch / 2 + 1,
        }
    }

    /// It keeps a pace, and has something in hand.
    fn paces(&self) -> bool {
        let in_hand = [&self.outstanding, &self.later];
        !self.options.pace.is_zero() && in_hand.iter().any(|one| one.load(Ordering::Acquire) > 0)
    }

    /// A job is through its handler.
    fn through(&self) {
        self.through.fetch_add(1, Ordering::Relaxed);
        self.free();
    }

    /// A place is free.
    fn free(&self) {
        // Before what says how many are enough: who claims says that, then looks how many there are.
        let outstanding = self.outstanding.fetch_sub(1, Ordering::SeqCst);
        // With this one there is room again; with others there was.
        if outstanding == self.enough() {
            self.poke();
        }
        if outstanding == 1 || outstanding == self.half() + 1 {
            self.ease();
        }
    }

    fn vacated(&self) -> MutexGuard<'_, HashMap<i64, i64>> {
        self.vacated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job's end was written after its handler had returned.
    fn no_longer_later(&self, id: i64) {
        self.vacated().remove(&id);
        if self.later.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.ease();
        }
    }

    fn ease(&self) {
        if !self.options.pace.is_zero() {
            // One that waits already says the same.
            let _ = self.ease.try_send(());
        }
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        self.poke();
    }

    fn stats(&self) -> Stats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let running = self.running.load(Ordering::Relaxed) as u64;
        Stats {
            claimed: read(&self.counts.claimed),
            done: read(&self.counts.done),
            retried: read(&self.counts.retried),
            snoozed: read(&self.counts.snoozed),
            dead: read(&self.counts.dead),
            cancelled: read(&self.counts.cancelled),
            merged: read(&self.counts.merged),
            lost: read(&self.counts.lost),
            handed_back: read(&self.counts.handed_back),
            running,
            queued: (self.outstanding.load(Ordering::Relaxed) as u64).saturating_sub(running),
        }
    }
}

/// Reaches a runner from anywhere in the process. Cheap to clone; outlives the runner harmlessly.
#[derive(Clone)]
pub struct Handle {
    core: Arc<Core>,
}

impl Handle {
    /// Call after the commit of an enqueue: the queue claims at once instead of at its next poll. A hint: costs next
    /// to nothing, and forgetting it loses nothing.
    pub fn wake(&self, queue: &str) {
        for one in self.core.queues.iter().filter(|one| one.name == queue) {
            one.wake();
        }
    }

    /// A place for a job of this queue that is enqueued as claimed already, if a thread is free for it, none was filled
    /// within half of the queue's pace, and no stop has begun.
    #[must_use]
    pub fn place(&self, queue: &str) -> Option<Place> {
        let queue = self.core.queues.iter().find(|one| one.name == queue)?;
        Place::of(queue.hands.get()?.upgrade()?)
    }

    /// Call after the commit of a cancel that found the job running: tells it at once if it runs in this process;
    /// answers whether it does. Other processes find it within their watch interval.
    pub fn cancelled(&self, id: i64) -> bool {
        let batches: Vec<Arc<Batch>> = self.core.batches().values().cloned().collect();
        let slots = batches.iter().flat_map(|batch| batch.slots.iter());
        let mut found = false;
        for slot in slots.filter(|slot| {
            slot.id == id && (slot.is_at(Stage::Running) || slot.is_at(Stage::Queued))
        }) {
            slot.end(true);
            found = true;
        }
        found
    }

    /// How many processes have jobs of whatever queue in hand, this one included: 1 to 4, as of the last look. It is looked
    /// once in a watch interval in which a queue that keeps a pace has jobs in hand.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.core.processes()
    }

    /// How much more than this pace should lie between what is done for many jobs at once, since other processes share the
    /// work: twice the pace for each of them, nothing where there is none.
    #[must_use]
    pub fn apart(&self, pace: Duration) -> Duration {
        self.core.apart(pace)
    }

    /// Whether a stop has begun: nothing is claimed and no handler is called any more.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.core.stopping()
    }

    /// Figures of one queue; none for a queue that this runner does not serve.
    #[must_use]
    pub fn stats(&self, queue: &str) -> Option<Stats> {
        self.core
            .queues
            .iter()
            .find(|one| one.name == queue)
            .map(|one| one.stats())
    }
}

/// A running set of threads. Dropping it is a stop with no time to finish, which nobody waits for.
pub struct Runner {
    core: Arc<Core>,
    /// Disconnected when every thread that claims, handles or settles has ended.
    workers: Receiver<()>,
    keepers: Receiver<()>,
    keep: Option<Sender<()>>,
    give_up: Option<Sender<()>>,
}

/// How a stop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Jobs given back: another process may take them at once.
    pub handed_back: u64,
    /// Handlers that still run: their threads end when they do, and what they return is fenced off.
    pub unfinished: u64,
    /// Something could not be given back in time: its lease will run out.
    pub leases_left: bool,
}

/// How long, after the deadline of a stop, the last hand-back and the keepers' end are waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long handlers that have just been told to end are waited for, so that the figures are whole.
const HEEDING: Duration = Duration::from_millis(100);

impl Runner {
    /// `database` must give the runner's threads as many connections as two for each queue, and three more.
    #[must_use]
    pub fn builder(database: Database) -> Builder {
        Builder::new(database)
    }

    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            core: Arc::clone(&self.core),
        }
    }

    /// Stops claiming, gives back what has not started, lets handlers finish until the deadline, then tells those that
    /// still run that they have lost, and gives their jobs back ([`QueueOptions::cut_counts`]). Returns at most two
    /// seconds after the deadline, even if the database is away; then the leases run out by themselves.
    pub fn stop(mut self, deadline: Duration) -> Stopped {
        self.tell_to_stop();
        let _ = self.workers.recv_deadline(Instant::now() + deadline);
        self.give_up = None;
        let running = |queue: &Arc<Queue>| queue.running.load(Ordering::Relaxed) as u64;
        let unfinished = self.core.queues.iter().map(running).sum();
        self.keep = None;
        let kept = self.keepers.recv_deadline(Instant::now() + LAST_WORDS);
        // Handlers that heed what they were told are handed back by their own threads as well.
        let _ = self.workers.recv_deadline(Instant::now() + HEEDING);
        Stopped {
            handed_back: self.core.handed_back.load(Ordering::Relaxed),
            unfinished,
            leases_left: kept == Err(RecvTimeoutError::Timeout)
                || self.core.leases_left.load(Ordering::Relaxed),
        }
    }

    fn tell_to_stop(&self) {
        self.core.stopping.store(true, Ordering::Release);
        for queue in &self.core.queues {
            queue.poke();
            queue.ease();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}
