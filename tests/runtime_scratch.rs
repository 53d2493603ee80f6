//! Runs against a real database: turns, crashes at every boundary, cancels, waits.
//!
//! `RUNTIME_TEST_DATABASE_URL` names a maintenance database on a private cluster; each test makes a
//! database of its own there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use agent_runtime::dev::provider::{Fault, Provider, Reply, Script, Step};
use agent_runtime::error::Code;
use agent_runtime::ids::Clock;
use agent_runtime::outbound::{self, HostAccess, Outbound};
use agent_runtime::proof::{Action, Kind, May};
use agent_runtime::runtime::feed::{Hint, Shard};
use agent_runtime::runtime::{Created, Keepers, ModelKeys, Options, Runtime};
use agent_runtime::secret::Secret;
use agent_runtime::store::events::{self, StoredEvent};
use agent_runtime::store::runs::{self, Agent, NewRun, Origin, RequestKey, Run, Status, Via};
use agent_runtime::store::{self, Sql, Store, connect, migrations, steps};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);

/// Whoever may do everything, in tests.
struct Root(Uuid, Uuid);

impl<A: Action, K: Kind> May<A, K> for Root {
    fn tenant_id(&self) -> Uuid {
        self.0
    }

    fn object_id(&self) -> Uuid {
        self.1
    }
}

fn log() -> slog::Logger {
    slog::Logger::root(slog::Discard, slog::o!())
}

#[allow(clippy::disallowed_methods, reason = "the test's own setting")]
fn maintenance_url() -> String {
    std::env::var("RUNTIME_TEST_DATABASE_URL")
        .expect("set RUNTIME_TEST_DATABASE_URL, such as postgres://postgres@%2Ftmp%2Fpg/postgres")
}

fn options(url: &str) -> store::Options {
    store::Options {
        url: Secret::new(url),
        pool_size: 12,
        checkout_timeout: Duration::from_secs(5),
        statement_timeout: Duration::from_secs(10),
    }
}

/// The idempotency key and the body of a request.
type Asked = (Option<String>, Value);

/// A tool that records what it was asked.
struct ToolServer {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Answers are held back while this is locked.
    gate: Arc<Mutex<()>>,
    server: Arc<tiny_http::Server>,
}

impl ToolServer {
    fn start() -> Self {
        let server = Arc::new(tiny_http::Server::http("127.0.0.1:0").unwrap());
        let url = format!("http://{}/tool", server.server_addr());
        let (asked, gate) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(())));
        for _ in 0..3 {
            let (server, asked, gate) = (server.clone(), asked.clone(), gate.clone());
            let answer = move || {
                while let Ok(mut request) = server.recv() {
                    let mut body = String::new();
                    request.as_reader().read_to_string(&mut body).unwrap();
                    let key = request
                        .headers()
                        .iter()
                        .find(|header| header.field.equiv("Idempotency-Key"))
                        .map(|header| header.value.to_string());
                    let body: Value = serde_json::from_str(&body).unwrap();
                    asked.lock().unwrap().push((key, body));
                    drop(gate.lock());
                    let _ = request.respond(tiny_http::Response::from_string("sunny"));
                }
            };
            std::thread::Builder::new()
                .name("tool".to_owned())
                .spawn(answer)
                .unwrap();
        }
        Self {
            url,
            asked,
            gate,
            server,
        }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        for _ in 0..3 {
            self.server.unblock();
        }
    }
}

struct World {
    database: String,
    store: Store,
    clock: Clock,
    provider: Provider,
    tool: ToolServer,
    tenant_id: Uuid,
    user_id: Uuid,
    project_id: Uuid,
    agent_id: Uuid,
    conversation_id: Uuid,
}

/// A process that runs runs.
struct Process {
    runtime: Runtime,
    shard: Shard,
    runner: Option<jobs::Runner>,
    _keepers: Option<Keepers>,
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runner) = self.runner.take() {
            runner.stop(Duration::from_millis(50));
        }
    }
}

