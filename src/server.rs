//! Start and stop of the server, on one screen: every thread, in order, and how each ends.
//!
//! | thread | does | ends |
//! |---|---|---|
//! | `door` | connections | `Door::stop`: no new ones; answers in flight within the deadline |
//! | `request-N` | handlers | with the door |
//! | `stream-N`, `stream-tail`, `stream-access` | open streams; whether their readers still may | `Streams::stop`: each gets `stream.end` |
//! | `run-N`, as many as needed at once, and the queue's own | runs | `jobs::Runner::stop`: leases handed back |
//! | `authz-sync` | makes tenants' stores, keeps permissions in step | `Reconciler::stop`, before the next call |
//! | `runs-…` | watch runs, write text, keep tables up | with the runs |
//! | `webhooks-N` and the queue's own | attempts at deliveries of webhooks | with the runs, of whose runner they are part; where a backend of secrets is set |
//! | `webhooks-upkeep` | keeps the tables of webhooks up | with the runs, after both queues |
//! | `audit-writer`, `audit-watch`, `audit-keeper` | write access decisions that no request thread does; give up those that are late; keep their tables up | `audit::Running::stop`, after all that records: what waits is written |
//! | `starter` | waits for the database, migrates, seeds; then sees whether the database answers, and wipes secrets that were kept in memory for their time | with the server |
//! | `watchdog`, `watchdog-ask` | whether a part is stuck; asks the database aside | with the server |
//! | `store-timeout`, `store-cancel`, `store-close`, the pool's | stuck statements, connections; the audit has its own | with the last user of the store |
//! | `stop-…` | wait for the above, one each | with what they wait for, or with the process |
//!
//! A stop has one deadline for everything. What has not ended by then, such as a statement on a
//! database that stands still, is left behind: the process is to exit.
//!
//! The door is open before the database is up: probes answer, everything else is a 503 that says
//! so. A database that refuses for good (too old, too new, no rights) ends the server with the
//! reason; one that is away is waited for.

mod listen;
pub mod options;
mod watchdog;

use crate::audit;
use crate::authn::{Authn, bearer, public};
use crate::authz::desired_tuples::{self, Object};
use crate::authz::permissions::{self, Permissions};
use crate::authz::{self, Admission};
use crate::concurrency_limit::Limiter;
use crate::error::{Code, Error, Result};
use crate::http::context::Shared;
use crate::http::pipeline::Pipeline;
use crate::http::probes::Probes;
use crate::http::route::{Mount, Table};
use crate::http::{door, sse};
use crate::ids::Clock;
use crate::log::Subsystem;
use crate::metrics;
use crate::outbound::Outbound;
use crate::runtime::{self, ModelKeys, Runtime, Threads};
use crate::secret::Secret;
use crate::secrets::{self, Secrets};
use crate::store::{self, Store, migrations, tenants, tokens};
use crate::webhooks::{self, Webhooks};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;
pub use watchdog::Part;
use watchdog::Watchdog;

/// Pause between looks at a database that is away.
const PAUSE: Duration = Duration::from_millis(200);

/// How often a ready server looks whether its database still answers, and for secrets to wipe.
const CHECK: Duration = Duration::from_secs(2);

/// How long open streams have for their last word before the door begins to close.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long, after the deadline of a stop, what is left is cut off and jobs are handed back.
const GRACE: Duration = Duration::from_secs(3);

/// The tenant that the server seeds or finds again (section 1.3).
#[derive(Debug, Clone)]
pub struct Seeds {
    /// The tenant.
    pub tenant_id: Uuid,
    /// Its first admin.
    pub user_id: Uuid,
    /// The token of that user.
    pub token: Secret,
}

