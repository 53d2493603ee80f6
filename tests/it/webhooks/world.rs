//! A server with webhooks, an agent whose runs end at once, and what tests ask about deliveries.

use crate::harness::secrets::Keys;
use crate::harness::{App, eventually};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::ids::Clock;
use agent_runtime::secrets;
use agent_runtime::server::Options;
use agent_runtime::webhooks::event::{Approval, Event};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// The signing secret `hook` of the environment `test`.
pub(super) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(super) struct World {
    pub(super) app: App,
    pub(super) agent: Uuid,
    secrets: secrets::Options,
    _provider: Provider,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let secrets = Keys::new().options();
        let app = App::start_with(|options| {
            webhooks(options);
            options.secrets = secrets.clone();
            change(options);
        });
        let provider = Provider::start(Script {
            queue: Vec::new(),
            then: Step::text("Done."),
        })
        .unwrap();
        let agent = app.agent(&provider.base_url());
        let world = Self {
            app,
            agent,
            secrets,
            _provider: provider,
        };
        world.secret("hook", SECRET);
        world
    }

    pub(super) fn into_app(self) -> App {
        self.app
    }

    /// The same after a stop and another start, with another clock.
    pub(super) fn restarted(self, clock: Clock) -> Self {
        self.restarted_with(clock, |_| {})
    }

    pub(super) fn restarted_with(self, clock: Clock, change: impl FnOnce(&mut Options)) -> Self {
        let (database, _, seeds) = self.app.stop();
        let app = App::start_on(database, clock, seeds, |options| {
            webhooks(options);
            options.secrets = self.secrets.clone();
            change(options);
        });
        Self { app, ..self }
    }

    #[track_caller]
    pub(super) fn secret(&self, name: &str, value: &str) {
        let path = format!("/v1/secrets/test/{name}");
        let answer = self.app.put(&path, &json!({"value": value}));
        assert!([200, 201].contains(&answer.status), "{answer:?}");
    }

    /// An endpoint that takes every finished run; its id.
    #[track_caller]
    pub(super) fn endpoint(&self, url: &str) -> String {
        self.endpoint_with(url, &["run.finished"], &Value::Null)
    }

    #[track_caller]
    pub(super) fn endpoint_with(&self, url: &str, events: &[&str], filter: &Value) -> String {
        let mut body = json!({
            "url": url, "events": events, "secretRef": {"envName": "test", "name": "hook"},
        });
        if !filter.is_null() {
            body["filter"] = filter.clone();
        }
        let made = self.app.post("/v1/webhook-endpoints", &body).expect(201);
        made["endpointId"].as_str().unwrap().to_owned()
    }

    /// A run that has finished; its id.
    #[track_caller]
    pub(super) fn run(&self) -> String {
        self.run_of(&json!({"agentId": self.agent, "message": "Go."}))
    }

    #[track_caller]
    pub(super) fn run_of(&self, body: &Value) -> String {
        let started = self.app.post("/v1/runs", body).expect(202);
        let id = started["run"]["id"].as_str().unwrap().to_owned();
        assert_eq!(self.app.finished(&id)["status"], "completed");
        id
    }

    /// The endpoint's deliveries, newest first.
    #[track_caller]
    pub(super) fn deliveries(&self, endpoint: &str) -> Vec<Value> {
        let path = format!("/v1/webhook-endpoints/{endpoint}/deliveries");
        let page = self.app.get(&path).expect(200);
        page["data"].as_array().unwrap().clone()
    }

    /// The endpoint's newest delivery, once it is so.
    #[track_caller]
    pub(super) fn newest(&self, endpoint: &str, is: impl Fn(&Value) -> bool) -> Value {
        let found = eventually("the delivery to come so far", || {
            self.deliveries(endpoint)
                .first()
                .filter(|one| is(one))
                .cloned()
        });
        self.whole(endpoint, &found)
    }

    #[track_caller]
    pub(super) fn delivered(&self, endpoint: &str) -> Value {
        self.newest(endpoint, |one| one["state"] == "delivered")
    }

    /// The endpoint's newest delivery, once this many attempts at it have ended.
    #[track_caller]
    pub(super) fn attempted(&self, endpoint: &str, attempts: i64) -> Value {
        self.newest(endpoint, |one| one["attemptCount"] == attempts)
    }

    /// A delivery with its attempts.
    #[track_caller]
    pub(super) fn whole(&self, endpoint: &str, delivery: &Value) -> Value {
        let id = delivery["id"].as_str().unwrap();
        let path = format!("/v1/webhook-endpoints/{endpoint}/deliveries/{id}");
        self.app.get(&path).expect(200)
    }

    /// Makes what waits for a later attempt due.
    pub(super) fn run_now(&self) {
        let mut client = self.app.database.client();
        let waiting = "select id from job_jobs where queue = 'webhooks' and lease_id is null";
        let rows = client.query(waiting, &[]).unwrap();
        let mut tx = client.transaction().unwrap();
        for row in rows {
            jobs::run_now(&mut tx, row.get(0)).unwrap();
        }
        tx.commit().unwrap();
    }

    pub(super) fn number(&self, sql: &str) -> i64 {
        let mut client = self.app.database.client();
        client.query_one(sql, &[]).unwrap().get(0)
    }
}

/// Sends the endpoint a test.
#[track_caller]
pub(super) fn test(world: &World, endpoint: &str) {
    let path = format!("/v1/webhook-endpoints/{endpoint}/test");
    world.app.post(&path, &json!({})).expect(202);
}

/// An event that no agent has to run for.
pub(super) fn approval(world: &World) -> Event {
    let now = world.app.clock.now();
    let approval = Approval {
        approval_id: world.app.clock.new_id(),
        project_id: world.app.clock.new_id(),
        required_role: "reviewer".to_owned(),
        title: "Send it".to_owned(),
        assigned_to: None,
        created_at: now.into(),
        expires_at: (now + Duration::from_secs(3600)).into(),
        url: None,
    };
    Event::ApprovalRequested { approval }
}

/// Webhooks to plain receivers on this machine, with a deadline that a busy one keeps.
pub(super) fn webhooks(options: &mut Options) {
    options.secrets = Keys::new().options();
    options.webhooks.development = true;
    options.webhooks.timeout = Duration::from_secs(8);
    options.webhooks.poll = Duration::from_millis(50);
    options.webhooks.threads = 8;
}
