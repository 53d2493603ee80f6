//! The settings of a runner, and the start of its threads, in order.

use super::claimer::Source;
use super::handle::Runner;
use super::options::QueueOptions;
use super::outcome::Outcome;
use super::state::{Condition, QueueState, RunnerState};
use super::thread::{Alive, Lost};
use super::thread_pool::{KEEP_IDLE, ThreadPool};
use super::worker::{Handlers, ReadBeside, WorkerContext};
use super::{claimer, cleaner, completer, leases, rescuer, thread};
use crate::protocol::ClaimedRow;
use crate::{Claimed, Database, Error, Job, Result};
use crossbeam_channel::bounded;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Collects queues and handlers, then starts.
pub struct Builder {
    database: Database,
    lease_database: Option<Database>,
    log: slog::Logger,
    is_quiet: Condition,
    lost: Lost,
    holds: HashMap<String, Condition>,
    worker: String,
    lease: Duration,
    watch: Duration,
    queues: BTreeMap<String, QueueOptions>,
    handlers: HashMap<String, Handlers>,
    reads: HashMap<String, ReadBeside>,
}

impl Runner {
    /// `database` must have two connections for each queue, and three more.
    #[must_use]
    pub fn builder(database: Database) -> Builder {
        Builder::new(database)
    }
}

impl Builder {
    fn new(database: Database) -> Self {
        Self {
            database,
            lease_database: None,
            log: slog::Logger::root(slog::Discard, slog::o!()),
            is_quiet: Box::new(|| false),
            lost: Arc::new(|_| {}),
            holds: HashMap::new(),
            worker: format!("process {}", std::process::id()),
            lease: Duration::from_secs(30),
            watch: Duration::from_secs(1),
            queues: BTreeMap::new(),
            handlers: HashMap::new(),
            reads: HashMap::new(),
        }
    }

    /// Connections through which leases are renewed and rescued, two of them: where work may take all others for longer than a
    /// lease. Without this, those of `database` do it.
    #[must_use]
    pub fn leases_through(mut self, database: Database) -> Self {
        self.lease_database = Some(database);
        self
    }

    #[must_use]
    pub fn log(mut self, log: slog::Logger) -> Self {
        self.log = log;
        self
    }

    /// While this says so, the caller has told of an outage of the database itself: what follows from it is logged at level debug.
    #[must_use]
    pub fn quiet_while(mut self, is_quiet: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.is_quiet = Box::new(is_quiet);
        self
    }

    /// Called with the name of a thread of the runner that ended by a panic. Nothing replaces it, so the process should be
    /// restarted. The panics of handlers are outcomes of their jobs, and end no thread.
    #[must_use]
    pub fn on_lost_thread(mut self, lost: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.lost = Arc::new(lost);
        self
    }

    /// While this says so, the queue's jobs are not claimed here; they stay due. It is asked before each claim, by the thread
    /// that claims.
    #[must_use]
    pub fn hold_while(
        mut self,
        queue: impl Into<String>,
        is_held: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.holds.insert(queue.into(), Box::new(is_held));
        self
    }

    /// Names this process in leases and in the reasons of lost jobs. Only people read it.
    #[must_use]
    pub fn worker(mut self, name: impl Into<String>) -> Self {
        self.worker = name.into();
        self
    }

    /// How long a dead process keeps its jobs; renewed at a third. At least 100 ms. Default 30 s.
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

    /// Registers the handler of a job type on its queue. A payload that cannot be parsed makes the
    /// job dead.
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

    /// Reads what handlers need, for all jobs of a claim at once, in their order, before they are
    /// handed out. [`Claimed::take_beside`] returns it. `read` gets the time of the claim; a job
    /// without a result is handled without. The claim is not yet on disk; a transaction that this
    /// commits, and that writes, brings it there.
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

