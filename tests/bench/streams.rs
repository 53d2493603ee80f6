//! What many readers of runs' streams cost: from the commit of an event to its last byte at a reader, the p99, with ten
//! readers of each of a thousand runs beside ten readers in all; and the memory of a stream.
//!
//! All runs are going, each in a call of a model that answers when it is told to. Then the run commits what the model
//! said together with the step of its tool, calls the tool, and commits what that said together with the next call of
//! the model: four events in two commits. The moment of a commit is the database's own (`track_commit_timestamp`), taken
//! before the commit is flushed, so the flush is in every figure of both sides.

use super::deployment::{Deployment, Replica};
use super::held::{Answer, Held, TOOL};
use super::machine::{Moment, raise_descriptors, resident_kib};
use super::plan::Plan;
use super::readers::{Follow, Readers};
use super::rounds::{Figure, Measure, alone, compare, grow, median, percentile};
use super::row::{About, Target, rounded};
use super::{Done, Outcome};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

/// Readers of each run.
const EACH: usize = 10;
/// Events of all runs together.
const EVENTS_PER_SECOND: usize = 100;
/// What a run commits each time that its model answers.
const EVENTS_PER_ANSWER: usize = 4;
/// Of one run: a turn has at most 200 steps, and each answer is two of them.
const ANSWERS_OF_A_RUN: usize = 90;
/// What opening streams left behind is over.
const CALM: Duration = Duration::from_secs(1);
/// Clients that start runs, or read them to warm a replica up.
const CLIENTS: usize = 8;
/// For the streams, for the runs' models, and for everything else.
const DESCRIPTORS: u64 = 13_000;

/// As behind a proxy that holds every connection. Runs keep their thread for as long as their model lets them wait.
const SETTINGS: [(&str, &str); 8] = [
    ("SVC_MAX_CONNECTIONS", "12000"),
    ("SVC_MAX_CONNECTIONS_PER_ADDRESS", "12000"),
    ("SVC_MAX_STREAMS", "12000"),
    ("SVC_RUN_THREADS", "1100"),
    ("SVC_MODEL_FIRST_BYTE_TIMEOUT_MS", "3600000"),
    ("SVC_MODEL_IDLE_TIMEOUT_MS", "3600000"),
    ("SVC_MODEL_TOTAL_TIMEOUT_MS", "86400000"),
    ("SVC_HOST_ACCESS", "local"),
];

/// A run that is going.
#[derive(Clone, Copy)]
struct Going {
    number: usize,
    run_id: Uuid,
}

/// Fields end in this order: the service before what it stands on.
struct Stage {
    replica: Replica,
    held: Held,
    agent_id: String,
    /// Runs that go on for as long as all this.
    standing: Vec<Going>,
    /// Runs started so far.
    started: Cell<usize>,
    deployment: Deployment,
}

impl Stage {
    fn start(standing: usize) -> Outcome<Self> {
        let mut deployment = Deployment::start(false, &SETTINGS)?;
        deployment.keep_commit_times()?;
        let (replica, held) = (deployment.replica()?, Held::start()?);
        let mut made = Self {
            agent_id: agent(&replica, &held)?,
            replica,
            held,
            standing: Vec::new(),
            started: Cell::new(0),
            deployment,
        };
        made.standing = made.start_runs(standing)?;
        Ok(made)
    }

