//! One private Postgres for the whole run, a migrated database from a template for each test, and
//! the server in this process. A test begins with `App::start()`.

pub(crate) mod approvals;
mod authorized;
mod browser;
pub(crate) mod chromium;
mod client;
mod collector;
mod database;
mod deaf;
pub(crate) mod decisions;
pub(crate) mod identity_provider;
pub(crate) mod kms;
pub(crate) mod made;
mod objects;
pub(crate) mod openfga;
pub(crate) mod page;
mod people;
pub(crate) mod program;
mod puppet;
pub(crate) mod receiver;
pub(crate) mod secrets;
pub(crate) mod site;
mod stream;
mod tool_server;
mod turns;
pub(crate) mod web;
pub(crate) mod webhooks;

pub(crate) use authorized::{LogLines, World, authorization};
pub(crate) use browser::OWN_PAGE;
pub(crate) use client::{Answer, Client};
pub(crate) use collector::{Collector, Span, WELL};
pub(crate) use database::{Database, plan_rows};
pub(crate) use deaf::Deaf;
pub(crate) use objects::{COMPLETION_PRICE, NewTool, NewVersion, PROMPT_PRICE};
pub(crate) use puppet::{Call, Puppet, Request};
pub(crate) use receiver::{Received, Receiver, Reply};
pub(crate) use stream::{Event, Item, Stream, check_order, durable, end_of, text_of};
pub(crate) use tool_server::{ToolAnswer, ToolServer};
pub(crate) use turns::{calls, is_finished, kinds, tool_results};

use agent_runtime::audit;
use agent_runtime::authn::{bearer, public, session};
use agent_runtime::config::license::{Claims, FORMAT_VERSION};
use agent_runtime::http::{door, sse};
use agent_runtime::ids::Clock;
use agent_runtime::outbound::{self, HostAccess, Outbound};
use agent_runtime::secret::Secret;
use agent_runtime::server::{Options, Replaced, Seeds, Server};
use agent_runtime::{runtime, store};
use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a database of its own, and a client that holds its seed token.
pub(crate) struct App {
    client: Client,
    server: Option<Server>,
    pub(crate) database: Database,
    pub(crate) clock: Clock,
    pub(crate) seeds: Seeds,
    /// What its replicas are given, too.
    authorization: Option<agent_runtime::authz::permissions::Options>,
    secrets: agent_runtime::secrets::Options,
}

impl Deref for App {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

/// A logger for tests: faults of ours alone, since many tests take the database away.
pub(crate) fn log() -> slog::Logger {
    let options = agent_runtime::log::Options {
        level: agent_runtime::log::Level::Error,
        ..Default::default()
    };
    agent_runtime::log::open(&options, Clock::system(), std::io::stderr())
}

/// A tenant of its own.
pub(crate) fn seeds(clock: &Clock) -> Seeds {
    Seeds {
        tenant_id: clock.new_id(),
        user_id: clock.new_id(),
        token: bearer::mint().unwrap(),
        replaces: Replaced::All,
        email: None,
    }
}

/// A license from now on for so many days, with a grace of 14 days.
pub(crate) fn license(days: i64) -> Claims {
    let now = time::OffsetDateTime::now_utc();
    Claims {
        v: FORMAT_VERSION,
        id: "L-1".to_owned(),
        licensee: "The mill".to_owned(),
        issued_at: now,
        expires_at: now + time::Duration::days(days),
        grace_days: 14,
        features: Vec::new(),
    }
}

/// The options of a test server on this database.
pub(crate) fn options(database_url: &str, seeds: &Seeds) -> Options {
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        limits: door::Limits {
            request_threads: 8,
            ..Default::default()
        },
        store: store::Options {
            url: Secret::new(database_url),
            pool_size: 8,
            checkout_timeout: Duration::from_secs(3),
            outage: Default::default(),
            statement_timeout: Duration::from_secs(10),
        },
        seeds: seeds.clone(),
        docs: true,
        console: true,
        allowed_origins: Vec::new(),
        sign_in: session::Options {
            development: true,
            ..Default::default()
        },
        signer: Some(public::Signer::ephemeral().unwrap()),
        outbound: Outbound::new(outbound::Options::default()).unwrap(),
        model_keys: runtime::ModelKeys::default(),
        license: None,
        runs: runtime::Options {
            threads: 4,
            poll: Duration::from_millis(50),
            first_wait: Duration::from_millis(50),
            host_access: HostAccess::Local,
            ..Default::default()
        },
        // Longer than a busy machine holds a process up: a lease that runs out is another story.
        run_lease: Duration::from_secs(5),
        streams: sse::Options {
            tail_every: Duration::from_millis(50),
            ..Default::default()
        },
        audit: audit::Options::default(),
        authorization: None,
        denials_per_minute: 100_000,
        secrets: agent_runtime::secrets::Options::Off,
        webhooks: agent_runtime::webhooks::Options::default(),
        traces: None,
    }
}

