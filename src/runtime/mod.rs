//! Runs: created, executed by threads of their own until they end, cancelled.
//!
//! ```text
//! queued ──claim──► running ──► completed | failed | cancelled
//!    │                │  ▲
//!    │             wait  claim
//!    │                ▼  │
//!    └──cancel──►  waiting ──cancel──► cancelled
//! ```
//!
//! Guarantees:
//!
//! - A step's row is committed before its effect begins, and its answer, events and usage in one
//!   transaction afterwards (`journal-before-effect`). A completed step is never repeated.
//!
//! - A finished run never changes, but its payload may be erased. A cancel wins over a late success (`fenced-run`).
//!
//! - A waiting run holds no thread and no lease (`cheap-waiting`), and something always wakes it
//!   (`no-lost-wake-up`).
//!
//! - After a crash a run continues from its journal once its job's lease has run out
//!   (`driver::plan` decides how).
//!
//! Not here: HTTP, access checks, SQL (`store`), the queue (`jobs`), the protocol of model
//! providers (`model`).

mod active_runs;
mod clients;
mod counts;
mod driver;
mod erasure;
mod fault_counter;
mod flow;
mod hold;
mod job;
pub mod journal;
mod maintenance;
mod model_keys;
mod model_provider;
mod options;
mod program;
pub mod progress;
mod report_ends;
mod retry;
mod run_bounds;
mod services;
mod spans;
mod steps;
mod suspects;
pub mod tool_approvals;
mod tool_children;
pub mod turn;

pub use counts::{ApprovalStats, BOUNDS, Durations, ModelCalls, Stats, ToolOutcome, WAIT_BOUNDS};
pub use flow::{FlowLimits, FlowPosition};
pub use job::StartedBy;
pub use model_keys::ModelKeys;
pub use model_provider::{ProviderCheck, ProviderRow};
pub use options::Options;
pub use program::BuiltIn;
pub use retry::Retry;
pub use run_bounds::RunLimits;
pub use services::Dependencies;
pub use steps::outcome::outcome as step_outcome;

use crate::error::{Code, Error, Result};
use crate::flows::definition::tree::Definition;
use crate::ids::Clock;
use crate::log::trace::TraceContext;
use crate::model::Probed;
use crate::proof::{Kind, May, Write};
use crate::store::approvals::ApprovalStatus;
use crate::store::conversations::Conversation;
use crate::store::runs::{self, Begins, Cancelled, NewRun, Run};
use crate::store::{Sql, Store, Tx};
use crate::threads;
use crate::tools::STACK_BYTES;
use crossbeam_channel::{Receiver, Sender, bounded};
use erasure::EraseConversation;
use job::Advance;
use progress::events::Event;
use progress::feed::Feed;
use progress::text;
use serde_json::{Map, Value};
use services::Services;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use uuid::Uuid;

/// Runs in this process. Cheap to clone.
#[derive(Clone)]
pub struct Runtime(Arc<Services>);

/// What a request to take a run up again came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// The run was created.
    New(Box<Run>),
    /// An earlier request with the same key created this run.
    Earlier(Uuid),
}

/// What one of [`Threads`] does until its channel disconnects.
type Work = fn(&Services, &Receiver<()>);