    /// Starts runs and waits until all of them wait for their model.
    fn start_runs(&self, count: usize) -> Outcome<Vec<Going>> {
        let first = self.started.replace(self.started.get() + count);
        let numbers: Vec<usize> = (first..first + count).collect();
        let (client, agent_id) = (&self.replica.client, &self.agent_id);
        let start = |number: usize| -> Outcome<Going> {
            let wanted = json!({"agentId": agent_id, "message": number.to_string()});
            let started = client.post("/v1/runs", &wanted)?;
            Ok(Going {
                number,
                run_id: id(&started["run"])?.parse()?,
            })
        };
        let parts = numbers.chunks(count.div_ceil(CLIENTS));
        let part = |numbers: &[usize]| -> Result<Vec<Going>, String> {
            let started = numbers.iter().map(|number| start(*number));
            let started: Outcome<_> = started.collect();
            started.map_err(|error| error.to_string())
        };
        let runs = std::thread::scope(|scope| {
            let threads: Vec<_> = parts
                .map(|numbers| scope.spawn(move || part(numbers)))
                .collect();
            let ended = threads.into_iter().map(|thread| {
                let ended = thread.join();
                ended.map_err(|_| "a client panicked".to_owned())?
            });
            ended.collect::<Result<Vec<_>, String>>()
        })?;
        let runs: Vec<Going> = runs.into_iter().flatten().collect();
        self.held.await_all(runs.iter().map(|run| run.number))?;
        Ok(runs)
    }

    /// Where the readers of these runs begin: after what stands.
    fn follows(&self, runs: &[Going]) -> Outcome<Vec<Follow>> {
        let run_ids: Vec<Uuid> = runs.iter().map(|run| run.run_id).collect();
        let rows = self.deployment.database()?.query(
            "select run_id, last_seq from runs where tenant_id = $1 and run_id = any($2)",
            &[&self.deployment.seeds.tenant_id, &run_ids],
        )?;
        let follow = |row: &postgres::Row| Follow {
            run_id: row.get(0),
            after: row.get(1),
        };
        Ok(rows.iter().map(follow).collect())
    }

    fn readers(&self, of: &Replica, follows: &[Follow], each: usize) -> Outcome<Readers> {
        let token = self.deployment.seeds.token.expose();
        Readers::open(of.address(), token, follows, each)
    }

    /// When the events of these runs were committed, from a position on.
    fn commits(
        &self,
        runs: &[Going],
        position: i64,
    ) -> Outcome<HashMap<(Uuid, i64), OffsetDateTime>> {
        let run_ids: Vec<Uuid> = runs.iter().map(|run| run.run_id).collect();
        let rows = self.deployment.database()?.query(
            "select run_id, seq, pg_xact_commit_timestamp(xmin) from run_events
             where position > $1 and run_id = any($2)",
            &[&position, &run_ids],
        )?;
        let commit = |row: &postgres::Row| ((row.get(0), row.get(1)), row.get(2));
        Ok(rows.iter().map(commit).collect())
    }

    fn position(&self) -> Outcome<i64> {
        let query = "select coalesce(max(position), 0) from run_events";
        Ok(self.deployment.database()?.query_one(query, &[])?.get(0))
    }
}

/// An agent whose model is asked here, and whose tool is; its id.
fn agent(replica: &Replica, held: &Held) -> Outcome<String> {
    let post = |path: &str, body: Value| replica.client.post(path, &body);
    let project = post("/v1/projects", json!({"name": "bench"}))?;
    let provider = post(
        "/v1/model-providers",
        json!({"name": "held", "baseUrl": held.base_url(), "models": [{"name": "m"}]}),
    )?;
    let tool = post(
        "/v1/tools",
        json!({"projectId": project["id"], "name": TOOL, "description": "Notes.",
            "argumentsSchema": {"type": "object"}, "url": held.tool_url()}),
    )?;
    let agent = post(
        "/v1/agents",
        json!({"projectId": project["id"], "name": "bench"}),
    )?;
    let agent_id = id(&agent)?;
    post(
        &format!("/v1/agents/{agent_id}/versions"),
        json!({"instructions": "Answer.", "modelProviderId": provider["id"], "model": "m",
            "toolIds": [tool["id"]], "limits": {"maxSteps": 200, "turnTimeoutMs": 86_400_000}}),
    )?;
    Ok(agent_id.to_owned())
}

