//! A program for tests, whose script is the run's input, and what is asked of trees of runs.
//!
//! `{"steps": [{"wait": 5}, {"children": [{"script": {…}}, {"turn": {…}}, {"flow": "x"}]}, {"ask": {"title": "Pay",
//! "role": "standard", "to": "a@b", "expiresMs": 5, "escalate": [3, "finance", "c@d"], "context": …, "form": …}}], "output": …,
//! "fails": "No."}`: without an output it answers what its steps that have children or ask answered.

use crate::runtime::world::{Process, Root, World, started_by};
use agent_runtime::failure::Failure;
use agent_runtime::runtime::BuiltIn;
use agent_runtime::runtime::journal::decision::{ChildRun, Family, Next};
use agent_runtime::store::Sql;
use agent_runtime::store::approvals::{ApprovalSource, AskedCall, Escalation, NewApproval};
use agent_runtime::store::runs::{self, Agent, End, NewRun, Origin, Run, Usage, Via};
use agent_runtime::store::steps::{Step, StepKind};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

/// An hour, which no test waits: see [`Scripts::pass_an_hour`].
pub(super) const HOUR_MS: u32 = 3_600_000;

const FLOW: &str = "test.script";

pub(super) fn built_in() -> HashMap<String, BuiltIn> {
    let program = BuiltIn {
        next,
        time_limit: Duration::from_secs(120),
    };
    HashMap::from([(FLOW.to_owned(), program)])
}

fn next(input: &Value, journal: &[Step]) -> Next {
    let at = journal.len();
    let Some(step) = input["steps"].get(at) else {
        return Next::End(end(input, journal));
    };
    let path = format!("/steps/{at}");
    if let Some(wait) = step["wait"].as_u64() {
        let duration = Duration::from_millis(wait);
        return Next::Wait { path, duration };
    }
    if let Some(asked) = step.get("ask") {
        let approval = Box::new(asks(asked));
        return Next::Ask {
            path,
            approval,
            again: None,
        };
    }
    let children = step["children"].as_array().unwrap();
    Next::Spawn(Family {
        path,
        children: children.iter().map(child).collect(),
        ..Family::default()
    })
}

fn asks(asked: &Value) -> NewApproval {
    let milliseconds = |value: &Value| value.as_u64().map(Duration::from_millis);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let escalation = asked.get("escalate").map(|to| Escalation {
        after: milliseconds(&to[0]).unwrap(),
        required_role: text(&to[1]).unwrap(),
        assigned_to: text(&to[2]),
    });
    NewApproval {
        source: ApprovalSource::Flow,
        required_role: text(&asked["role"]).unwrap_or_else(|| "standard".to_owned()),
        assigned_to: text(&asked["to"]),
        title: text(&asked["title"]).unwrap_or_else(|| "Pay a refund".to_owned()),
        expires_after: milliseconds(&asked["expiresMs"]).unwrap_or(Duration::from_secs(86_400)),
        escalation,
        context: asked.get("context").cloned(),
        form: asked.get("form").cloned(),
        call: asked.get("tool").and_then(text).map(|tool| AskedCall {
            tool_id: Uuid::nil(),
            tool,
            arguments: asked["arguments"].clone(),
        }),
        earlier: None,
    }
}

fn child(child: &Value) -> ChildRun {
    let agent = child.get("turn").map(|agent_id| Agent {
        id: agent_id.as_str().unwrap().parse().unwrap(),
        version: "1.0.0".to_owned(),
        conversation_id: None,
        via: Via::Latest,
    });
    let flow_id = match (&agent, child["flow"].as_str()) {
        (Some(_), _) => "agent.turn",
        (None, Some(flow)) => flow,
        (None, None) => FLOW,
    };
    let input = match &agent {
        Some(_) => json!({"message": "How is the weather?"}),
        None => child["script"].clone(),
    };
    ChildRun {
        flow_id: flow_id.to_owned(),
        flow_version: "1.0.0".to_owned(),
        agent,
        input,
        branch: None,
    }
}

fn end(input: &Value, journal: &[Step]) -> End {
    if let Some(message) = input["fails"].as_str() {
        return End::Failed {
            failure: Failure::quoting(message, "It failed."),
            error: None,
        };
    }
    let has_answer = |step: &&Step| matches!(step.kind, StepKind::Child | StepKind::Approval);
    let families = journal.iter().filter(has_answer);
    let answers: Vec<Value> = families.filter_map(|step| step.result.clone()).collect();
    let output = input.get("output").cloned();
    End::Completed {
        output: output.unwrap_or_else(|| json!(answers)),
        message: None,
    }
}

/// The same run with the program.
pub(super) fn scripted(run: NewRun, script: &Value) -> NewRun {
    NewRun {
        flow_id: FLOW.to_owned(),
        agent: None,
        labels: serde_json::from_value(json!({"env": "test"})).unwrap(),
        input: script.clone(),
        message: None,
        ..run
    }
}

