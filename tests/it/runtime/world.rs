//! A tenant with an agent, its provider and its tools, and processes that run its runs: the runtime
//! alone, with no server around it.

use crate::harness::{Database, PATIENCE, Puppet, log};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::error::{Code, Result};
use agent_runtime::ids::Clock;
use agent_runtime::log::trace::TraceContext;
use agent_runtime::outbound::{self, HostAccess, Outbound};
use agent_runtime::proof::{Action, Kind, May};
use agent_runtime::runtime::progress::feed::Shard;
use agent_runtime::runtime::{
    BuiltIn, FlowLimits, ModelKeys, Options, RunLimits, Runtime, StartedBy, Threads,
};
use agent_runtime::secret::Secret;
use agent_runtime::secrets::Secrets;
use agent_runtime::store::approvals::{self, Actor, Decided, Decision};
use agent_runtime::store::events::{self, StoredEvent};
use agent_runtime::store::runs::{self, Agent, Labels, NewRun, Origin, Run, StartOptions, Via};
use agent_runtime::store::{self, Sql, Store};
use agent_runtime::traces::Traces;
use agent_runtime::webhooks::{self, Webhooks};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// An approval without a word.
pub(crate) const YES: Decision<'_> = Decision {
    is_approved: true,
    comment: None,
    arguments: None,
    answer: None,
};

pub(crate) fn options(url: &str) -> store::Options {
    store::Options {
        url: Secret::new(url),
        pool_size: 8,
        checkout_timeout: Duration::from_secs(3),
        outage: Default::default(),
        statement_timeout: Duration::from_secs(10),
    }
}

/// A request that started a run.
pub(crate) fn started_by() -> StartedBy {
    StartedBy {
        request_id: Uuid::now_v7(),
        traceparent: TraceContext::fresh().traceparent(),
    }
}

/// Whoever may do everything, in tests.
pub(crate) struct Root(pub(crate) Uuid, pub(crate) Uuid);

impl<A: Action, K: Kind> May<A, K> for Root {
    fn tenant_id(&self) -> Uuid {
        self.0
    }

    fn object_id(&self) -> Uuid {
        self.1
    }
}

/// A request that an [`HttpServer`] got.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Got {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) key: Option<String>,
    pub(crate) body: String,
}

/// The idempotency key and the body of a request.
pub(crate) type Asked = (Option<String>, Value);

/// An HTTP server that answers what it is told to, afterwards always the same, and records what it was asked.
pub(crate) struct HttpServer {
    server: Arc<tiny_http::Server>,
    answers: Arc<Mutex<Vec<(u16, String)>>>,
    got: Arc<Mutex<Vec<Got>>>,
    /// Answers are held back while this is locked.
    pub(crate) gate: Arc<Mutex<()>>,
}

impl HttpServer {
    /// One that gives these answers, then `{}`.
    pub(crate) fn start(answers: &[(u16, &str)]) -> Self {
        let answers = answers.iter().rev();
        let answers = answers.map(|(status, text)| (*status, (*text).to_owned()));
        Self::serve(answers.collect(), "{}")
    }

    /// A tool that answers in text.
    fn tool() -> Self {
        Self::serve(Vec::new(), "sunny")
    }

    fn serve(answers: Vec<(u16, String)>, always: &'static str) -> Self {
        let this = Self {
            server: Arc::new(tiny_http::Server::http("127.0.0.1:0").unwrap()),
            answers: Arc::new(Mutex::new(answers)),
            got: Arc::default(),
            gate: Arc::default(),
        };
        for _ in 0..SERVING {
            let (server, answers) = (this.server.clone(), this.answers.clone());
            let (got, gate) = (this.got.clone(), this.gate.clone());
            let answer = move || {
                while let Ok(request) = server.recv() {
                    answer_one(request, &got, &gate, &answers, always);
                }
            };
            std::thread::Builder::new()
                .name("http".to_owned())
                .spawn(answer)
                .unwrap();
        }
        this
    }

    /// What it answers next.
    pub(crate) fn answer(&self, answers: &[(u16, &str)]) {
        let answers = answers.iter().rev();
        let answers = answers.map(|(status, text)| (*status, (*text).to_owned()));
        self.answers.lock().unwrap().splice(..0, answers);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.server_addr())
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        let got = self.got().into_iter();
        got.map(|got| (got.key, serde_json::from_str(&got.body).unwrap()))
            .collect()
    }

    /// Whether it has given all answers that it was told to.
    pub(crate) fn is_spent(&self) -> bool {
        self.answers.lock().unwrap().is_empty()
    }
}

/// Requests that a server answers at one time.
const SERVING: usize = 3;

