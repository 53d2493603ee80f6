//! Settings of a runner, and the start of its threads, in order, on one screen.

use super::claimer::{Claims, ReadBeside, Source};
use super::crew::{Crew, KEPT};
use super::handler::{Handlers, Hands, Outcome};
use super::{Core, Queue, Runner, claimer, keeper, settler, sweeper};
use crate::protocol::ClaimedRow;
use crate::{Backoff, Claimed, Database, Error, Job, Result};
use crossbeam_channel::{Sender, bounded};
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How one queue is served in this process.
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// Handlers at once; at least 1, at most 4096. Their threads are started when they are needed first, and end when
    /// nobody needed them for a minute. Default 1.
    pub threads: usize,
    /// Claimed jobs that may wait here for a thread, at most 100,000. 0 for long jobs: never claim what cannot start.
    /// Thousands for short ones: batches are what makes them fast. Default 0.
    pub prefetch: usize,
    /// Of these, no more are claimed than jobs got through their handlers within so much time of late: what takes long is
    /// left to other processes, and waits for no thread here. Default zero: all of them.
    pub prefetch_time: Duration,
    /// Of all these, jobs of serial keys at most: keys whose cap is 1. Where a cap of 1 means that a key's jobs are slow
    /// or fail, many such keys leave the other threads to the rest. At least 1. Default `None`: any number.
    pub serial_most: Option<usize>,
    /// Jobs a claim and jobs a settlement, at most 10,000. Default 500.
    pub batch: usize,
    /// Threads are called `PREFIX-N`, `PREFIX-claim` (two of them, which handle jobs too), `PREFIX-settle`; the kernel
    /// shows 15 bytes. Default: the queue.
    pub thread_name: Option<String>,
    /// Stack of a handler's thread. Default 256 KiB.
    pub stack_bytes: usize,
    /// How often an idle queue looks for jobs of other processes and retries that are due, jittered by a fifth.
    /// Default 200 ms.
    pub poll: Duration,
    /// While jobs are claimed and not through their handlers, or their ends are still to be written, how long after a claim
    /// the next one begins at the soonest, so that it takes what came meanwhile at once: and twice as long more for each
    /// other process that has jobs in hand ([`crate::Handle::processes`]), three times all that unless half of the places,
    /// threads and prefetch, are free. Half of it lies between jobs that are enqueued as claimed
    /// ([`crate::Handle::place`]), however many processes there are. Default zero.
    pub pace: Duration,
    /// Whether a stop that cuts a handler off uses its job's attempt up: where what it did outside may have been done.
    /// Default false: the job is as if it had never been claimed.
    pub cut_counts: bool,
    /// For how long jobs are claimed at least, whatever the runner's lease. Default zero.
    pub lease_at_least: Duration,
    /// Waits after failures that name none of their own.
    pub backoff: Backoff,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            prefetch: 0,
            prefetch_time: Duration::ZERO,
            serial_most: None,
            batch: 500,
            thread_name: None,
            stack_bytes: 256 * 1024,
            poll: Duration::from_millis(200),
            pace: Duration::ZERO,
            cut_counts: false,
            lease_at_least: Duration::ZERO,
            backoff: Backoff::default(),
        }
    }
}

/// Collects queues and handlers, then starts.
pub struct Builder {
    database: Database,
    log: slog::Logger,
    worker: String,
    lease: Duration,
    watch: Duration,
    queues: BTreeMap<String, QueueOptions>,
    handlers: HashMap<String, Handlers>,
    reads: HashMap<String, ReadBeside>,
}

impl Builder {
    pub(super) fn new(database: Database) -> Self {
        Self {
            database,
            log: slog::Logger::root(slog::Discard, slog::o!()),
            worker: format!("process {}", std::process::id()),
            lease: Duration::from_secs(30),
            watch: Duration::from_secs(1),
            queues: BTreeMap::new(),
            handlers: HashMap::new(),
            reads: HashMap::new(),
        }
    }

