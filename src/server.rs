//! Start and stop of the server, on one screen: every thread, in order, and how each ends.
//!
//! | thread | does | ends |
//! |---|---|---|
//! | `door` | connections | `Door::stop`: no new ones; answers in flight within the deadline |
//! | `request-N` | handlers | with the door |
//! | `stream-N`, `stream-tail` | open streams | `Streams::stop`: each gets `stream.end` |
//! | `run-N` and the queue's own | runs | `jobs::Runner::stop`: leases handed back |
//! | `runs-…` | watch runs, write text, keep tables up | with the runs |
//! | `starter` | waits for the database, migrates, seeds | when the server is ready, or stops |
//! | `store-watchdog`, the pool's | stuck statements, connections | with the last user of the store |
//!
//! The door is open before the database is up: probes answer, everything else is a 503 that says
//! so. A database that refuses for good (too old, too new, no rights) ends the server with the
//! reason; one that is away is waited for.

pub mod options;

use crate::authn::{Authn, bearer, public};
use crate::error::{Code, Error, Result};
use crate::http::context::Shared;
use crate::http::frame::Frame;
use crate::http::probes::Probes;
use crate::http::route::{Mount, Table};
use crate::http::{door, sse};
use crate::ids::Clock;
use crate::log::Subsystem;
use crate::metrics;
use crate::outbound::Outbound;
use crate::runtime::{self, Keepers, ModelKeys, Runtime};
use crate::secret::Secret;
use crate::store::{self, Store, migrations, tenants, tokens};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 1024;

/// How long, after the deadline of a stop, jobs are handed back and threads end.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Pause between looks at a database that is away.
const PAUSE: Duration = Duration::from_millis(200);

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
}

/// A running server.
pub struct Server {
    address: SocketAddr,
    /// Taken out to be stopped; the metrics look at it without waiting.
    door: Arc<Mutex<Option<door::Door>>>,
    shared: Arc<Shared>,
    starter: Option<JoinHandle<()>>,
    stopping: Arc<AtomicBool>,
    ready: Receiver<Result<()>>,
    work: Arc<Mutex<Option<Work>>>,
    log: slog::Logger,
}

/// Runs being carried on.
struct Work {
    runner: jobs::Runner,
    keepers: Keepers,
}

impl Work {
    /// Hands back what is not done by then, so that it goes on elsewhere at once. False: something
    /// could not be handed back, and waits until its lease has run out.
    fn stop(self, deadline: Instant) -> bool {
        let stopped = self
            .runner
            .stop(deadline.saturating_duration_since(Instant::now()));
        let keepers = self.keepers;
        let kept = in_time("stop-keepers", deadline + LAST_WORDS, move || drop(keepers));
        kept && !stopped.leases_left
    }
}