impl World {
    fn new() -> Self {
        let name = format!("t_{}", Uuid::new_v4().simple());
        let maintenance = maintenance_url();
        let mut admin = connect::Manager::new(&options(&maintenance))
            .unwrap()
            .client()
            .unwrap();
        admin
            .batch_execute(&format!("create database {name}"))
            .unwrap();
        let (server, _) = maintenance.rsplit_once('/').unwrap();
        let url = format!("{server}/{name}");
        migrations::migrate(&connect::Manager::new(&options(&url)).unwrap(), &log()).unwrap();
        let store = Store::open(&options(&url), log()).unwrap();
        let id = || Clock::system().new_id();
        let world = Self {
            database: name,
            store,
            clock: Clock::system(),
            provider: Provider::start(Script::default()).unwrap(),
            tool: ToolServer::start(),
            tenant_id: id(),
            user_id: id(),
            project_id: id(),
            agent_id: id(),
            conversation_id: id(),
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
        let (url, tool) = (self.provider.base_url(), &self.tool.url);
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
             insert into users values ('{tenant_id}', '{user_id}', 'u', now());
             insert into projects values ('{tenant_id}', '{project_id}', 'p', '{user_id}', now(), now());
             insert into model_providers values ('{tenant_id}', '{provider_id}', 'mp', '{url}', null, '{user_id}', now(), now());
             insert into models values ('{tenant_id}', '{provider_id}', 'm', 1, 2, null, null, null);
             insert into agents (tenant_id, agent_id, project_id, name, description, created_by, created_at, updated_at) values ('{tenant_id}', '{agent_id}', '{project_id}', 'a', '', '{user_id}', now(), now());
             insert into agent_versions values ('{tenant_id}', '{agent_id}', '1.0.0', 1, 'Be brief.', '{provider_id}', 'm', '{{}}', '{limits}', '{user_id}', now());
             insert into conversations values ('{tenant_id}', '{conversation_id}', '{project_id}', '{agent_id}', null, '', null, 0, '{user_id}', now());
             {tools}"
        );
        self.batch(&script);
    }

    fn batch(&self, script: &str) {
        self.store
            .transact(|tx| Ok(tx.raw().batch_execute(script)?))
            .unwrap();
    }

    /// A process with run threads, or none.
    fn process(&self, threads: usize, keepers: bool) -> Process {
        let outbound = Outbound::new(outbound::Options::default()).unwrap();
        let options = Options {
            threads: threads.max(1),
            first_wait: Duration::from_millis(20),
            host_access: HostAccess::Local,
            ..Options::default()
        };
        let runtime = Runtime::new(
            self.store.clone(),
            self.clock.clone(),
            outbound,
            ModelKeys::default(),
            options,
            log(),
        );
        runtime.prepare().unwrap();
        let shard = runtime.feed().shard(1024);
        let runner = (threads > 0).then(|| {
            let database = self.store.for_jobs();
            let runner = runtime
                .serve(jobs::Runner::builder(database))
                .start()
                .unwrap();
            runtime.woken_by(runner.handle());
            runner
        });
        Process {
            _keepers: keepers.then(|| runtime.start_keepers().unwrap()),
            runtime,
            shard,
            runner,
        }
    }

    fn new_run(&self, conversation: bool) -> NewRun {
        NewRun {
            run_id: self.clock.new_id(),
            project_id: self.project_id,
            flow_id: "agent.turn".to_owned(),
            flow_version: "1.0.0".to_owned(),
            origin: Origin::App,
            parent_run_id: None,
            dry_run: false,
            agent: Some(Agent {
                id: self.agent_id,
                version: "1.0.0".to_owned(),
                conversation_id: conversation.then_some(self.conversation_id),
                via: Via::Latest,
            }),
            input: json!({"message": "How is the weather?"}),
            message: Some("How is the weather?".to_owned()),
            created_by: self.user_id,
            created_at: self.clock.now(),
        }
    }

    fn create(&self, process: &Process, conversation: bool) -> Uuid {
        let run = self.new_run(conversation);
        let root = Root(self.tenant_id, self.agent_id);
        process.shard.follow(run.run_id);
        let created = self
            .store
            .transact(|tx| process.runtime.create::<Run>(tx, &root, &run, None))
            .unwrap();
        assert_eq!(created, Created::New);
        process.runtime.wake();
        run.run_id
    }