/// Everything that a server is made of.
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The door's bounds.
    pub limits: door::Limits,
    /// The database.
    pub store: store::Options,
    /// The seeded tenant.
    pub seeds: Seeds,
    /// Mount the API reference.
    pub docs: bool,
    /// Origins of browsers that may follow a run.
    pub allowed_origins: Vec<String>,
    /// Signs public run tokens, where they are on.
    pub signer: Option<public::Signer>,
    /// The way out.
    pub outbound: Outbound,
    /// The API keys that a tenant's model provider may name.
    pub model_keys: ModelKeys,
    /// Runs.
    pub runs: runtime::Options,
    /// After it the runs of a dead process are taken over.
    pub run_lease: Duration,
    /// Streams.
    pub streams: sse::Options,
    /// The record of decisions.
    pub audit: audit::Options,
    /// The authorization server; none: authorization is off.
    pub authorization: Option<permissions::Options>,
    /// How often one credential may be denied in a minute.
    pub denials_per_minute: u32,
    /// Where secrets live.
    pub secrets: secrets::Options,
    /// Outbound webhooks.
    pub webhooks: webhooks::Options,
}

/// A running server.
pub struct Server {
    address: SocketAddr,
    /// Taken out to be stopped; the metrics look at it without waiting.
    door: Arc<Mutex<Option<door::Door>>>,
    shared: Arc<Shared>,
    probes: Arc<Probes>,
    watchdog: Arc<Watchdog>,
    starter: Ending,
    /// Dropped when the server stops.
    running: Sender<()>,
    ready: Receiver<Result<()>>,
    work: Arc<Mutex<Option<Work>>>,
    audit: audit::Running,
    log: slog::Logger,
}

/// Runs being carried on, and webhooks being sent.
struct Work {
    runner: jobs::Runner,
    run_threads: Threads,
    webhooks: webhooks::Keeper,
    permissions: Option<permissions::Reconciler>,
}

impl Work {
    /// Hands back what is not done by then, so that it goes on elsewhere at once. False: something
    /// could not be handed back, and waits until its lease has run out, or the permissions' thread
    /// has not ended.
    fn stop(self, deadline: Instant) -> bool {
        if let Some(keeper) = &self.permissions {
            keeper.tell_to_stop();
        }
        let stopped = self
            .runner
            .stop(deadline.saturating_duration_since(Instant::now()));
        drop(self.run_threads);
        drop(self.webhooks);
        let kept = self.permissions.is_none_or(|keeper| keeper.stop(deadline));
        kept && !stopped.leases_left
    }
}

