//! Twenty endpoints, and events for them: approvals and passes that this process emits as another
//! replica would, and runs that the program carries on or cancels.

use super::receivers::Receivers;
use crate::random::Random;
use crate::server::{Client, ServerConfig};
use crate::wait::{moment, until_due};
use crate::world::{Agents, Pace, id_of};
use agent_runtime::ids::Clock;
use agent_runtime::outbound::Outbound;
use agent_runtime::secret::Secret;
use agent_runtime::secrets::{self, AadKey, PostgresOptions, Secrets, kms};
use agent_runtime::store::{self, Store};
use agent_runtime::webhooks::event::{Approval, Event, ImprovementPass, PassStatus};
use agent_runtime::webhooks::{self, Webhooks};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::collections::HashMap;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;
use zeroize::Zeroizing;

/// Each but the last two takes what happens in a project of its own.
pub(crate) const ENDPOINTS: usize = 20;
/// It refuses everything, and its project has few events.
pub(crate) const DEAD: usize = ENDPOINTS - 2;
/// It takes the end of every run, of whatever project.
pub(crate) const OF_RUNS: usize = ENDPOINTS - 1;

/// Events written in one transaction.
const BATCH: usize = 20;
/// Of this many batches, one has an event for the dead endpoint.
const DEAD_EVERY: usize = 10;
const LONGEST: Duration = Duration::from_secs(120);

/// The keys of a deployment.
pub(crate) struct Keys {
    local: [u8; 32],
    aad: [u8; 32],
}

impl Keys {
    pub(crate) fn new() -> Self {
        let (mut local, mut aad) = ([0; 32], [0; 32]);
        getrandom::fill(&mut local).unwrap();
        getrandom::fill(&mut aad).unwrap();
        Self { local, aad }
    }

    /// The config with a backend of secrets, and so with webhooks.
    pub(crate) fn set(&self, config: ServerConfig) -> ServerConfig {
        let path = config.log.with_extension("key");
        let mut file = std::fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .unwrap();
        std::io::Write::write_all(&mut file, &self.local).unwrap();
        config
            .with("SVC_SECRETS_BACKEND", "postgres")
            .with("SVC_SECRETS_BACKEND_KMS", "local")
            .with("SVC_SECRETS_LOCAL_KEY_PATH", path.display())
            .with("SVC_SECRETS_AAD_KEY", STANDARD.encode(self.aad))
            .with("SVC_WEBHOOK_TIMEOUT_MS", 3000)
    }

    fn options(&self) -> secrets::Options {
        secrets::Options::Postgres(Box::new(PostgresOptions {
            kms: kms::Options::Local {
                key: kms::LocalKey::new(Zeroizing::new(self.local)),
                previous: None,
            },
            aad_key: AadKey::new(&self.aad),
            kept_for: secrets::KEPT_FOR,
        }))
    }
}

/// An event that was committed: its subject and the only endpoint that it matches.
pub(crate) type Emitted = (Uuid, usize);

/// Emits into the database, as a replica does.
#[derive(Clone)]
struct Source {
    store: Store,
    webhooks: Webhooks,
    clock: Clock,
    tenant_id: Uuid,
    projects: Arc<Vec<Uuid>>,
}

/// What stands before the faults begin.
pub(crate) struct Scene {
    pub(crate) config: ServerConfig,
    pub(crate) receivers: Receivers,
    pub(crate) endpoints: Vec<Uuid>,
    pub(crate) agents: Agents,
    /// When each was said to be unregistered.
    pub(crate) unregistered: Arc<Mutex<HashMap<usize, Instant>>>,
    source: Source,
}