    /// Reads, past connections that a restart of the database broke.
    fn read<T>(&self, read: impl Fn(&mut store::Session) -> agent_runtime::error::Result<T>) -> T {
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

    fn run(&self, run_id: Uuid) -> Run {
        self.read(|session| runs::find(session, self.tenant_id, run_id))
    }

    fn root(&self, run_id: Uuid) -> Root {
        Root(self.tenant_id, run_id)
    }

    fn events(&self, run_id: Uuid) -> Vec<StoredEvent> {
        self.read(|session| events::after(session, &self.root(run_id), 0, 1000))
    }

    /// The kinds of the events, after checking that their numbers have no gap.
    fn kinds(&self, run_id: Uuid) -> Vec<String> {
        let events = self.events(run_id);
        for (at, event) in (1_i64..).zip(&events) {
            assert_eq!(event.seq, at);
        }
        events.into_iter().map(|event| event.kind).collect()
    }

    fn number(&self, query: &'static str) -> i64 {
        self.read(|session| Ok(session.query_one(query, &[])?.get(0)))
    }

    /// Waits until the run is as wanted, woken by the feed.
    fn until(&self, process: &Process, run_id: Uuid, wanted: impl Fn(&Run) -> bool) -> Run {
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

    fn finished(&self, process: &Process, run_id: Uuid) -> Run {
        let run = self.until(process, run_id, |run| run.status.is_finished());
        assert_eq!(
            self.number("select count(*) from job_jobs"),
            0,
            "a job is left"
        );
        assert_eq!(
            self.number("select count(*) from run_deltas"),
            0,
            "text is left"
        );
        assert_eq!(
            self.number("select count(*) from conversations where active_run_id is not null"),
            0
        );
        run
    }

    /// Waits for something that no event tells of.
    fn eventually(&self, what: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !what() {
            assert!(Instant::now() < deadline);
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// As if the process that holds the run had died: its job is given to others at once.
    fn expire_leases(&self) {
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

fn calls_weather() -> Step {
    Step::new(Reply::ToolCalls(vec![(
        "weather".to_owned(),
        json!({"city": "Rome"}),
    )]))
}

#[test]
fn a_turn_with_a_tool() {
    let world = World::new();
    let process = world.process(2, true);
    world.provider.push(calls_weather());
    world.provider.push(Step::text("It is sunny."));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!(
        (run.status, &run.failure_message),
        (Status::Completed, &None)
    );
    assert_eq!(
        world.kinds(run_id),
        [
            "run.created",
            "run.started",
            "step.started",
            "step.completed",
            "step.started",
            "step.completed",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    let asked = world.tool.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].0.as_deref(), Some(format!("{run_id}-2").as_str()));
    assert_eq!(asked[0].1["arguments"], json!({"city": "Rome"}));
    let mut session = world.store.session().unwrap();
    let payload = runs::payload(&mut session, &world.root(run_id)).unwrap();
    assert_eq!(payload.output, Some(json!({"text": "It is sunny."})));
    let journal = steps::of_run(&mut session, &world.root(run_id)).unwrap();
    assert_eq!(journal.len(), 3);
    let said = world.number("select count(*) from conversation_messages where role = 'assistant' and content = 'It is sunny.'");
    assert_eq!(said, 1);
    assert_eq!(run.usage.calls, 2);
    let summed = session
        .query_one(
            "select sum(prompt_tokens)::bigint, sum(cost_usd)::float8, sum(prompt_tokens + 2 * completion_tokens)::float8 / 1e6 from run_model_calls",
            &[],
        )
        .unwrap();
    assert_eq!(run.usage.tokens.prompt, summed.get::<_, i64>(0));
    assert!(run.usage.cost_usd > 0.0);
    assert!((run.usage.cost_usd - summed.get::<_, f64>(1)).abs() < 1e-12);
    assert!((run.usage.cost_usd - summed.get::<_, f64>(2)).abs() < 1e-12);
    let second = &world.provider.requests()[1].body["messages"];
    let roles: Vec<_> = second
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(second[3]["content"], "sunny");
}

#[test]
fn text_reaches_followers_in_order_and_the_table() {
    let world = World::new();
    let process = world.process(1, true);
    let words = "one two three four five six seven eight nine ten eleven twelve";
    world
        .provider
        .push(Step::text(words).between(Duration::from_millis(40)));
    let run_id = world.create(&process, false);
    world.eventually(|| world.number("select count(*) from run_deltas") > 0);
    let mut text = String::new();
    while text.len() < words.len() {
        match process.shard.hints().recv_timeout(PATIENCE).unwrap() {
            Hint::Delta(delta) => {
                assert_eq!(usize::try_from(delta.offset).unwrap(), text.chars().count());
                assert_eq!((delta.run_id, delta.step, delta.attempt), (run_id, 1, 1));
                text.push_str(&delta.text);
            }
            Hint::Moved(moved) => assert_eq!(moved, run_id),
        }
    }
    assert_eq!(text, words);
    assert_eq!(world.finished(&process, run_id).status, Status::Completed);
}

#[test]
fn a_model_call_lost_in_a_crash_is_made_again_and_counted() {
    let world = World::new();
    let dying = world.process(1, false);
    world.provider.push(Step::text("never").before(PATIENCE));
    let run_id = world.create(&dying, true);
    world.eventually(|| world.provider.count() == 1);
    let other = world.process(0, false);
    other.shard.follow(run_id);
    world.expire_leases();
    let next = world.process(1, false);
    world.provider.push(Step::text("again"));
    let run = world.finished(&next, run_id);
    assert_eq!(run.status, Status::Completed);
    assert_eq!(run.usage.calls, 2);
    assert_eq!(world.number("select count(*) from run_model_calls where outcome = 'lost' and prompt_tokens is null and cost_usd is null"), 1);
    let kinds = world.kinds(run_id);
    assert_eq!(
        kinds,
        [
            "run.created",
            "run.started",
            "step.started",
            "step.restarted",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    assert_eq!(world.events(run_id)[3].data["lostAttempt"], 1);
    drop(dying);
    assert_eq!(
        world.kinds(run_id),
        kinds,
        "the dead process wrote something"
    );
}

fn crash_in_a_tool(name: &str) -> (World, Run) {
    let world = World::new();
    let dying = world.process(1, false);
    let closed = world.tool.gate.lock().unwrap();
    world.provider.push(Step::new(Reply::ToolCalls(vec![(
        name.to_owned(),
        json!({"city": "Rome"}),
    )])));
    world.provider.push(Step::text("done"));
    let run_id = world.create(&dying, true);
    world.eventually(|| world.tool.asked().len() == 1);
    world.expire_leases();
    let next = world.process(1, false);
    if name == "weather" {
        world.eventually(|| world.tool.asked().len() == 2);
    } else {
        world.until(&next, run_id, |run| run.status.is_finished());
    }
    drop(closed);
    let run = world.finished(&next, run_id);
    drop((dying, next));
    (world, run)
}

#[test]
fn an_idempotent_tool_is_called_again_with_the_same_key() {
    let (world, run) = crash_in_a_tool("weather");
    assert_eq!(run.status, Status::Completed);
    let asked = world.tool.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0], asked[1]);
    assert_eq!(
        run.usage.calls, 2,
        "finished model steps were not made again"
    );
}

#[test]
fn a_tool_that_is_not_idempotent_fails_the_run_and_says_so() {
    let (world, run) = crash_in_a_tool("pay");
    assert_eq!(run.status, Status::Failed);
    assert!(
        run.failure_message
            .unwrap()
            .contains("not declared idempotent")
    );
    assert_eq!(world.tool.asked().len(), 1);
    assert_eq!(world.kinds(run.run_id).last().unwrap(), "run.failed");
}

#[test]
fn cancel_cuts_a_stream_at_once() {
    let world = World::new();
    let process = world.process(1, true);
    world
        .provider
        .push(Step::text("one two three").fault(2, Fault::Hang));
    let run_id = world.create(&process, true);
    loop {
        if let Hint::Delta(_) = process.shard.hints().recv_timeout(PATIENCE).unwrap() {
            break;
        }
    }
    let began = Instant::now();
    let asked = process.runtime.cancel(&world.root(run_id)).unwrap();
    assert_eq!(asked.status, Status::Running);
    let run = world.finished(&process, run_id);
    assert!(
        began.elapsed() < Duration::from_millis(400),
        "{:?}",
        began.elapsed()
    );
    assert_eq!((run.status, run.usage.calls), (Status::Cancelled, 1));
    assert_eq!(
        world.kinds(run_id),
        [
            "run.created",
            "run.started",
            "step.started",
            "run.cancelRequested",
            "run.cancelled"
        ]
    );
    let again = process.runtime.cancel(&world.root(run_id)).unwrap();
    assert_eq!((again.status, again.last_seq), (Status::Cancelled, 5));
}

#[test]
fn cancel_on_another_replica_is_noticed() {
    let world = World::new();
    let (holder, other) = (world.process(1, true), world.process(0, false));
    world
        .provider
        .push(Step::text("one two three").fault(1, Fault::Hang));
    let run_id = world.create(&holder, true);
    world.eventually(|| world.provider.count() == 1);
    other.runtime.cancel(&world.root(run_id)).unwrap();
    assert_eq!(world.finished(&holder, run_id).status, Status::Cancelled);
}

#[test]
fn cancel_wins_over_a_late_success() {
    let world = World::new();
    // No keepers: nothing tells the holder, and the answer comes in full.
    let (holder, other) = (world.process(1, false), world.process(0, false));
    world
        .provider
        .push(Step::text("too late").before(Duration::from_millis(300)));
    let run_id = world.create(&holder, true);
    world.eventually(|| world.provider.count() == 1);
    other.runtime.cancel(&world.root(run_id)).unwrap();
    let run = world.finished(&holder, run_id);
    assert_eq!(run.status, Status::Cancelled);
    assert!(run.usage.tokens.completion > 0, "what it used is counted");
    assert_eq!(
        world.number("select count(*) from conversation_messages where role = 'assistant'"),
        0
    );
    assert_eq!(world.kinds(run_id).last().unwrap(), "run.cancelled");
}

#[test]
fn cancel_between_steps_stops_the_next() {
    let world = World::new();
    let (holder, other) = (world.process(1, false), world.process(0, false));
    world
        .provider
        .push(calls_weather().before(Duration::from_millis(300)));
    let run_id = world.create(&holder, true);
    world.eventually(|| world.provider.count() == 1);
    other.runtime.cancel(&world.root(run_id)).unwrap();
    assert_eq!(world.finished(&holder, run_id).status, Status::Cancelled);
    assert!(world.tool.asked().is_empty());
}

#[test]
fn a_cancelled_run_whose_holder_died_is_ended_by_the_next() {
    let world = World::new();
    let dying = world.process(1, false);
    world.provider.push(Step::text("never").before(PATIENCE));
    let run_id = world.create(&dying, true);
    world.eventually(|| world.provider.count() == 1);
    let other = world.process(0, false);
    other.runtime.cancel(&world.root(run_id)).unwrap();
    world.expire_leases();
    let next = world.process(1, false);
    let run = world.finished(&next, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Cancelled, 1));
    assert_eq!(world.provider.count(), 1);
}

#[test]
fn a_run_that_waits_in_the_queue_is_cancelled_at_once() {
    let world = World::new();
    let process = world.process(0, false);
    let run_id = world.create(&process, true);
    let run = process.runtime.cancel(&world.root(run_id)).unwrap();
    assert_eq!(run.status, Status::Cancelled);
    assert_eq!(world.kinds(run_id), ["run.created", "run.cancelled"]);
    world.finished(&process, run_id);
}

#[test]
fn a_busy_provider_is_asked_again_after_a_wait() {
    let world = World::new();
    let process = world.process(1, true);
    world.provider.push(
        Step::json(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "1"),
    );
    world.provider.push(Step::text("half").fault(2, Fault::Cut));
    world.provider.push(Step::text("whole"));
    let began = Instant::now();
    let run_id = world.create(&process, true);
    let waiting = world.until(&process, run_id, |run| run.status == Status::Waiting);
    assert_eq!(waiting.usage.calls, 1);
    let run = world.finished(&process, run_id);
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!((run.status, run.usage.calls), (Status::Completed, 3));
    let kinds = world.kinds(run_id);
    assert_eq!(
        kinds,
        [
            "run.created",
            "run.started",
            "step.started",
            "step.failed",
            "run.waiting",
            "step.started",
            "step.failed",
            "run.waiting",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    let waited = &world.events(run_id)[4].data;
    assert!(
        waited["reason"].as_str().unwrap().contains("slow down"),
        "{waited}"
    );
}

#[test]
fn a_waiting_run_is_cancelled_at_once() {
    let world = World::new();
    let process = world.process(1, true);
    world
        .provider
        .push(Step::json(503, &json!({})).header("retry-after", "60"));
    let run_id = world.create(&process, true);
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    let run = process.runtime.cancel(&world.root(run_id)).unwrap();
    assert_eq!(run.status, Status::Cancelled);
    world.finished(&process, run_id);
}

#[test]
fn a_provider_that_stays_down_fails_the_run() {
    let world = World::new();
    let process = world.process(1, true);
    for _ in 0..4 {
        world
            .provider
            .push(Step::json(500, &json!({"error": {"message": "on fire"}})));
    }
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Failed, 4));
    let message = run.failure_message.unwrap();
    assert!(
        message.contains("on fire") && message.contains("4 times"),
        "{message}"
    );
}

#[test]
fn a_lasting_fault_fails_the_run_at_once() {
    let world = World::new();
    let process = world.process(1, true);
    world
        .provider
        .push(Step::plain(200, "text/html", "<html>no</html>"));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Failed, 1));
    assert!(run.failure_message.unwrap().contains("web page"));
}

#[test]
fn mistakes_of_the_model_are_told_to_it() {
    let world = World::new();
    let process = world.process(1, true);
    world.provider.push(Step::new(Reply::ToolCalls(vec![
        ("weather".to_owned(), json!({"town": "Rome"})),
        ("nothing".to_owned(), json!({})),
        ("weather".to_owned(), json!({"city": "Rome"})),
    ])));
    world.provider.push(Step::text("well"));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed);
    let answers: Vec<String> = world.provider.requests()[1].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(answers[0].contains("do not fit"), "{answers:?}");
    assert!(answers[1].contains("no tool"), "{answers:?}");
    assert_eq!(answers[2], "sunny");
    assert_eq!(world.tool.asked().len(), 1);
}

#[test]
fn a_turn_ends_at_its_time_limit() {
    let world = World::new();
    world.batch("update agent_versions set limits = '{\"turnTimeoutMs\": 1000}'");
    let process = world.process(1, true);
    world.provider.push(Step::text("never").before(PATIENCE));
    let run_id = world.create(&process, true);
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Failed);
    assert!(run.failure_message.unwrap().contains("turnTimeoutMs"));
}

#[test]
fn a_conversation_has_one_turn_at_a_time_and_a_key_makes_one_run() {
    let world = World::new();
    let process = world.process(0, false);
    let root = Root(world.tenant_id, world.agent_id);
    let key = |digest: u8| RequestKey {
        principal: "user".to_owned(),
        route: "POST /v1/runs".to_owned(),
        key: "k".to_owned(),
        body_digest: [digest; 32],
    };
    let create = |request: Option<&RequestKey>| {
        let run = world.new_run(true);
        world
            .store
            .transact(|tx| process.runtime.create::<Run>(tx, &root, &run, request))
            .map(|created| (created, run.run_id))
    };
    let (_, first) = create(Some(&key(1))).unwrap();
    assert_eq!(create(Some(&key(1))).unwrap().0, Created::Earlier(first));
    assert_eq!(
        create(Some(&key(2))).unwrap_err().code(),
        Code::IdempotencyMismatch
    );
    assert_eq!(create(None).unwrap_err().code(), Code::Conflict);
    assert_eq!(world.number("select count(*) from runs"), 1);
    assert_eq!(world.number("select count(*) from job_jobs"), 1);
    world.clock.advance(Duration::from_secs(25 * 3600));
    process.runtime.prepare().unwrap();
    assert_eq!(world.number("select count(*) from idempotency_keys"), 0);
}

#[test]
fn a_stop_between_steps_hands_the_run_over() {
    let world = World::new();
    let mut first = world.process(1, true);
    let closed = world.tool.gate.lock().unwrap();
    world.provider.push(calls_weather());
    world.provider.push(Step::text("done"));
    let run_id = world.create(&first, true);
    world.eventually(|| world.tool.asked().len() == 1);
    let runner = first.runner.take().unwrap();
    let stopping = std::thread::Builder::new()
        .name("stop".to_owned())
        .spawn(move || runner.stop(PATIENCE))
        .unwrap();
    std::thread::park_timeout(Duration::from_millis(50));
    drop(closed);
    stopping.join().unwrap();
    assert_eq!(world.run(run_id).status, Status::Running);
    let second = world.process(1, true);
    let run = world.finished(&second, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Completed, 2));
    assert_eq!(world.tool.asked().len(), 1);
}