impl Server {
    /// Opens the door and begins to get ready.
    ///
    /// # Errors
    /// The address is taken, a setting is no use, or the system gives no thread.
    pub fn start(mut options: Options, clock: &Clock, log: &slog::Logger) -> Result<Self> {
        let sub = |name| crate::log::subsystem(log, name);
        let manager = store::connect::Manager::new(&options.store)?;
        let (seeds, run_lease) = (options.seeds.clone(), options.run_lease);
        let silence = watchdog::silence(&options.store);
        let (limits, docs) = (options.limits.clone(), options.docs);
        let listener = listen::open(options.listen)?;
        options.webhooks.listening = listener.local_addr().ok();
        let own = sub(Subsystem::Audit);
        let (recorder, audit) = audit::start(&options.audit, &options.store, clock, &own)?;
        let shared = Arc::new(share(options, recorder, clock, log)?);
        let probes = Arc::new(Probes::new());
        let pipeline = Pipeline::new(
            Arc::clone(&shared),
            table(docs, shared.secrets.is_on()),
            Arc::clone(&probes),
            sub(Subsystem::Http),
        );
        let door = door::Door::open(
            listener,
            limits,
            Arc::new(pipeline),
            clock.clone(),
            sub(Subsystem::HttpDoor),
        )?;
        let address = door.local_addr();
        let door = Arc::new(Mutex::new(Some(door)));
        let (running, stopped) = bounded(0);
        let watchdog = Watchdog::start(watchdog::Watched {
            silence,
            door: Arc::clone(&door),
            audit: shared.audit.clone(),
            manager: manager.clone(),
            probes: Arc::clone(&probes),
            stopped: stopped.clone(),
            log: sub(Subsystem::Server),
        })?;
        measure(&probes, &door, &shared, &watchdog);
        let (told, ready) = bounded(1);
        let work = Arc::new(Mutex::new(None));
        let starter = Starter {
            shared: Arc::clone(&shared),
            manager,
            seeds,
            run_lease,
            work: Arc::clone(&work),
            probes: Arc::clone(&probes),
            watchdog: Arc::clone(&watchdog),
            stopped,
            log: sub(Subsystem::Server),
        };
        let starter = Ending::of("starter", move || {
            starter.run(&told);
            true
        })?;
        Ok(Self {
            address,
            door,
            shared,
            probes,
            watchdog,
            starter,
            running,
            ready,
            work,
            audit,
            log: sub(Subsystem::Server),
        })
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What tests and `dev` share with the handlers.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Says once that the server is ready, or why it never will be.
    pub fn ready(&self) -> &Receiver<Result<()>> {
        &self.ready
    }

    /// Whether the process does its work. False: a restart would help.
    pub fn beats(&self) -> bool {
        self.watchdog.beats()
    }

    /// The part that is stuck, if one is.
    pub fn stuck(&self) -> Option<Part> {
        self.watchdog.stuck()
    }

    /// Stops in order, and takes hardly longer than `within`. False: something did not end within
    /// the time and was cut off or left behind.
    pub fn stop(self, within: Duration) -> bool {
        let Self {
            door,
            shared,
            probes,
            mut starter,
            running,
            work,
            audit,
            log,
            ..
        } = self;
        let deadline = Instant::now() + within;
        probes.set("stop", Err("The server is stopping.".to_owned()));
        drop(running);
        slog::info!(log, "Stopping"; "withinMs" => u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
        let work = lock(&work).take();
        // Runs take their time beside the requests, not after them.
        let runs = Ending::of("stop-runs", move || {
            work.is_none_or(|work| work.stop(deadline))
        });
        let mut streams = Ending::of("stop-streams", move || shared.streams.stop(deadline));
        // The door ends streams without a word.
        ended(&mut streams, deadline.min(Instant::now() + LAST_WORDS));
        let door = lock(&door).take();
        let door = Ending::of("stop-door", move || {
            let left = deadline.saturating_duration_since(Instant::now());
            door.is_none_or(|door| door.stop(left))
        });
        let mut in_time = starter.by(deadline);
        for mut ending in [streams, door, runs] {
            in_time &= ended(&mut ending, deadline + GRACE);
        }
        in_time &= audit.stop(deadline + GRACE);
        slog::info!(log, "Stopped"; "inTime" => in_time);
        in_time
    }
}

/// A thread that is waited for until a deadline, and then left behind.
struct Ending {
    told: Receiver<bool>,
    in_time: Option<bool>,
}

impl Ending {
    fn of(name: &str, work: impl FnOnce() -> bool + Send + 'static) -> Result<Self> {
        let (tell, told) = bounded(1);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // Nobody listens any more where the deadline has passed.
                let _ = tell.send(work());
            })
            .map_err(Error::internal)?;
        Ok(Self {
            told,
            in_time: None,
        })
    }

    /// False: it had to cut something off, panicked, or has not ended.
    fn by(&mut self, deadline: Instant) -> bool {
        if self.in_time.is_none() {
            self.in_time = self.told.recv_deadline(deadline).ok();
        }
        self.in_time.unwrap_or(false)
    }
}

/// As [`Ending::by`]; what could not be begun has not ended.
fn ended(ending: &mut Result<Ending>, deadline: Instant) -> bool {
    ending.as_mut().is_ok_and(|ending| ending.by(deadline))
}