fn answer_one(
    mut request: tiny_http::Request,
    got: &Mutex<Vec<Got>>,
    gate: &Mutex<()>,
    answers: &Mutex<Vec<(u16, String)>>,
    always: &'static str,
) {
    let mut body = String::new();
    request.as_reader().read_to_string(&mut body).unwrap();
    let mut headers = request.headers().iter();
    let key = headers.find(|header| header.field.equiv("Idempotency-Key"));
    got.lock().unwrap().push(Got {
        method: request.method().to_string(),
        url: request.url().to_owned(),
        key: key.map(|header| header.value.to_string()),
        body,
    });
    drop(gate.lock());
    let told = answers.lock().unwrap().pop();
    let (status, text) = told.unwrap_or_else(|| (200, always.to_owned()));
    let kind = match text.starts_with(['{', '[']) {
        true => "content-type: application/json",
        false => "content-type: text/plain",
    };
    let response = tiny_http::Response::from_string(text)
        .with_status_code(status)
        .with_header(kind.parse::<tiny_http::Header>().unwrap());
    let _ = request.respond(response);
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        for _ in 0..SERVING {
            self.server.unblock();
        }
    }
}

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) provider: Provider,
    pub(crate) tool: HttpServer,
    pub(crate) tenant_id: Uuid,
    pub(crate) user_id: Uuid,
    pub(crate) project_id: Uuid,
    pub(crate) agent_id: Uuid,
    pub(crate) conversation_id: Uuid,
    /// Of a process that is made from here on.
    pub(crate) lease: Duration,
    /// How often processes look for what nobody woke them for.
    pub(crate) poll: Duration,
    pub(crate) built_in: HashMap<String, BuiltIn>,
    /// Of a process that is made from here on.
    pub(crate) flow_limits: FlowLimits,
    /// Of a process that is made from here on.
    pub(crate) run_limits: RunLimits,
    /// Of a process that is made from here on.
    pub(crate) deaths_most: i32,
    /// Of a process that is made from here on.
    pub(crate) log: slog::Logger,
    /// After the store: it is dropped with its last connection.
    pub(crate) database: Database,
}