impl Scene {
    /// Makes it through the API of a ready server.
    pub(crate) fn make(config: &ServerConfig, keys: &Keys, random: &mut Random) -> Self {
        let client = config.client();
        let receivers = Receivers::start(DEAD, random);
        let secret = json!({"value": receivers.secret()});
        let put = client.send("PUT", "/v1/secrets/test/HOOKS", Some(&secret), &[]);
        let put = put.unwrap();
        assert!([200, 201].contains(&put.status), "{}", put.body);
        let projects: Vec<Uuid> = (0..OF_RUNS).map(|_| project(&client)).collect();
        let endpoints = (0..ENDPOINTS).map(|number| {
            let mut wanted = json!({"url": receivers.url(number),
                "events": ["run.finished", "approval.requested", "improvement-pass.finished"],
                "secretRef": {"envName": "test", "name": "HOOKS"}});
            match projects.get(number) {
                Some(project) => wanted["filter"] = json!({"projectId": project}),
                None => wanted["events"] = json!(["run.finished"]),
            }
            let made = client.made("/v1/webhook-endpoints", &wanted, 201);
            made["endpointId"].as_str().unwrap().parse().unwrap()
        });
        let endpoints = endpoints.collect();
        let pace = Pace {
            between: Duration::from_millis(2),
            tool: Duration::from_millis(20),
        };
        Self {
            config: config.clone(),
            endpoints,
            agents: Agents::make(&client, pace),
            unregistered: Arc::default(),
            source: Source::open(config, keys, projects),
            receivers,
        }
    }

    /// Begins to emit so many events, at an even pace over about that time.
    pub(crate) fn emit(&self, events: usize, over: Duration) -> JoinHandle<Vec<Emitted>> {
        let source = self.source.clone();
        let batches = events.div_ceil(BATCH);
        let between = over / u32::try_from(batches).unwrap();
        thread("emitter", move || {
            let begin = Instant::now();
            let mut emitted = Vec::new();
            for batch in 0..batches {
                let due = begin + between * u32::try_from(batch).unwrap();
                until_due(due);
                let size = BATCH.min(events - emitted.len());
                emitted.extend(source.batch(batch, size));
            }
            emitted
        })
    }

    /// Begins to start so many runs one after the other, every other of them cancelled at once; what
    /// it gives are the runs.
    pub(crate) fn run(&self, runs: usize, over: Duration) -> JoinHandle<Vec<Emitted>> {
        let client = self.config.client();
        let turn = self.agents.turn(self.agents.repeatable);
        let between = over / u32::try_from(runs.max(1)).unwrap();
        thread("runs", move || {
            let begin = Instant::now();
            let started = (0..runs).map(|number| {
                let due = begin + between * u32::try_from(number).unwrap();
                until_due(due);
                let run_id =
                    crate::follow::start(&client, &turn, &Clock::system().new_id().to_string());
                if number % 2 == 0 {
                    // If the server is not there, the run ends by itself.
                    let _ = client.post(&format!("/v1/runs/{run_id}/cancel"), &json!({}));
                }
                (run_id, OF_RUNS)
            });
            started.collect()
        })
    }

    /// Begins to unregister an endpoint, again and again until it is said to be.
    pub(crate) fn unregister(&self, endpoint: usize) -> JoinHandle<()> {
        let client = self.config.client();
        let path = format!("/v1/webhook-endpoints/{}", self.endpoints[endpoint]);
        let unregistered = Arc::clone(&self.unregistered);
        thread("unregister", move || {
            let deadline = Instant::now() + LONGEST;
            loop {
                let answer = client.send("DELETE", &path, None, &[]);
                match answer.map(|answer| answer.status) {
                    // After a kill the answer to an earlier request may be lost: it is gone then, and
                    // nothing is in flight any more.
                    Ok(204 | 404) => break,
                    Ok(409 | 503 | 504) | Err(_) => {}
                    Ok(other) => panic!("{path}: {other}"),
                }
                assert!(Instant::now() < deadline, "never unregistered");
                moment();
            }
            let earlier = unregistered
                .lock()
                .unwrap()
                .insert(endpoint, Instant::now());
            assert!(earlier.is_none(), "one asks for each");
        })
    }
}

fn project(client: &Client) -> Uuid {
    let name = Clock::system().new_id().to_string();
    id_of(&client.made("/v1/projects", &json!({"name": name}), 201))
}

pub(crate) fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(work).unwrap()
}