    #[must_use]
    pub fn log(mut self, log: slog::Logger) -> Self {
        self.log = log;
        self
    }

    /// Names this process in leases and in the reasons of jobs it lost. For people, and for the count of the processes that
    /// share the work ([`crate::Handle::processes`]); nothing else depends on it.
    #[must_use]
    pub fn worker(mut self, name: impl Into<String>) -> Self {
        self.worker = name.into();
        self
    }

    /// How long a job of a dead process stays taken; renewed at a third. At least 100 ms. Default 30 s.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How often running jobs are checked for cancels from other processes. Default 1 s.
    #[must_use]
    pub fn watch(mut self, watch: Duration) -> Self {
        self.watch = watch;
        self
    }

    #[must_use]
    pub fn queue(mut self, name: impl Into<String>, options: QueueOptions) -> Self {
        self.queues.insert(name.into(), options);
        self
    }

    /// Registers the handler of a job type on its queue. A payload that does not read as one goes to the dead.
    #[must_use]
    pub fn handle<J: Job>(
        self,
        handler: impl Fn(&Claimed, J) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.handle_named(
            J::QUEUE,
            J::NAME,
            move |claimed| match serde_json::from_str(claimed.payload()) {
                Ok(job) => handler(claimed, job),
                Err(error) => Outcome::dead(format!("the payload does not read: {error}")),
            },
        )
    }

    /// Registers a handler by queue and job name.
    #[must_use]
    pub fn handle_named(
        mut self,
        queue: impl Into<String>,
        name: impl Into<String>,
        handler: impl Fn(&Claimed) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.handlers
            .entry(queue.into())
            .or_default()
            .insert(name.into(), Arc::new(handler));
        self
    }

    /// Has what a queue's handlers begin with read for all jobs that are claimed at once, in their order, before they are
    /// handed out: [`Claimed::take_beside`] finds it. It is told when the claim was asked for; where it has nothing for a
    /// job, the handler is called without. Nobody waits until the claim is on disk: a transaction that this commits, and
    /// that writes, brings it there.
    #[must_use]
    pub fn read_beside(
        mut self,
        queue: impl Into<String>,
        read: impl Fn(&[ClaimedRow], Instant) -> Vec<Option<Box<dyn Any + Send>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.reads.insert(queue.into(), Box::new(read));
        self
    }

    /// Starts all threads, of those that handle one a queue. The database may be away: they keep trying.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a setting out of bounds or a handler on a queue that is not served;
    /// [`Error::Thread`] if the system gives no thread.
    pub fn start(mut self) -> Result<Runner> {
        self.check()?;
        let (give_up, giving_up) = bounded(0);
        let mut starts = Vec::new();
        let mut queues = Vec::new();
        for (name, options) in std::mem::take(&mut self.queues) {
            let (poke, poked) = bounded(1);
            let (ease, eased) = bounded(1);
            let handlers = self.handlers.remove(&name).unwrap_or_default();
            let source = Source {
                poked,
                eased,
                read_beside: self.reads.remove(&name),
            };
            queues.push(Arc::new(Queue::new(name, options, poke, ease)));
            starts.push((source, handlers));
        }
        let core = Arc::new(Core {
            database: self.database,
            log: self.log,
            worker: self.worker,
            lease: self.lease,
            watch: self.watch,
            stopping: Arc::new(AtomicBool::new(false)),
            batches: Mutex::new(BTreeMap::new()),
            queues,
            handed_back: AtomicU64::new(0),
            leases_left: AtomicBool::new(false),
            processes: AtomicU32::new(1),
            giving_up,
        });
        let (working, workers) = bounded(0);
        let (keeping, keepers) = bounded(0);
        let (keep, kept) = bounded(0);
        // If a thread cannot be started, dropping this tells those before it to end.
        let runner = Runner {
            core: Arc::clone(&core),
            workers,
            keepers,
            keep: Some(keep),
            give_up: Some(give_up),
        };
        for (queue, (source, handlers)) in core.queues.iter().zip(starts) {
            serve(&core, queue, handlers, source, &working)?;
        }
        let (shared, stop) = (Arc::clone(&core), kept.clone());
        thread("jobs-renew".into(), None, &keeping, move || {
            keeper::renew(&shared, &stop)
        })?;
        let (shared, stop) = (Arc::clone(&core), kept.clone());
        thread("jobs-rescue".into(), None, &keeping, move || {
            keeper::rescue(&shared, &stop)
        })?;
        // Nobody waits for its end: a vacuum may take longer than a stop.
        let (sweeping, _) = bounded(0);
        thread("jobs-sweep".into(), None, &sweeping, move || {
            sweeper::run(&core, &kept)
        })?;
        Ok(runner)
    }