#[test]
fn a_database_that_was_away_costs_no_finished_step() {
    let world = World::new();
    let process = world.process(1, true);
    let closed = world.tool.gate.lock().unwrap();
    world.provider.push(Step::new(Reply::ToolCalls(vec![(
        "pay".to_owned(),
        json!({"city": "Rome"}),
    )])));
    world.provider.push(Step::text("paid"));
    let run_id = world.create(&process, true);
    world.eventually(|| world.tool.asked().len() == 1);
    let mut admin = connect::Manager::new(&options(&maintenance_url()))
        .unwrap()
        .client()
        .unwrap();
    admin
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1",
            &[&world.database],
        )
        .unwrap();
    drop(closed);
    let run = world.finished(&process, run_id);
    assert_eq!((run.status, run.usage.calls), (Status::Completed, 2));
    assert_eq!(world.tool.asked().len(), 1);
    world.kinds(run_id);
}

/// Every event of a run in its place: nothing after the last, no step done twice, none begun again
/// once it is done.
fn judge(world: &World, run_id: Uuid) {
    let events = world.events(run_id);
    let kinds = world.kinds(run_id);
    let last = |kind: &String| {
        matches!(
            kind.as_str(),
            "run.completed" | "run.failed" | "run.cancelled"
        )
    };
    assert_eq!(
        kinds.iter().filter(|kind| last(kind)).count(),
        1,
        "{kinds:?}"
    );
    assert!(kinds.last().is_some_and(last), "{kinds:?}");
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "run.started").count(),
        1
    );
    let mut done = std::collections::HashSet::new();
    for event in &events {
        let step = event.data["step"].as_i64();
        if event.kind.starts_with("step.") {
            assert!(
                !done.contains(&step),
                "{} of a finished step: {events:?}",
                event.kind
            );
        }
        if event.kind == "step.completed" {
            done.insert(step);
        }
    }
    let run = world.run(run_id);
    assert_eq!(run.last_seq, i64::try_from(events.len()).unwrap());
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    let (calls, completed, finished): (i64, i64, i64) = world.read(|session| {
        let row = session.query_one(
            "select (select count(*) from run_model_calls where run_id = $1),
               (select count(*) from run_model_calls where run_id = $1 and outcome = 'completed'),
               (select count(*) from run_steps where run_id = $1 and kind = 'model' and status = 'completed')",
            &[&run_id],
        )?;
        Ok((row.get(0), row.get(1), row.get(2)))
    });
    assert_eq!((run.usage.calls, completed), (calls, finished));
}

#[test]
fn leases_that_run_out_at_any_moment_lose_and_repeat_nothing() {
    let world = World::new();
    world.batch("update agent_versions set limits = '{\"maxSteps\": 200}'");
    let processes = [world.process(4, true), world.process(4, true)];
    let pace = Duration::from_millis(3);
    for _ in 0..40 {
        world
            .provider
            .push(calls_weather().before(pace).between(pace));
        world
            .provider
            .push(Step::text("a b c d e").before(pace).between(pace));
    }
    let runs: Vec<Uuid> = (0..30)
        .map(|_| world.create(&processes[0], false))
        .collect();
    for round in 0..60_u64 {
        // Moments that no other clock of the test shares.
        std::thread::park_timeout(Duration::from_millis(round * 7 % 23));
        world.expire_leases();
        for process in &processes {
            process.runtime.wake();
        }
    }
    for run_id in &runs {
        world.until(&processes[0], *run_id, |run| run.status.is_finished());
        judge(&world, *run_id);
    }
    let lost = world.number("select count(*) from run_model_calls where outcome = 'lost'");
    assert!(lost > 0, "no lease ran out in time");
    world.eventually(|| world.number("select count(*) from job_jobs") == 0);
}