/// A process that runs runs.
pub(crate) struct Process {
    pub(crate) runtime: Runtime,
    pub(crate) shard: Shard,
    pub(crate) runner: Option<jobs::Runner>,
    _keepers: Option<Threads>,
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runner) = self.runner.take() {
            runner.stop(Duration::from_millis(50));
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let database = Database::migrated();
        let store = Store::open(&options(&database.url()), log()).unwrap();
        let id = || Clock::system().new_id();
        let world = Self {
            store,
            clock: Clock::system(),
            provider: Provider::start(Script::default()).unwrap(),
            tool: HttpServer::tool(),
            tenant_id: id(),
            user_id: id(),
            project_id: id(),
            agent_id: id(),
            conversation_id: id(),
            lease: Duration::from_secs(15),
            poll: Options::default().poll,
            built_in: HashMap::new(),
            flow_limits: FlowLimits::default(),
            run_limits: RunLimits::default(),
            deaths_most: Options::default().deaths_most,
            log: log(),
            database,
        };
        world.seed(&json!({}));
        world
    }

    fn seed(&self, limits: &Value) {
        let Self {
            tenant_id,
            user_id,
            project_id,
            agent_id,
            conversation_id,
            ..
        } = self;
        let provider_id = self.clock.new_id();
        let (url, tool) = (self.provider.base_url(), self.tool.url("/tool"));
        let tools: String = [("weather", true), ("pay", false)]
            .map(|(name, idempotent)| {
                let tool_id = self.clock.new_id();
                let position = i32::from(idempotent);
                format!(
                    "insert into tools values ('{tenant_id}', '{tool_id}', '{project_id}', '{name}', 'd',
                       '{{\"type\": \"object\", \"required\": [\"city\"]}}', '{tool}', 5000, {idempotent}, '{user_id}', now());
                     insert into agent_version_tools values ('{tenant_id}', '{agent_id}', '1.0.0', {position}, '{tool_id}');"
                )
            })
            .concat();
        let script = format!(
            "insert into tenants values ('{tenant_id}', 't', now());
             insert into users (tenant_id, user_id, display_name, created_at) values ('{tenant_id}', '{user_id}', 'u', now());
             insert into projects (tenant_id, project_id, name, created_by, created_at, updated_at)
               values ('{tenant_id}', '{project_id}', 'p', '{user_id}', now(), now());
             insert into model_providers (tenant_id, model_provider_id, name, base_url, created_by, created_at, updated_at)
               values ('{tenant_id}', '{provider_id}', 'mp', '{url}', '{user_id}', now(), now());
             insert into models values ('{tenant_id}', '{provider_id}', 'm', 1, 2, null, null, null);
             insert into agents (tenant_id, agent_id, project_id, name, description, created_by, created_at, updated_at) values ('{tenant_id}', '{agent_id}', '{project_id}', 'a', '', '{user_id}', now(), now());
             insert into agent_versions values ('{tenant_id}', '{agent_id}', '1.0.0', 1, 'Be brief.', '{provider_id}', 'm', '{{}}', '{limits}', '{user_id}', now());
             insert into conversations values ('{tenant_id}', '{conversation_id}', '{project_id}', '{agent_id}', null, '', null, 0, '{user_id}', now());
             {tools}"
        );
        self.batch(&script);
    }

    pub(crate) fn batch(&self, script: &str) {
        self.store
            .transact(|tx| Ok(tx.raw().batch_execute(script)?))
            .unwrap();
    }

    /// A provider whose every word the test says, in place of the scripted one.
    pub(crate) fn puppet(&self) -> Puppet {
        let puppet = Puppet::start();
        self.batch(&format!(
            "update model_providers set base_url = '{}'",
            puppet.base_url()
        ));
        puppet
    }

    /// A process with run threads, or none.
    pub(crate) fn process(&self, threads: usize, keepers: bool) -> Process {
        let outbound = Outbound::new(outbound::Options::default()).unwrap();
        let options = Options {
            threads: threads.max(1),
            poll: self.poll,
            first_wait: Duration::from_millis(20),
            host_access: HostAccess::Local,
            built_in: self.built_in.clone(),
            flow_limits: self.flow_limits,
            run_limits: self.run_limits,
            deaths_most: self.deaths_most,
            ..Options::default()
        };
        let webhooks = Webhooks::new(
            self.store.clone(),
            self.clock.clone(),
            outbound.clone(),
            Secrets::off(),
            webhooks::Options::default(),
            log(),
        );
        let runtime = Runtime::new(
            self.store.clone(),
            self.clock.clone(),
            agent_runtime::runtime::Dependencies {
                outbound,
                model_keys: ModelKeys::default(),
                secrets: Secrets::off(),
                webhooks,
                traces: Traces::off(),
            },
            options,
            self.log.clone(),
        );
        runtime.prepare().unwrap();
        let shard = runtime.feed().shard(1024);
        let runner = (threads > 0).then(|| {
            let database = self.store.for_jobs();
            let runner = runtime
                .serve(jobs::Runner::builder(database))
                .lease(self.lease)
                .start()
                .unwrap();
            runtime.woken_by(runner.handle());
            runner
        });
        Process {
            _keepers: keepers.then(|| runtime.start_threads().unwrap()),
            runtime,
            shard,
            runner,
        }
    }

    pub(crate) fn new_run(&self, conversation: bool) -> NewRun {
        NewRun {
            run_id: self.clock.new_id(),
            project_id: self.project_id,
            flow_id: "agent.turn".to_owned(),
            flow_version: "1.0.0".to_owned(),
            origin: Origin::App,
            dry_run: false,
            agent: Some(Agent {
                id: self.agent_id,
                version: "1.0.0".to_owned(),
                conversation_id: conversation.then_some(self.conversation_id),
                via: Via::Latest,
            }),
            labels: Labels::default(),
            options: StartOptions::default(),
            input: json!({"message": "How is the weather?"}),
            message: Some("How is the weather?".to_owned()),
            created_by: self.user_id,
            request_id: Uuid::nil(),
            created_at: self.clock.now(),
        }
    }

    pub(crate) fn create(&self, process: &Process, conversation: bool) -> Uuid {
        let run = self.new_run(conversation);
        let root = Root(self.tenant_id, self.agent_id);
        process.shard.follow(run.run_id);
        let runtime = &process.runtime;
        self.store
            .transact(|tx| runtime.create::<Run>(tx, &root, &run, started_by()))
            .unwrap();
        process.runtime.wake();
        run.run_id
    }

    /// Reads, past connections that a restart of the database broke.
    pub(crate) fn read<T>(
        &self,
        read: impl Fn(&mut store::Session) -> agent_runtime::error::Result<T>,
    ) -> T {
        for _ in 0..20 {
            match self
                .store
                .session()
                .and_then(|mut session| read(&mut session))
            {
                Err(error) if error.code() == Code::DatabaseUnavailable => {}
                answer => return answer.unwrap(),
            }
        }
        panic!("the database stays away");
    }

    pub(crate) fn run(&self, run_id: Uuid) -> Run {
        self.read(|session| runs::find(session, self.tenant_id, run_id))
    }

    pub(crate) fn root(&self, run_id: Uuid) -> Root {
        Root(self.tenant_id, run_id)
    }

    pub(crate) fn events(&self, run_id: Uuid) -> Vec<StoredEvent> {
        self.read(|session| events::after(session, &self.root(run_id), 0, 1000, i64::MAX))
            .events
    }

    /// The kinds of the events, after checking that their numbers have no gap.
    pub(crate) fn kinds(&self, run_id: Uuid) -> Vec<String> {
        let events = self.events(run_id);
        for (at, event) in (1_i64..).zip(&events) {
            assert_eq!(event.seq, at);
        }
        events.into_iter().map(|event| event.kind).collect()
    }

    /// Decides an approval as the world's user, without a look at roles.
    pub(crate) fn decide(&self, approval_id: Uuid, decision: &Decision<'_>) -> Result<Decided> {
        let actor = Actor {
            user_id: self.user_id,
            token_id: Uuid::nil(),
        };
        let approval = (self.tenant_id, approval_id);
        self.store
            .transact(|tx| approvals::decide(tx, approval, (actor, false), decision))
    }

    pub(crate) fn number(&self, query: &'static str) -> i64 {
        self.read(|session| Ok(session.query_one(query, &[])?.get(0)))
    }

    /// Waits until the run is as wanted, woken by the feed.
    pub(crate) fn until(
        &self,
        process: &Process,
        run_id: Uuid,
        wanted: impl Fn(&Run) -> bool,
    ) -> Run {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let run = self.run(run_id);
            if wanted(&run) {
                return run;
            }
            assert!(
                Instant::now() < deadline,
                "{run:?} {:?}",
                self.events(run_id)
            );
            let _ = process
                .shard
                .hints()
                .recv_timeout(Duration::from_millis(100));
        }
    }

    pub(crate) fn finished(&self, process: &Process, run_id: Uuid) -> Run {
        let run = self.until(process, run_id, |run| run.status.is_finished());
        assert_eq!(
            self.number("select count(*) from job_jobs"),
            0,
            "a job is left"
        );
        // A piece may be written in the very moment in which its step ends; the upkeep removes it.
        self.eventually(|| {
            let left = self.number(
                "select (select count(*) from run_deltas) + (select count(*) from run_reasoning)",
            );
            if left > 0 {
                let sweep = include_str!("../../../sql/queries/deltas/sweep.sql");
                self.read(|session| session.execute(sweep, &[&1000_i64]));
            }
            left == 0
        });
        assert_eq!(
            self.number("select count(*) from conversations where active_run_id is not null"),
            0
        );
        run
    }

    /// Waits for something that no event tells of.
    pub(crate) fn eventually(&self, mut what: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !what() {
            assert!(Instant::now() < deadline);
            crate::harness::moment();
        }
    }

    /// Ends every connection to the database, and takes no new ones.
    pub(crate) fn take_away(&self) {
        let (mut admin, name) = self.admin();
        admin
            .batch_execute(&format!(
                "alter database {name} with allow_connections false"
            ))
            .unwrap();
        // One that was let in before is shown as soon as it gives back its lock on the database.
        let cut = "select (select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = $1)
             + (select count(*) from pg_locks l join pg_database d on d.oid = l.objid
                where l.classid = 'pg_database'::regclass and d.datname = $1)";
        self.eventually(|| {
            let left: i64 = admin.query_one(cut, &[&name]).unwrap().get(0);
            left == 0
        });
    }

    /// Takes connections again.
    pub(crate) fn bring_back(&self) {
        let (mut admin, name) = self.admin();
        admin
            .batch_execute(&format!(
                "alter database {name} with allow_connections true"
            ))
            .unwrap();
    }

    /// A connection to another database of the cluster, and this one's name.
    fn admin(&self) -> (postgres::Client, String) {
        let mut config: postgres::Config = self.database.url().parse().unwrap();
        let name = config.get_dbname().unwrap().to_owned();
        let client = config.dbname("postgres").connect(postgres::NoTls);
        (client.unwrap(), name)
    }

    /// As if the process that holds the run had died: its job is given to others at once.
    pub(crate) fn expire_leases(&self) {
        let mut session = self.store.session().unwrap();
        session
            .transact(|tx| {
                tx.raw().batch_execute(
                    "update job_leases set expires_at = now() - interval '1 hour'",
                )?;
                jobs::protocol::rescue(tx.raw(), 100).unwrap();
                Ok(())
            })
            .unwrap();
    }
}

pub(crate) fn calls_weather() -> Step {
    Step::new(Reply::ToolCalls(vec![(
        "weather".to_owned(),
        json!({"city": "Rome"}),
    )]))
}