    fn check(&self) -> Result<()> {
        let invalid = |what: String| Err(Error::Invalid(what));
        for (name, options) in &self.queues {
            if !(1..=4096).contains(&options.threads)
                || options.prefetch > 100_000
                || options.serial_most == Some(0)
                || !(1..=10_000).contains(&options.batch)
                || options.poll < Duration::from_millis(1)
            {
                return invalid(format!(
                    "queue {name}: threads 1 to 4096, prefetch to 100,000, serial_most from 1, batch 1 to 10,000, poll from 1 ms"
                ));
            }
        }
        if let Some(queue) = self
            .handlers
            .keys()
            .chain(self.reads.keys())
            .find(|queue| !self.queues.contains_key(*queue))
        {
            return invalid(format!(
                "a handler or a read is registered on queue {queue}, which is not served"
            ));
        }
        if self.lease < Duration::from_millis(100) || self.watch < Duration::from_millis(10) {
            return invalid("a lease has at least 100 ms, a watch at least 10 ms".into());
        }
        Ok(())
    }
}

/// Threads of a queue that claim in turns: while one handles the job that it claimed, the other claims.
const CLAIMERS: usize = 2;

/// Starts the threads of one queue, those that only handle up to the first one.
fn serve(
    core: &Arc<Core>,
    queue: &Arc<Queue>,
    handlers: Handlers,
    source: Source,
    alive: &Sender<()>,
) -> Result<()> {
    let options = &queue.options;
    let prefix = options.thread_name.as_deref().unwrap_or(&queue.name);
    let capacity = options.threads + options.prefetch;
    let (finished, settling) = bounded(capacity.max(options.batch));
    let hands = Arc::new(Hands {
        core: Arc::clone(core),
        queue: Arc::clone(queue),
        crew: Crew::new(options.threads, options.prefetch, KEPT),
        claims: Mutex::new(Claims::new()),
        handlers,
        finished,
        alive: alive.clone(),
    });
    // Nobody else sets it.
    let _ = queue.hands.set(Arc::downgrade(&hands));
    let source = Arc::new(source);
    for _ in 0..CLAIMERS {
        let (claiming, source) = (Arc::clone(&hands), Arc::clone(&source));
        thread(
            format!("{prefix}-claim"),
            Some(options.stack_bytes),
            alive,
            move || claimer::run(&claiming, &source),
        )?;
    }
    hands.crew.begin(|number| hands.start(number))?;
    let (shared, own) = (Arc::clone(core), Arc::clone(queue));
    thread(format!("{prefix}-settle"), None, alive, move || {
        settler::run(&shared, &own, &settling)
    })
}

/// `alive` is dropped when the thread ends, however it ends.
pub(super) fn thread(
    name: String,
    stack_bytes: Option<usize>,
    alive: &Sender<()>,
    run: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let alive = alive.clone();
    let mut builder = std::thread::Builder::new().name(name);
    if let Some(bytes) = stack_bytes {
        builder = builder.stack_size(bytes);
    }
    let body = move || {
        run();
        drop(alive);
    };
    builder.spawn(body).map(drop).map_err(Error::Thread)
}