impl App {
    /// A server as most tests want it.
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// A server with other options.
    pub(crate) fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let clock = Clock::system();
        let seeds = seeds(&clock);
        Self::start_on(Database::migrated(), clock, seeds, change)
    }

    /// A server with the secrets backend `postgres`, its keys wrapped by keys of its own.
    pub(crate) fn start_with_secrets() -> Self {
        Self::start_with(|options| options.secrets = secrets::Keys::new().options())
    }

    /// A server on a database that stands already, such as another replica's.
    pub(crate) fn start_on(
        database: Database,
        clock: Clock,
        seeds: Seeds,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        Self::start_logged(database, clock, seeds, &log(), change)
    }

    /// As [`App::start_on`], with a log that the test reads.
    pub(crate) fn start_logged(
        database: Database,
        clock: Clock,
        seeds: Seeds,
        log: &slog::Logger,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let mut options = options(&database.url(), &seeds);
        change(&mut options);
        let authorization = options.authorization.clone();
        let secrets = options.secrets.clone();
        let server = Server::start(options, &clock, log).unwrap();
        server
            .ready()
            .recv_timeout(PATIENCE)
            .expect("the server became ready or said why not")
            .unwrap();
        let client = Client::new(server.local_addr(), Some(seeds.token.expose()));
        Self {
            client,
            server: Some(server),
            database,
            clock,
            seeds,
            authorization,
            secrets,
        }
    }

    /// The server itself.
    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// A client with another token, or none.
    pub(crate) fn with_token(&self, token: Option<&str>) -> Client {
        Client::new(self.server().local_addr(), token)
    }

    /// A client of another tenant on the same server.
    pub(crate) fn other_tenant(&self) -> Client {
        let seeds = seeds(&self.clock);
        agent_runtime::server::seed(&self.server().shared().store, &self.clock, &seeds).unwrap();
        self.with_token(Some(seeds.token.expose()))
    }

    /// Another replica of the same server: the same database, clock and tenant.
    pub(crate) fn replica(&self, change: impl FnOnce(&mut Options)) -> Self {
        Self::start_on(
            self.database.clone(),
            self.clock.clone(),
            self.seeds.clone(),
            |options| {
                options.authorization.clone_from(&self.authorization);
                options.secrets.clone_from(&self.secrets);
                change(options);
            },
        )
    }

    /// Another replica, which carries on no run.
    pub(crate) fn onlooker(&self) -> Self {
        self.replica(|options| options.runs.poll = Duration::from_secs(600))
    }

    /// Stops the server; the database stays.
    pub(crate) fn stop(mut self) -> (Database, Clock, Seeds) {
        assert!(
            self.server.take().unwrap().stop(PATIENCE),
            "it stopped in time"
        );
        (
            self.database.clone(),
            self.clock.clone(),
            self.seeds.clone(),
        )
    }
}

impl App {
    /// Stops the server without waiting longer than this for what is under way.
    pub(crate) fn stop_within(mut self, within: Duration) -> (Database, Clock, Seeds) {
        self.server.take().unwrap().stop(within);
        (
            self.database.clone(),
            self.clock.clone(),
            self.seeds.clone(),
        )
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(Duration::from_secs(2));
        }
    }
}

/// Waits until `look` gives something, without guessing how long it takes.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "waited in vain for {what}"
        );
        moment();
    }
}

/// How many rounds of a hunt: a tenth of the whole, but for `make soak`, which runs the whole.
pub(crate) fn rounds(whole: usize) -> usize {
    match std::env::var_os("AGENT_RUNTIME_TEST_SOAK") {
        Some(_) => whole,
        None => (whole / 10).max(1),
    }
}

/// Between two looks of a loop that has a deadline or an end.
pub(crate) fn moment() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Lets time pass, where that is what the test puts in: the age of a connection, a lease that runs out, a client's pause,
/// the moment of a race. Nothing is expected to have happened by its end.
pub(crate) fn let_time_pass(time: Duration) {
    std::thread::sleep(time);
}

/// Measures what is to take no longer than this; again where it did, for a busy machine adds to a
/// round, and takes nothing away from any.
#[track_caller]
pub(crate) fn within(most: Duration, mut round: impl FnMut() -> Duration) {
    let mut took = Vec::new();
    for _ in 0..6 {
        let one = round();
        if one < most {
            return;
        }
        took.push(one);
    }
    panic!("no round took less than {most:?}: {took:?}");
}

/// Runs both at once and gives what each answered.
pub(crate) fn together(
    first: impl FnOnce() -> u16 + Send,
    second: impl FnOnce() -> u16 + Send,
) -> (u16, u16) {
    let barrier = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            barrier.wait();
            first()
        });
        let second = scope.spawn(|| {
            barrier.wait();
            second()
        });
        (first.join().unwrap(), second.join().unwrap())
    })
}