/// The parts behind the door.
fn share(
    options: Options,
    audit: audit::Audit,
    clock: &Clock,
    log: &slog::Logger,
) -> Result<Shared> {
    let store = Store::open(&options.store, crate::log::subsystem(log, Subsystem::Store))?;
    let host_access = options.runs.host_access;
    let permissions = permissions(&options, &store, clock, log)?;
    let secrets = Secrets::new(
        options.secrets,
        &store,
        &options.outbound,
        clock,
        crate::log::subsystem(log, Subsystem::Secrets),
    )?;
    // Attempts, of which there are more than connections, leave the requests half of them.
    let half = store.limited(options.store.pool_size / 2);
    let webhooks = Webhooks::new(
        half.clone(),
        clock.clone(),
        options.outbound.clone(),
        secrets.through(&half),
        options.webhooks,
        crate::log::subsystem(log, Subsystem::Webhooks),
    );
    let runtime = Runtime::new(
        store.clone(),
        clock.clone(),
        runtime::Dependencies {
            outbound: options.outbound.clone(),
            model_keys: options.model_keys.clone(),
            secrets: secrets.clone(),
            webhooks: webhooks.clone(),
        },
        options.runs,
        crate::log::subsystem(log, Subsystem::Runtime),
    );
    let bounds = authz::Options {
        checks_in_flight: options.limits.request_threads / 2,
        denials_per_minute: options.denials_per_minute,
    };
    let admission = permissions
        .clone()
        .map(|permissions| Arc::new(Admission::new(permissions, audit.clone(), &bounds)));
    let streams = sse::Streams::start(
        options.streams,
        &store,
        clock,
        runtime.feed(),
        admission.clone(),
        &crate::log::subsystem(log, Subsystem::HttpStream),
    )?;
    Ok(Shared {
        external_calls: Limiter::new((options.limits.request_threads / 2).max(1)),
        secrets,
        webhooks,
        authn: Authn::new(store.clone(), clock.clone(), options.signer),
        store,
        clock: clock.clone(),
        audit,
        admission,
        runtime,
        outbound: options.outbound,
        host_access,
        model_keys: options.model_keys,
        streams,
        allowed_origins: options.allowed_origins,
        permissions,
    })
}

/// Who may do what, where authorization is on.
fn permissions(
    options: &Options,
    store: &Store,
    clock: &Clock,
    log: &slog::Logger,
) -> Result<Option<Permissions>> {
    let permissions = options.authorization.as_ref().map(|authorization| {
        Permissions::new(
            authorization,
            store.clone(),
            clock.clone(),
            &options.outbound,
            Some((options.seeds.tenant_id, options.seeds.user_id)),
            crate::log::subsystem(log, Subsystem::Authz),
        )
    });
    permissions.transpose()
}

/// Gives the probes their figures.
fn measure(
    probes: &Probes,
    door: &Arc<Mutex<Option<door::Door>>>,
    shared: &Arc<Shared>,
    watchdog: &Arc<Watchdog>,
) {
    let watchdog = Arc::clone(watchdog);
    probes.add(move || vec![metrics::of_watchdog(watchdog.stuck().is_some())]);
    let door = Arc::clone(door);
    probes.add(move || {
        let door = door.try_lock();
        let stats = door
            .ok()
            .and_then(|door| door.as_ref().map(door::Door::stats));
        stats.map_or_else(Vec::new, |stats| metrics::of_door(&stats))
    });
    let shared = Arc::clone(shared);
    probes.add(move || metrics::of_shared(&shared));
}

/// The mounted routes.
pub fn table(docs: bool, secrets: bool) -> Table {
    Table::new(crate::api::routes(), |mount| match mount {
        Mount::Always => true,
        Mount::Docs => docs,
        Mount::Secrets => secrets,
    })
}

/// What stands between an open door and a ready server.
struct Starter {
    shared: Arc<Shared>,
    manager: store::connect::Manager,
    seeds: Seeds,
    run_lease: Duration,
    work: Arc<Mutex<Option<Work>>>,
    probes: Arc<Probes>,
    watchdog: Arc<Watchdog>,
    /// Disconnected when the server stops.
    stopped: Receiver<()>,
    log: slog::Logger,
}

impl Starter {
    fn run(self, told: &Sender<Result<()>>) {
        let mut said = Instant::now();
        loop {
            match self.prepare() {
                Ok(()) => {
                    self.probes.set("server", Ok(()));
                    slog::info!(self.log, "Ready"; "tenantId" => %self.seeds.tenant_id);
                    let _ = told.send(Ok(()));
                    return self.keep_watch();
                }
                Err(error)
                    if error.code() == Code::DatabaseUnavailable && !error.is_lack_of_right() =>
                {
                    self.probes.set("server", Err(error.message().to_owned()));
                    if said.elapsed() > Duration::from_secs(5) {
                        said = Instant::now();
                        slog::warn!(self.log, "Waiting for the database"; crate::log::ErrorValue(&error));
                    }
                }
                Err(error) => {
                    let _ = told.send(Err(error));
                    return;
                }
            }
            if self.is_stopped_within(PAUSE) {
                return;
            }
        }
    }