fn id(of: &Value) -> Outcome<&str> {
    of["id"]
        .as_str()
        .ok_or_else(|| format!("no id: {of}").into())
}

/// What is measured at once.
#[derive(Clone, Copy)]
struct Load {
    /// In all.
    readers: usize,
    events_per_second: usize,
    seconds: usize,
}

/// What was measured.
#[derive(Default)]
struct Seen {
    latencies_ms: Vec<f64>,
    answers: usize,
    seconds: f64,
}

/// The p99 of an event's way to its readers.
fn measure(stage: &Stage, load: Load) -> Outcome<Figure> {
    let runs = load.readers.div_ceil(EACH);
    let mut left = load.seconds * load.events_per_second / EVENTS_PER_ANSWER;
    let mut seen = Seen::default();
    let mut used = None;
    while left > 0 {
        let some = left.min(runs * ANSWERS_OF_A_RUN);
        left -= some;
        // Few runs that go on so often would soon be at their turn's limit: they are started anew.
        let few = (runs * EACH < stage.standing.len())
            .then(|| stage.start_runs(runs))
            .transpose()?;
        let runs = few.as_deref().unwrap_or(&stage.standing[..runs]);
        let before = follow(stage, runs, load.events_per_second, some, &mut seen)?;
        used = Some(used.unwrap_or(before));
        for run in few.iter().flatten() {
            stage.held.answer(run.number, Answer::Text)?;
        }
    }
    let rate = (seen.answers * EVENTS_PER_ANSWER) as f64 / seen.seconds;
    Ok(Figure {
        note: format!(
            " (p50 {}, {rate:.0} events/s)",
            rounded(percentile(seen.latencies_ms.clone(), 0.5))
        ),
        value: percentile(seen.latencies_ms, 0.99),
        used: used.ok_or("nothing was measured")?.until_now(),
    })
}

/// Lets the runs go on in turn while they are followed; the moment it began.
fn follow(
    stage: &Stage,
    runs: &[Going],
    events_per_second: usize,
    answers: usize,
    seen: &mut Seen,
) -> Outcome<Moment> {
    let readers = stage.readers(&stage.replica, &stage.follows(runs)?, EACH)?;
    std::thread::sleep(CALM);
    let position = stage.position()?;
    let before = Moment::now();
    let began = Instant::now();
    let every = Duration::from_secs(1) / u32::try_from(events_per_second / EVENTS_PER_ANSWER)?;
    for (number, run) in (0_u32..).zip(runs.iter().cycle().take(answers)) {
        let due = began + every * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        stage.held.answer(run.number, Answer::Tool)?;
    }
    let count = answers * EVENTS_PER_ANSWER * EACH;
    let receipts = (0..count)
        .map(|_| readers.next())
        .collect::<Outcome<Vec<_>>>()?;
    seen.seconds += began.elapsed().as_secs_f64();
    seen.answers += answers;
    drop(readers);
    let commits = stage.commits(runs, position)?;
    if commits.len() != answers * EVENTS_PER_ANSWER {
        return Err(format!("{} events were committed", commits.len()).into());
    }
    for receipt in receipts {
        let committed_at = commits.get(&(receipt.run_id, receipt.seq));
        let committed_at = committed_at.ok_or("a reader got an event that was not committed")?;
        let took = receipt.at - *committed_at;
        seen.latencies_ms.push(took.as_seconds_f64() * 1000.0);
    }
    Ok(before)
}

/// Resident KiB a stream of a replica's process, of which nobody else wants anything.
fn memory(stage: &Stage, streams: usize) -> Outcome<Figure> {
    let before = Moment::now();
    let replica = stage.deployment.replica()?;
    let runs = &stage.standing[..streams.div_ceil(EACH)];
    warm(&replica, runs)?;
    let base = resident_kib(replica.id())?;
    let readers = stage.readers(&replica, &stage.follows(runs)?, EACH)?;
    std::thread::sleep(CALM);
    let grown = resident_kib(replica.id())? - base;
    drop(readers);
    Ok(Figure {
        value: grown / (runs.len() * EACH) as f64,
        used: before.until_now(),
        note: format!(" (from {base:.0} KiB)"),
    })
}