impl Server {
    /// Opens the door and begins to get ready.
    ///
    /// # Errors
    /// The address is taken, a setting is no use, or the system gives no thread.
    pub fn start(options: Options, clock: &Clock, log: &slog::Logger) -> Result<Self> {
        let sub = |name| crate::log::subsystem(log, name);
        let manager = store::connect::Manager::new(&options.store)?;
        let (seeds, run_lease) = (options.seeds.clone(), options.run_lease);
        let (address, limits, docs) = (options.listen, options.limits.clone(), options.docs);
        let shared = Arc::new(share(options, clock, log)?);
        let probes = Arc::new(Probes::new());
        let frame = Frame::new(
            Arc::clone(&shared),
            table(docs),
            Arc::clone(&probes),
            sub(Subsystem::Http),
        );
        let door = door::Door::open(
            listen(address)?,
            limits,
            Arc::new(frame),
            clock.clone(),
            sub(Subsystem::HttpDoor),
        )?;
        let address = door.local_addr();
        let door = Arc::new(Mutex::new(Some(door)));
        measure(&probes, &door, &shared);
        let stopping = Arc::new(AtomicBool::new(false));
        let (told, ready) = bounded(1);
        let work = Arc::new(Mutex::new(None));
        let starter = Starter {
            shared: Arc::clone(&shared),
            manager,
            seeds,
            run_lease,
            work: Arc::clone(&work),
            probes,
            stopping: Arc::clone(&stopping),
            log: sub(Subsystem::Server),
        };
        let starter = std::thread::Builder::new()
            .name("starter".to_owned())
            .spawn(move || starter.run(&told))
            .map_err(Error::internal)?;
        Ok(Self {
            address,
            door,
            shared,
            starter: Some(starter),
            stopping,
            ready,
            work,
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

    /// Stops in order. False: something did not end within the time and was cut off.
    pub fn stop(mut self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        self.stopping.store(true, Ordering::Relaxed);
        slog::info!(self.log, "Stopping"; "withinMs" => u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
        let starter = self.starter.take();
        let started = in_time("stop-starter", deadline + LAST_WORDS, move || {
            // One that panicked has been logged by the panic hook.
            let _ = starter.map(JoinHandle::join);
        });
        let work = lock(&self.work).take();
        // Runs take their time beside the requests, not after them.
        let runs = std::thread::Builder::new()
            .name("stop-runs".to_owned())
            .spawn(move || work.is_none_or(|work| work.stop(deadline)));
        // The door is to have time left to say so to the clients.
        let streams = self.shared.streams.stop(deadline - within / 4);
        let left = deadline.saturating_duration_since(Instant::now());
        let door = lock(&self.door).take();
        let door = door.is_none_or(|door| door.stop(left));
        let runs = runs.is_ok_and(|thread| thread.join().unwrap_or(false));
        let in_time = started && streams && door && runs;
        slog::info!(self.log, "Stopped"; "inTime" => in_time);
        in_time
    }
}

/// Does a part of the stop on a thread of its own: a database that does not answer may hold it up.
/// False: it did not end by then, and is left behind.
fn in_time(name: &str, deadline: Instant, part: impl FnOnce() + Send + 'static) -> bool {
    let (alive, ended) = bounded::<()>(0);
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            part();
            drop(alive);
        });
    thread.is_ok() && ended.recv_deadline(deadline) == Err(RecvTimeoutError::Disconnected)
}

/// Opens the socket. `[::]` takes IPv4 as well, and is `0.0.0.0` on a host without IPv6.
fn listen(address: SocketAddr) -> Result<TcpListener> {
    let open = |address: SocketAddr| {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(TcpListener::from(socket))
    };
    let everywhere = address.is_ipv6() && address.ip().is_unspecified();
    open(address)
        .or_else(|error: std::io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) if everywhere => {
                open(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
            }
            _ => Err(error),
        })
        .map_err(|error| {
            Error::new(
                Code::Conflict,
                format!(
                    "{address} cannot be listened on: {error}. Choose another SVC_HTTP_PORT or SVC_BIND_ADDRESS."
                ),
            )
        })
}

/// The parts behind the door.
fn share(options: Options, clock: &Clock, log: &slog::Logger) -> Result<Shared> {
    let store = Store::open(&options.store, crate::log::subsystem(log, Subsystem::Store))?;
    let host_access = options.runs.host_access;
    let runtime = Runtime::new(
        store.clone(),
        clock.clone(),
        options.outbound.clone(),
        options.model_keys.clone(),
        options.runs,
        crate::log::subsystem(log, Subsystem::Runtime),
    );
    let streams = sse::Streams::start(
        options.streams,
        &store,
        clock,
        runtime.feed(),
        &crate::log::subsystem(log, Subsystem::HttpStream),
    )?;
    Ok(Shared {
        authn: Authn::new(store.clone(), clock.clone(), options.signer),
        store,
        clock: clock.clone(),
        runtime,
        outbound: options.outbound,
        host_access,
        model_keys: options.model_keys,
        streams,
        allowed_origins: options.allowed_origins,
    })
}

/// Gives the probes their figures.
fn measure(probes: &Probes, door: &Arc<Mutex<Option<door::Door>>>, shared: &Arc<Shared>) {
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
pub fn table(docs: bool) -> Table {
    Table::new(crate::api::routes(), |mount| match mount {
        Mount::Always => true,
        Mount::Docs => docs,
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
    stopping: Arc<AtomicBool>,
    log: slog::Logger,
}

impl Starter {
    fn run(self, told: &Sender<Result<()>>) {
        let mut said = Instant::now();
        while !self.stopping.load(Ordering::Relaxed) {
            match self.prepare() {
                Ok(()) => {
                    self.probes.set("server", Ok(()));
                    slog::info!(self.log, "Ready"; "tenantId" => %self.seeds.tenant_id);
                    let _ = told.send(Ok(()));
                    return;
                }
                Err(error) if error.code() == Code::DatabaseUnavailable => {
                    self.probes.set("server", Err(error.message().to_owned()));
                    if said.elapsed() > Duration::from_secs(5) {
                        said = Instant::now();
                        slog::warn!(self.log, "Waiting for the database"; crate::log::ErrorValue(&error));
                    }
                    std::thread::sleep(PAUSE);
                }
                Err(error) => {
                    let _ = told.send(Err(error));
                    return;
                }
            }
        }
    }

    fn prepare(&self) -> Result<()> {
        migrations::migrate(&self.manager, &self.log)?;
        seed(&self.shared.store, &self.shared.clock, &self.seeds)?;
        let runtime = &self.shared.runtime;
        runtime.prepare()?;
        let database = jobs::Database::new(self.shared.store.pool().clone(), AsMut::as_mut);
        let builder = jobs::Runner::builder(database)
            .log(crate::log::subsystem(&self.log, Subsystem::Jobs))
            .lease(self.run_lease);
        let runner = runtime
            .serve(builder)
            .start()
            .map_err(runtime::queue_error)?;
        runtime.woken_by(runner.handle());
        let keepers = runtime.start_keepers()?;
        *lock(&self.work) = Some(Work { runner, keepers });
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the tenant, its first user and its token, or finds them again.
///
/// # Errors
/// `database-unavailable`.
pub fn seed(store: &Store, clock: &Clock, seeds: &Seeds) -> Result<()> {
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
        tenants::ensure_user(tx, seeds.tenant_id, seeds.user_id, "seed user", now)?;
        tokens::replace_seed(tx, seeds.tenant_id, seeds.user_id, &token, now)
    })
}