    /// Starts every thread, except the handlers beyond the first of each queue. If the database is
    /// unreachable they keep trying.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a setting out of bounds or a handler on a queue that is not served;
    /// [`Error::Thread`] if the system refuses a thread.
    pub fn start(mut self) -> Result<Runner> {
        self.check()?;
        let (give_up, giving_up) = bounded(0);
        let mut starts = Vec::new();
        let mut queues = Vec::new();
        for (name, options) in std::mem::take(&mut self.queues) {
            let (poke, poked) = bounded(1);
            let handlers = self.handlers.remove(&name).unwrap_or_default();
            let source = Source {
                poked,
                read_beside: self.reads.remove(&name),
                is_held: self.holds.remove(&name),
            };
            queues.push(Arc::new(QueueState::new(name, options, poke)));
            starts.push((source, handlers));
        }
        let state = Arc::new(RunnerState {
            lease_database: self.lease_database.unwrap_or_else(|| self.database.clone()),
            database: self.database,
            log: self.log,
            is_quiet: self.is_quiet,
            worker: self.worker,
            lease: self.lease,
            watch: self.watch,
            stopping: Arc::new(AtomicBool::new(false)),
            batches: Mutex::new(BTreeMap::new()),
            queues,
            handed_back: AtomicU64::new(0),
            leases_left: AtomicBool::new(false),
            giving_up,
        });
        let lost = self.lost;
        let alive = |running| Alive {
            _running: running,
            lost: Arc::clone(&lost),
        };
        let (working, workers) = bounded(0);
        let (keeping, keepers) = bounded(0);
        let (working, keeping) = (alive(working), alive(keeping));
        let (keep, kept) = bounded(0);
        // If a thread cannot be started, dropping this tells those before it to end.
        let runner = Runner {
            state: Arc::clone(&state),
            workers,
            keepers,
            keep: Some(keep),
            give_up: Some(give_up),
        };
        for (queue, (source, handlers)) in state.queues.iter().zip(starts) {
            serve(&state, queue, handlers, source, &working)?;
        }
        let (shared, stop) = (Arc::clone(&state), kept.clone());
        thread::start("jobs-renew".into(), None, &keeping, move || {
            leases::run(&shared, &stop)
        })?;
        let (shared, stop) = (Arc::clone(&state), kept.clone());
        thread::start("jobs-rescue".into(), None, &keeping, move || {
            rescuer::run(&shared, &stop)
        })?;
        // Nobody waits for its end: a vacuum may take longer than a stop.
        let (cleaning, _) = bounded(0);
        thread::start("jobs-clean".into(), None, &alive(cleaning), move || {
            cleaner::run(&state, &kept)
        })?;
        Ok(runner)
    }

    fn check(&self) -> Result<()> {
        for (name, options) in &self.queues {
            options.check(name)?;
        }
        let served = |queue: &&String| self.queues.contains_key(*queue);
        let mut named = self.handlers.keys().chain(self.reads.keys());
        if let Some(queue) = named.find(|queue| !served(queue)) {
            return Err(Error::Invalid(format!(
                "a handler or a read is registered on queue {queue}, which is not served"
            )));
        }
        if self.lease < Duration::from_millis(100) || self.watch < Duration::from_millis(10) {
            return Err(Error::Invalid(
                "a lease has at least 100 ms, a watch at least 10 ms".into(),
            ));
        }
        Ok(())
    }
}

/// Starts the threads of one queue, those of handlers up to the first one.
fn serve(
    state: &Arc<RunnerState>,
    queue: &Arc<QueueState>,
    handlers: Handlers,
    source: Source,
    alive: &Alive,
) -> Result<()> {
    let options = &queue.options;
    let capacity = options.threads + options.prefetch;
    let (completer, finished) = bounded(capacity.max(options.batch));
    let context = Arc::new(WorkerContext {
        runner: Arc::clone(state),
        queue: Arc::clone(queue),
        pool: ThreadPool::new(options.threads, options.prefetch, KEEP_IDLE),
        handlers,
        completer,
        alive: alive.clone(),
    });
    let (shared, own) = (Arc::clone(state), Arc::clone(queue));
    thread::start(format!("{}-done", queue.name), None, alive, move || {
        completer::run(&shared, &own, &finished)
    })?;
    let claiming = Arc::clone(&context);
    thread::start(format!("{}-claim", queue.name), None, alive, move || {
        claimer::run(&claiming, source)
    })?;
    context.pool.begin(|number| context.start(number))
}