/// Lets every thread and connection of a replica have worked, without a stream.
fn warm(replica: &Replica, runs: &[Going]) -> Outcome {
    let read = |runs: &[Going]| -> Result<(), String> {
        for run in runs.iter().cycle().take(100) {
            let path = format!("/v1/runs/{}", run.run_id);
            let answer = replica.client.send("GET", &path, "");
            answer.map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| read(runs))).collect();
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| ended.map_err(|_| "a client panicked".to_owned())?)
    })?;
    Ok(())
}

/// What the machine can do: the time of a one-row commit on this database, alone.
fn commit_ms(stage: &Stage) -> Outcome<f64> {
    let mut database = stage.deployment.database()?;
    database.batch_execute("create table bench_commits (at timestamptz not null)")?;
    let insert = database.prepare("insert into bench_commits values (now())")?;
    let mut took = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        database.execute(&insert, &[])?;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(median(took))
}

const STREAMS: About = About {
    name: "streams",
    work: "1,000 runs followed by 10 readers each, 100 events a second in all, from an event's commit to its readers, p99",
    beside: "one run followed by 10 readers, the same 100 events a second, while the 1,000 runs wait for their models",
    unit: "ms",
    target: Target::AtMost(3.0),
    says_not: "Readers are on the same machine and on the replica that carries the runs on; a reader on another one \
        waits for its look at the database, every 250 ms. Authorization is off, so no right is decided again meanwhile.",
};

const MEMORY: About = About {
    name: "stream-memory",
    work: "resident memory of the service's process a stream, 10,000 streams of 1,000 runs, the kernel's sockets apart",
    beside: "a slow reader may take up to SVC_STREAM_BUFFER_BYTES more",
    unit: "KiB",
    target: Target::AtMost(16.0),
    says_not: "The streams are idle, as most are most of the time. The kernel's part of a socket is not in it.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    raise_descriptors(DESCRIPTORS)?;
    let readers = plan.pick(1_000, 10_000);
    let stage = Stage::start(readers / EACH)?;
    let load = Load {
        readers,
        events_per_second: EVENTS_PER_SECOND,
        seconds: plan.pick(2, 7),
    };
    let few = Load {
        readers: EACH,
        ..load
    };
    let limit = format!(
        "A one-row commit alone on this database: {} ms, p50.",
        rounded(commit_ms(&stage)?)
    );
    let mut streams = compare(
        plan,
        &STREAMS,
        || measure(&stage, load),
        || measure(&stage, few),
    )?;
    streams.limit = Some(limit);
    let mut of_memory = alone(plan, &MEMORY, || memory(&stage, readers))?;
    if !plan.short {
        let p99 = |load: Load| Ok(measure(&stage, load)?.value);
        let over_readers: Measure<'_> = &|readers| p99(Load { readers, ..load });
        let over_events: Measure<'_> = &|events_per_second| {
            p99(Load {
                events_per_second,
                ..load
            })
        };
        let lines = [("agent-runtime", over_readers)];
        let places = [10, 100, 1_000, 10_000];
        streams.growth.push(grow("readers", "ms", &places, &lines)?);
        let lines = [("10,000 readers", over_events)];
        let growth = grow("events/s", "ms", &[100, 200, 400], &lines)?;
        streams.growth.push(growth);
        let kib: Measure<'_> = &|streams| Ok(memory(&stage, streams)?.value);
        let lines = [("agent-runtime", kib)];
        let growth = grow("streams", "KiB", &[100, 1_000, 10_000], &lines)?;
        of_memory.growth.push(growth);
    }
    done(streams)?;
    done(of_memory)
}