/// What tests of this program ask of a world.
pub(super) trait Scripts {
    /// A world whose processes have the program.
    fn scripted() -> Self;
    /// Creates a run of the program.
    fn start(&self, process: &Process, script: &Value) -> Uuid;
    /// A child that is a turn of the world's agent.
    fn a_turn(&self) -> Value;
    /// The children of a run, by slot.
    fn children(&self, run_id: Uuid) -> Vec<Uuid>;
    /// How many of its children have not ended.
    fn unfinished(&self, run_id: Uuid) -> usize;
    /// All runs below it.
    fn runs_below(&self, run_id: Uuid) -> Vec<Uuid>;
    fn output(&self, run_id: Uuid) -> Value;
    /// No lease of its job, and none of its threads.
    fn holds_nothing(&self, run_id: Uuid);
    /// Makes every job due that nobody holds.
    fn wake_all(&self, process: &Process);
    /// Moves the clock, and makes every job due that nobody holds.
    fn pass_an_hour(&self, process: &Process);
    /// What the root used is what the model calls of its tree used, each counted once.
    fn usage_adds_up(&self, root: Uuid);
    /// Every run below is of the creator, project and root of its parent.
    fn are_the_parents(&self, root: Uuid);
    /// Every run that waits has something that wakes it.
    fn nothing_is_stranded(&self);
}

impl Scripts for World {
    fn scripted() -> Self {
        let mut world = Self::new();
        world.built_in = built_in();
        world
    }

    fn start(&self, process: &Process, script: &Value) -> Uuid {
        let run = scripted(self.new_run(false), script);
        process.shard.follow(run.run_id);
        let root = Root(self.tenant_id, self.project_id);
        self.store
            .transact(|tx| process.runtime.create::<Run>(tx, &root, &run, started_by()))
            .unwrap();
        process.runtime.wake();
        run.run_id
    }

    fn a_turn(&self) -> Value {
        json!({"turn": self.agent_id})
    }

    fn children(&self, run_id: Uuid) -> Vec<Uuid> {
        let children =
            self.read(|session| runs::children(session, &self.root(run_id), 0..i32::MAX, false));
        children.iter().map(|child| child.run_id).collect()
    }

    fn unfinished(&self, run_id: Uuid) -> usize {
        let children = self.children(run_id);
        let runs = children.iter().map(|child| self.run(*child));
        runs.filter(|run| !run.status.is_finished()).count()
    }

    fn runs_below(&self, run_id: Uuid) -> Vec<Uuid> {
        let children = self.children(run_id);
        let below = children.iter().flat_map(|child| self.runs_below(*child));
        let below: Vec<Uuid> = below.collect();
        [children, below].concat()
    }

    fn output(&self, run_id: Uuid) -> Value {
        let payload = self.read(|session| runs::payload(session, &self.root(run_id)));
        payload.output.unwrap()
    }

    fn holds_nothing(&self, run_id: Uuid) {
        let held: i64 = self.read(|session| {
            let row = session.query_one(
                "select count(*) from runs r join job_jobs j on j.id = r.job_id
                 where r.run_id = $1 and j.lease_id is null",
                &[&run_id],
            )?;
            Ok(row.get(0))
        });
        assert_eq!(held, 1, "its job waits, and nobody has it");
    }

    fn wake_all(&self, process: &Process) {
        self.batch("update job_jobs set run_at = now() where lease_id is null");
        process.runtime.wake();
    }

    fn pass_an_hour(&self, process: &Process) {
        self.clock.advance(Duration::from_millis(HOUR_MS.into()));
        self.wake_all(process);
    }

    fn usage_adds_up(&self, root: Uuid) {
        let run = self.run(root);
        let summed: (i64, f64, i64, i64) = self.read(|session| {
            let row = session.query_one(
                "select count(*), coalesce(sum(c.cost_usd), 0)::float8, coalesce(sum(c.prompt_tokens), 0)::int8,
                   coalesce(sum(c.completion_tokens), 0)::int8
                 from run_model_calls c join runs r on r.run_id = c.run_id where r.root_run_id = $1",
                &[&root],
            )?;
            Ok((row.get(0), row.get(1), row.get(2), row.get(3)))
        });
        let Usage {
            calls,
            cost_usd,
            tokens,
        } = run.usage;
        assert_eq!(
            (calls, tokens.prompt, tokens.completion),
            (summed.0, summed.2, summed.3)
        );
        assert!((cost_usd - summed.1).abs() < 1e-9, "{cost_usd} {summed:?}");
    }

    fn are_the_parents(&self, root: Uuid) {
        let parent = self.run(root);
        for run_id in self.runs_below(root) {
            let run = self.run(run_id);
            assert_eq!(run.root_run_id, root);
            assert_eq!(run.origin, Origin::Run);
            assert_eq!(run.created_by, parent.created_by);
            assert_eq!(run.project_id, parent.project_id);
            assert_eq!(run.dry_run, parent.dry_run);
            assert_eq!(run.labels, parent.labels);
            assert!(run.parent.is_some());
        }
        let unlisted = "select count(*) from runs r where labels is not null
             and not exists (select from run_labels l where l.run_id = r.run_id and l.project_id = r.project_id)";
        assert_eq!(self.number(unlisted), 0);
    }

    fn nothing_is_stranded(&self) {
        let stranded = include_str!("../../../sql/queries/health/stranded_runs.sql");
        let stranded = self.read(|session| session.query(stranded, &[&10_i64, &1000_i64]));
        assert!(stranded.is_empty(), "{} runs", stranded.len());
    }
}