impl Source {
    fn open(config: &ServerConfig, keys: &Keys, projects: Vec<Uuid>) -> Self {
        let log = slog::Logger::root(slog::Discard, slog::o!());
        let options = store::Options {
            url: Secret::new(&config.database_url),
            pool_size: 2,
            checkout_timeout: Duration::from_secs(1),
            outage: Default::default(),
            statement_timeout: Duration::from_secs(10),
        };
        let (store, clock) = (Store::open(&options, log.clone()).unwrap(), Clock::system());
        let outbound = Outbound::new(agent_runtime::outbound::Options::default()).unwrap();
        let secrets = Secrets::new(keys.options(), &store, &outbound, &clock, log.clone());
        let webhooks = Webhooks::new(
            store.clone(),
            clock.clone(),
            outbound,
            secrets.unwrap(),
            webhooks::Options::default(),
            log,
        );
        Self {
            store,
            webhooks,
            clock,
            tenant_id: config.tenant_id,
            projects: Arc::new(projects),
        }
    }

    /// Emits a batch in one transaction, again until it is committed.
    fn batch(&self, number: usize, size: usize) -> Vec<Emitted> {
        let events: Vec<(Event, Emitted)> = (0..size)
            .map(|index| {
                let endpoint = match index {
                    0 if number.is_multiple_of(DEAD_EVERY) => DEAD,
                    _ => (number * BATCH + index) % DEAD,
                };
                self.event(endpoint, index)
            })
            .collect();
        let (_, (first, _)) = &events[0];
        let deadline = Instant::now() + LONGEST;
        loop {
            let committed = self.store.transact(|tx| {
                for (event, _) in &events {
                    self.webhooks.emit(tx, self.tenant_id, event)?;
                }
                Ok(())
            });
            // An answer that was lost may have been a yes. The first one is an approval, whose event
            // has its id.
            if committed.is_ok() || self.stands(*first) {
                return events.into_iter().map(|(_, emitted)| emitted).collect();
            }
            assert!(Instant::now() < deadline, "{committed:?}");
            moment();
        }
    }

    fn stands(&self, event_id: Uuid) -> bool {
        let found = self.store.transact(|tx| {
            let query = "select from webhook_events where event_id = $1";
            tx.raw()
                .query_opt(query, &[&event_id])
                .map_err(agent_runtime::error::Error::internal)
        });
        matches!(found, Ok(Some(_)))
    }

    fn event(&self, endpoint: usize, index: usize) -> (Event, Emitted) {
        let (id, project_id) = (self.clock.new_id(), self.projects[endpoint]);
        let now = self.clock.now();
        let event = match index % 2 {
            0 => Event::ApprovalRequested {
                approval: Approval {
                    approval_id: id,
                    project_id,
                    required_role: "reviewer".to_owned(),
                    title: "Send it".to_owned(),
                    assigned_to: None,
                    created_at: now.into(),
                    expires_at: (now + Duration::from_secs(3600)).into(),
                    url: None,
                },
            },
            _ => Event::ImprovementPassFinished {
                pass: ImprovementPass {
                    id,
                    project_id,
                    status: PassStatus::Completed,
                    outcome: None,
                    created_at: now.into(),
                    completed_at: now.into(),
                },
            },
        };
        (event, (id, endpoint))
    }
}

/// Lets retries come at once that would wait for minutes. Dropping it ends that.
pub(crate) struct Haste {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Haste {
    pub(crate) fn begin(database_url: &str) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (url, ends) = (database_url.to_owned(), Arc::clone(&over));
        let thread = thread("haste", move || {
            while !ends.load(Ordering::SeqCst) {
                // The database may be away.
                if let Err(error) = run_now(&url, &ends) {
                    let _ = error;
                }
                moment();
            }
        });
        Self {
            over,
            thread: Some(thread),
        }
    }
}

fn run_now(url: &str, over: &AtomicBool) -> Result<(), Box<dyn std::error::Error>> {
    let mut client = postgres::Client::connect(url, postgres::NoTls)?;
    while !over.load(Ordering::SeqCst) {
        // What waits for an attempt that a kill left without an end waits less long, and for good reason.
        let rows = client.query(
            "select id from job_jobs where queue = 'webhooks' and lease_id is null \
             and run_at > clock_timestamp() + interval '15 seconds'",
            &[],
        )?;
        let mut transaction = client.transaction()?;
        for row in rows {
            jobs::run_now(&mut transaction, row.get(0))?;
        }
        transaction.commit()?;
        moment();
    }
    Ok(())
}

impl Drop for Haste {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