/// The threads beside the queue's. Dropping it ends them and waits for that.
pub struct Threads {
    stop: Option<Sender<()>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Runtime {
    /// Puts the parts together; starts nothing.
    pub fn new(
        store: Store,
        clock: Clock,
        dependencies: Dependencies,
        options: Options,
        log: slog::Logger,
    ) -> Self {
        Self(Arc::new(Services::new(
            store,
            clock,
            dependencies,
            options,
            log,
        )))
    }

    /// Adds the queues `runs` and `erasures` with their handlers: the threads `runs-N` and `erasures-N`.
    pub fn serve(&self, builder: jobs::Builder) -> jobs::Builder {
        let (services, erasing, holding) = (self.0.clone(), self.0.clone(), self.0.clone());
        let options = jobs::QueueOptions {
            // A tenant's runs hold half of the threads at most, so that others begin whatever its providers do
            // (`bulkheads`).
            threads: 2 * self.0.options.threads,
            fair: true,
            poll: self.0.options.poll,
            stack_bytes: STACK_BYTES,
            // After faults of the service's own, such as a database that is away. The attempts that
            // a lease lost count too, so the wait has a low bound.
            backoff: jobs::Backoff {
                first: Duration::from_millis(500),
                most: Duration::from_secs(15),
            },
            ..jobs::QueueOptions::default()
        };
        builder
            .queue(job::QUEUE, options)
            .hold_while(job::QUEUE, move || {
                holding.hold.look(&holding.store, &holding.log)
            })
            .handle::<Advance>(move |claimed, job| driver::advance(&services, claimed, &job))
            .queue(<EraseConversation as jobs::Job>::QUEUE, erasure::queue())
            .handle::<EraseConversation>(move |claimed, job| erasure::erase(&erasing, claimed, job))
    }

    /// Lets runs that are created here wake this process's queue. To be called once it is started.
    pub fn woken_by(&self, queue: jobs::Handle) {
        // A second queue in one process is not woken, and polls.
        let _ = self.0.queue.set(queue);
    }

    /// Starts the threads that watch running runs, write streamed text, and keep the tables up.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start_threads(&self) -> Result<Threads> {
        let (stop, stopped) = bounded(0);
        let mut started = Threads {
            stop: Some(stop),
            threads: Vec::new(),
        };
        let all: [(&str, Work); 3] = [
            ("runs-watch", |services, stop| {
                active_runs::watch(&services.active, &services.store, &services.log, stop);
            }),
            ("runs-text", |services, stop| {
                text::write_gathered(&services.text, &services.store, &services.log, stop);
            }),
            ("runs-upkeep", |services, stop| {
                maintenance::repeat(services, stop);
            }),
        ];
        for (name, work) in all {
            let (services, stopped) = (self.0.clone(), stopped.clone());
            let work = move || work(&services, &stopped);
            let thread = threads::start(name, Some(256 * 1024), work).map_err(Error::internal)?;
            started.threads.push(thread);
        }
        Ok(started)
    }

    /// Makes the partitions that new runs are written to. To be done before the first run of a
    /// fresh database; the thread `runs-upkeep` repeats it.
    pub fn prepare(&self) -> Result<()> {
        maintenance::round(&self.0.store, &self.0.clock)
    }

    /// Erases the payloads of runs that ended longer ago than they are kept, if that is set; the thread `runs-upkeep`
    /// repeats it.
    pub fn erase_old_payloads(&self) -> Result<()> {
        maintenance::erase_old(&self.0, &crossbeam_channel::never())
    }

    /// Marks a conversation as one to be erased, and has that done once the caller's transaction has committed.
    ///
    /// # Errors
    /// `conflict` while a run is under way in it.
    pub fn erase_conversation(
        &self,
        tx: &mut Tx<'_>,
        may: &impl May<Write, Conversation>,
    ) -> Result<Conversation> {
        let marked = erasure::request(&self.0, tx, may)?;
        let services = self.0.clone();
        tx.after_commit(move || {
            if let Some(queue) = services.queue.get() {
                queue.wake(<EraseConversation as jobs::Job>::QUEUE);
            }
        });
        Ok(marked)
    }

    /// Whether an operator holds all runs, as this process read it last.
    pub fn is_held(&self) -> bool {
        self.0.hold.last()
    }

    /// Runs whose payloads this process has erased.
    pub fn payloads_erased(&self) -> u64 {
        self.0.payloads_erased.load(Ordering::Relaxed)
    }

    /// What the queue of runs has done in this process; none before it is started.
    pub fn queue_stats(&self) -> Option<jobs::Stats> {
        self.0.queue.get()?.stats(job::QUEUE)
    }

    /// Counts an approval that was closed for a reviewer; `waited`: before somebody decided.
    pub fn count_approval(&self, status: ApprovalStatus, waited: Option<Duration>) {
        self.0.counts.approval(status, waited);
    }

    /// What runs did in this process.
    pub fn stats(&self) -> Stats {
        self.0.counts.stats()
    }

    /// Hints for stream threads.
    pub fn feed(&self) -> &Feed {
        &self.0.feed
    }

    /// The definition of a version of a project's flow. `None`: the project has no such version.
    ///
    /// # Errors
    /// The database's; internal, when the database holds a definition that this program does not take.
    pub fn flow_definition(
        &self,
        sql: &mut impl Sql,
        project: (Uuid, Uuid),
        version: (&str, &str),
    ) -> Result<Option<Arc<Definition>>> {
        self.0.definitions.definition(sql, project, version)
    }

    /// Why fixtures do not suit a version of a project's flow, as a part of a sentence. `None`: each stands for a step of it, or of
    /// a flow that it runs.
    ///
    /// # Errors
    /// The database's; internal, when the database holds a definition that this program does not take.
    pub fn fault_of_fixtures(
        &self,
        sql: &mut impl Sql,
        project: (Uuid, Uuid),
        version: (&str, &str),
        fixtures: &Map<String, Value>,
    ) -> Result<Option<String>> {
        flow::fault_of_fixtures(sql, &self.0.definitions, project, version, fixtures)
    }