    fn is_stopped_within(&self, time: Duration) -> bool {
        self.stopped.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
    }

    /// Keeps the probe's word about the database true, and opened secrets in memory no longer than
    /// they may be, whether or not requests come.
    fn keep_watch(&self) {
        self.watchdog.pool_answered();
        while !self.is_stopped_within(CHECK) {
            self.shared.secrets.sweep();
            let state = self.shared.store.check(CHECK);
            if state.is_ok() {
                self.watchdog.pool_answered();
            }
            self.probes.set(
                "database",
                state.map_err(|error| error.message().to_owned()),
            );
        }
    }

    fn prepare(&self) -> Result<()> {
        let is_stopped = || self.is_stopped_within(Duration::ZERO);
        let (store, clock) = (&self.shared.store, &self.shared.clock);
        migrations::migrate_unless(&self.manager, &self.log, is_stopped)?;
        if !seed(store, clock, &self.seeds)? {
            slog::warn!(self.log, "The seed token was revoked and stays so. Set another SVC_SEED_TOKEN, or remove the file seed-token in SVC_STATE_DIR for a fresh one"; "tenantId" => %self.seeds.tenant_id);
        }
        // New runs are written to them. What else the tables need has time until later.
        let today = clock.now().date();
        store::runs::attach_partitions(&mut store.session()?, today)?;
        self.shared.audit.keep_up();
        let (runtime, webhooks) = (&self.shared.runtime, &self.shared.webhooks);
        webhooks.prepare()?;
        let builder = jobs::Runner::builder(store.for_jobs())
            .log(crate::log::subsystem(&self.log, Subsystem::Jobs))
            .worker(worker())
            .lease(self.run_lease);
        let builder = webhooks.serve(runtime.serve(builder));
        let runner = builder.start().map_err(store::queue_error)?;
        runtime.woken_by(runner.handle());
        webhooks.woken_by(runner.handle());
        let run_threads = runtime.start_threads()?;
        let webhooks = webhooks.start_keeper()?;
        let permissions = self.keep_permissions()?;
        *lock(&self.work) = Some(Work {
            runner,
            run_threads,
            webhooks,
            permissions,
        });
        if is_stopped() {
            // The stop may have looked before there was anything to stop.
            if let Some(work) = lock(&self.work).take() {
                work.stop(Instant::now());
            }
        }
        Ok(())
    }
}

/// This process among those that share the database, whose hosts may be containers: their processes have the same numbers.
fn worker() -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("process {} of {host}", std::process::id())
}

impl Starter {
    /// Begins to keep permissions in step; readiness waits for the first comparison of all.
    fn keep_permissions(&self) -> Result<Option<permissions::Reconciler>> {
        let permissions = self.shared.permissions.as_ref();
        let started = permissions.map(|permissions| {
            let probes = Arc::clone(&self.probes);
            permissions.start_reconciler(move |state| probes.set("authz", state))
        });
        started.transpose()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the tenant, its first user and its token, or finds them again. False: the token was
/// revoked, and stays so.
///
/// # Errors
/// `database-unavailable`; `conflict` when the token is another's.
pub fn seed(store: &Store, clock: &Clock, seeds: &Seeds) -> Result<bool> {
    let now = clock.now();
    let token = tokens::New {
        token_id: clock.new_id(),
        name: "seed token",
        digest: bearer::digest(seeds.token.expose()),
        last_four: &bearer::last_four(&seeds.token),
        expires_at: None,
    };
    store.transact(|tx| {
        tenants::ensure(tx, seeds.tenant_id, "tenant", now)?;
        if tenants::ensure_user(tx, seeds.tenant_id, seeds.user_id, "seed user", now)? {
            desired_tuples::mark(tx, seeds.tenant_id, &[Object::Tenant(seeds.tenant_id)])?;
        }
        tokens::replace_seed(tx, seeds.tenant_id, seeds.user_id, &token, now)
    })
}
