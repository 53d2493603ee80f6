//! Flows for tests: definitions and runs of them.

use crate::runtime::world::{Process, Root, World, started_by};
use agent_runtime::flows::definition::check;
use agent_runtime::flows::definition::references::ReferenceKind;
use agent_runtime::store::Sql;
use agent_runtime::store::runs::{self, NewRun, Run, StartOptions};
use serde_json::{Value, json};
use uuid::Uuid;

/// Writes a flow with its version, and what of its names the project has.
fn put(world: &World, flow_id: &str, definition: &Value) {
    let (tenant_id, project_id) = (world.tenant_id, world.project_id);
    let mut uses = Vec::new();
    for reference in check(definition).unwrap().references() {
        let (kind, rows) = match reference.kind {
            ReferenceKind::Tool => (
                "tool",
                "select tool_id from tools where tenant_id = $1 and name = $2",
            ),
            ReferenceKind::Agent => (
                "agent",
                "select agent_id from agents where tenant_id = $1 and name = $2",
            ),
            ReferenceKind::Flow => (
                "flow",
                "select id from flows where tenant_id = $1 and flow_id = $2",
            ),
        };
        uses.push((
            kind,
            rows,
            reference.name.clone(),
            reference.version.clone(),
        ));
    }
    world
        .store
        .transact(|tx| {
            let id = Uuid::now_v7();
            tx.execute(
                "insert into flows (tenant_id, id, project_id, flow_id, title, description, last_position, created_by, created_at, updated_at)
                 select $1, $2, $3, $4, '', '', 1, created_by, now(), now() from projects where tenant_id = $1 and project_id = $3",
                &[&tenant_id, &id, &project_id, &flow_id],
            )?;
            tx.execute(
                "insert into flow_versions (tenant_id, id, version, position, definition, digest, created_by, created_at)
                 select $1, $2, '1.0.0', 1, $3, sha256('x'), created_by, now() from projects where tenant_id = $1",
                &[&tenant_id, &id, definition],
            )?;
            for (position, (kind, rows, name, version)) in (1_i32..).zip(&uses) {
                let Some(row) = tx.query_opt(rows, &[&tenant_id, name])? else {
                    continue;
                };
                let found: Uuid = row.get(0);
                tx.execute(
                    "insert into flow_version_uses (tenant_id, id, version, position, kind, name, tool_id, agent_id, used_id, used_version)
                     select $1, $2, '1.0.0', $3, $4, $5, case when $4 = 'tool' then $6::uuid end,
                       case when $4 = 'agent' then $6::uuid end, case when $4 = 'flow' then $6::uuid end, $7",
                    &[&tenant_id, &id, &position, kind, name, &found, version],
                )?;
            }
            tx.execute(
                "update flows set latest_version = '1.0.0' where tenant_id = $1 and id = $2",
                &[&tenant_id, &id],
            )
        })
        .unwrap();
}

/// What tests of flows ask of a world.
pub(super) trait Flows {
    /// A flow with these tasks, whose id is `test.NAME`.
    fn flow(&self, name: &str, tasks: Value);
    /// As [`Flows::flow`], with more fields of the definition.
    fn whole_flow(&self, name: &str, tasks: Value, more: Value);
    /// Creates a run of a flow.
    fn start(&self, process: &Process, name: &str, input: Value) -> Uuid;
    /// As [`Flows::start`], as a dry run.
    fn start_dry(&self, process: &Process, name: &str, input: Value) -> Uuid;
    /// As [`Flows::start_dry`], with these options.
    fn start_with(
        &self,
        process: &Process,
        name: &str,
        input: Value,
        options: StartOptions,
    ) -> Uuid;
    /// Runs a flow to its end.
    fn ends(&self, process: &Process, name: &str, input: Value) -> Run;
    /// As [`Flows::ends`], of one that completes. Says its output.
    fn answers(&self, process: &Process, name: &str, input: Value) -> Value;
    fn output(&self, run_id: Uuid) -> Value;
    /// The journal of a run: kind, path and status of each step.
    fn steps(&self, run_id: Uuid) -> Vec<String>;
    /// The runs that a run began, in their order.
    fn children(&self, run_id: Uuid) -> Vec<Run>;
    /// Moves the clock, and makes every job due that nobody holds.
    fn pass(&self, process: &Process, seconds: u64);
}

impl Flows for World {
    fn flow(&self, name: &str, tasks: Value) {
        self.whole_flow(name, tasks, json!({}));
    }

    fn whole_flow(&self, name: &str, tasks: Value, more: Value) {
        let mut definition = json!({
            "document": {"dsl": "1.0.3", "namespace": "test", "name": name, "version": "1.0.0"},
            "do": tasks,
        });
        let fields = definition.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        put(self, &flow_id(name), &definition);
    }

    fn start(&self, process: &Process, name: &str, input: Value) -> Uuid {
        start(self, process, (name, None), input)
    }

    fn start_dry(&self, process: &Process, name: &str, input: Value) -> Uuid {
        self.start_with(process, name, input, StartOptions::default())
    }

    fn start_with(
        &self,
        process: &Process,
        name: &str,
        input: Value,
        options: StartOptions,
    ) -> Uuid {
        start(self, process, (name, Some(options)), input)
    }

    fn ends(&self, process: &Process, name: &str, input: Value) -> Run {
        let run_id = self.start(process, name, input);
        self.finished(process, run_id)
    }

    fn answers(&self, process: &Process, name: &str, input: Value) -> Value {
        let run = self.ends(process, name, input);
        assert_eq!(run.failure_message, None);
        self.output(run.run_id)
    }

    fn output(&self, run_id: Uuid) -> Value {
        let payload = self.read(|session| runs::payload(session, &self.root(run_id)));
        payload.output.unwrap()
    }

    fn steps(&self, run_id: Uuid) -> Vec<String> {
        self.read(|session| {
            let rows = session.query(
                "select kind || ' ' || path || ' ' || status from run_steps where run_id = $1 order by step",
                &[&run_id],
            )?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn children(&self, run_id: Uuid) -> Vec<Run> {
        let children =
            self.read(|session| runs::children(session, &self.root(run_id), 0..i32::MAX, false));
        children
            .iter()
            .map(|child| self.run(child.run_id))
            .collect()
    }

    fn pass(&self, process: &Process, seconds: u64) {
        self.clock.advance(std::time::Duration::from_secs(seconds));
        self.batch("update job_jobs set run_at = now() where lease_id is null");
        process.runtime.wake();
    }
}

fn flow_id(name: &str) -> String {
    format!("test.{name}")
}

fn start(
    world: &World,
    process: &Process,
    (name, dry): (&str, Option<StartOptions>),
    input: Value,
) -> Uuid {
    let run = NewRun {
        flow_id: flow_id(name),
        agent: None,
        input,
        message: None,
        dry_run: dry.is_some(),
        options: dry.unwrap_or_default(),
        ..world.new_run(false)
    };
    process.shard.follow(run.run_id);
    let root = Root(world.tenant_id, world.project_id);
    world
        .store
        .transact(|tx| process.runtime.create::<Run>(tx, &root, &run, started_by()))
        .unwrap();
    process.runtime.wake();
    run.run_id
}