    /// Creates a run, with its job, in one statement: in the caller's transaction, or by itself. After its commit call
    /// [`Runtime::wake`]. `may` proves that the caller may start runs in the project or with the agent.
    ///
    /// # Errors
    /// `project-archived`, `agent-archived`; `conflict` while another turn of the conversation is under way;
    /// `too-many-requests` while the tenant has too many runs that have not ended.
    pub fn create<K: Kind>(
        &self,
        sql: &mut impl Sql,
        may: &impl May<Write, K>,
        run: &NewRun,
        started_by: StartedBy,
    ) -> Result<Run> {
        let job = Advance {
            tenant_id: may.tenant_id(),
            run_id: run.run_id,
            project_id: run.project_id,
            agent_id: run.agent.as_ref().map(|agent| agent.id),
            started_by,
        };
        self.check_room(sql, job.tenant_id)?;
        let (first, job) = (Event::created(run).row(), job.new_job()?);
        let environment = self.environment();
        runs::insert(
            sql,
            may,
            run,
            &Begins {
                first,
                job,
                environment,
            },
        )
    }

    /// The environment that this server serves.
    pub fn environment(&self) -> Option<&str> {
        self.0.options.environment.as_deref()
    }

    /// Whether the tenant may have another run.
    fn check_room(&self, sql: &mut impl Sql, tenant_id: Uuid) -> Result<()> {
        let count = |of, most| runs::count(sql, of, most);
        match self.0.bounds.reached((tenant_id, None), 1, count)? {
            None => Ok(()),
            Some(reached) => {
                self.0.note_reached(tenant_id, reached);
                Err(Error::new(Code::TooManyRequests, format!("{reached}.")))
            }
        }
    }

    /// Runs that were refused in this process because there are too many: below roots, and of tenants.
    pub fn runs_refused(&self) -> [u64; 2] {
        self.0.bounds.refused()
    }

    /// A run was created and its transaction committed: begins at once instead of at the next poll.
    pub fn wake(&self) {
        self.0.wake_queue();
    }

    /// Asks a model provider's server as an agent does.
    ///
    /// # Errors
    /// Why nothing can be asked, as a sentence.
    pub fn check_provider(&self, check: &ProviderCheck<'_>) -> Result<Probed, String> {
        check.run(&self.0)
    }

    /// Asks a run to end, and returns it as it stands then. A run that nobody carries on ends at
    /// once; one that this process holds is cut at once; one on another replica within
    /// about half a second. One with many runs below it ends once they have, and is returned before.
    /// A finished run is returned as it is. Nothing is changed where `before_commit` fails.
    ///
    /// # Errors
    /// The database's; those of `before_commit`.
    pub fn cancel(
        &self,
        may: &impl May<Write, Run>,
        before_commit: impl FnOnce() -> Result<()>,
    ) -> Result<Run> {
        let (tenant_id, run_id) = (may.tenant_id(), may.object_id());
        let now = self.0.clock.now();
        let (cancelled, run, ended, trace) = self.0.store.transact(|tx| {
            let trace = self.trace_of(tx, may)?;
            let (cancelled, ended) = runs::cancel(tx, may, now)?;
            let run = runs::find(tx, tenant_id, run_id)?;
            before_commit()?;
            if cancelled == Cancelled::AtOnce {
                // Last, since the endpoint's row may be held from here to the commit.
                self.0.webhooks.run_finished(tx, tenant_id, run_id)?;
            }
            Ok((cancelled, run, ended, trace))
        })?;
        let own = trace.as_ref().map(|trace| (run_id, trace));
        report_ends::report(&self.0, &self.0.log, own, &ended);
        if cancelled != Cancelled::Finished {
            self.0.feed.changed(run_id);
            self.0.active.interrupt(run_id);
            self.wake();
        }
        Ok(run)
    }

    /// The span of a run that has not ended, where spans are recorded. Its job alone knows it.
    fn trace_of(
        &self,
        sql: &mut impl Sql,
        may: &impl May<Write, Run>,
    ) -> Result<Option<TraceContext>> {
        if !self.0.traces.is_on() {
            return Ok(None);
        }
        let payload = runs::job_payload(sql, may)?;
        let job = payload.and_then(|payload| serde_json::from_value::<Advance>(payload).ok());
        Ok(job.map(|job| job.trace()))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has been logged by the panic hook.
            let _ = thread.join();
        }
    }
}
