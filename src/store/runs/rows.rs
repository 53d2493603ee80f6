//! The row of a run, as it is read.
//!
//! The view `run_rows` lists the columns, and [`Run`] reads them by name: no statement lists them again.

use super::labels::Labels;
use crate::error::{Error, Result};
use crate::find_sql;
use crate::proof::{Kind, Scope};
use crate::store::{Columns, Find, Finding, Sql};
use crate::texts;
use postgres::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// A run (specification section 2.7), with what this implementation keeps beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The run.
    pub run_id: Uuid,
    /// The project that it belongs to.
    pub project_id: Uuid,
    /// What runs.
    pub flow_id: String,
    /// Its version.
    pub flow_version: String,
    /// Where it stands.
    pub status: Status,
    /// Who began it.
    pub origin: Origin,
    /// The run that began it, and its place among that run's children.
    pub parent: Option<Parent>,
    /// The run at the top of the tree of runs that it belongs to: itself, if nobody began it.
    pub root_run_id: Uuid,
    /// As the caller said.
    pub dry_run: bool,
    /// For an agent's turn.
    pub agent: Option<Agent>,
    /// The failed run that it takes up.
    pub retry_of: Option<Uuid>,
    /// As the caller gave them; those of the run above it.
    pub labels: Labels,
    /// Why it failed: for those who may read the run.
    pub failure_message: Option<String>,
    /// The same without data of the run (see [`crate::failure`]). None for a run that failed before it was kept.
    pub failure_summary: Option<String>,
    /// When a cancel was first asked for.
    pub cancel_requested_at: Option<OffsetDateTime>,
    /// The user that created it.
    pub created_by: Uuid,
    /// When.
    pub created_at: OffsetDateTime,
    /// When it was first claimed.
    pub started_at: Option<OffsetDateTime>,
    /// When it finished.
    pub completed_at: Option<OffsetDateTime>,
    /// What it waits for, while it waits.
    pub waiting_for: Option<WaitingFor>,
    /// When it goes on at the latest, while it waits.
    pub wake_at: Option<OffsetDateTime>,
    /// How long it has waited for something other than a retry, in milliseconds. A wait that goes on is not counted.
    pub parked_ms: i64,
    /// The number of its newest event.
    pub last_seq: i64,
    /// What its model calls used.
    pub usage: Usage,
    /// When what it was given, said and answered was erased.
    pub payload_erased_at: Option<OffsetDateTime>,
}

/// Who began a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The run.
    pub run_id: Uuid,
    /// The child's place among its children.
    pub slot: i32,
}

impl Run {
    /// Why it failed, without its data: what may leave the service.
    pub fn summary_of_failure(&self) -> Option<&str> {
        self.failure_message.as_ref()?;
        let kept = self.failure_summary.as_deref();
        Some(kept.unwrap_or("The run failed."))
    }

    /// How many events it has, the one of a cancel not counted.
    pub fn events_written(&self) -> i64 {
        self.last_seq - i64::from(self.cancel_requested_at.is_some())
    }

    /// How long it has been under way, apart from what it was parked. A wait for a retry counts. Nothing, where the
    /// clock was set back since it began.
    pub fn active_time(&self, now: OffsetDateTime) -> Duration {
        let began = self.started_at.unwrap_or(self.created_at);
        let active = now - began - time::Duration::milliseconds(self.parked_ms);
        Duration::try_from(active).unwrap_or(Duration::ZERO)
    }
}

impl Kind for Run {
    const NAME: &'static str = "run";

    fn id(&self) -> Uuid {
        self.run_id
    }
    fn scope(&self) -> Scope {
        Scope::InProject(self.project_id)
    }
}

// Specification, section 2.7.
/// The agent of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RunAgent")]
pub struct Agent {
    /// The agent.
    pub id: Uuid,
    /// The version that runs.
    pub version: String,
    /// The conversation that the turn belongs to.
    pub conversation_id: Option<Uuid>,
    /// How the version was chosen.
    pub via: Via,
}

// Specification, section 2.7.
/// What a run's model calls used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Model calls, failed and lost ones included.
    pub calls: i64,
    /// US dollars; a call without a price counts as 0.
    pub cost_usd: f64,
    /// Tokens by kind.
    pub tokens: Tokens,
}

/// Tokens by kind. Cache tokens are part of `prompt`, reasoning tokens part of `completion`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// What the model read.
    pub prompt: i64,
    /// What it wrote.
    pub completion: i64,
    /// Of the prompt: read from a cache.
    pub cache_read: i64,
    /// Of the prompt: written to a cache.
    pub cache_write: i64,
    /// Of the completion: reasoning.
    pub reasoning: i64,
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, more: Self) {
        self.prompt += more.prompt;
        self.completion += more.completion;
        self.cache_read += more.cache_read;
        self.cache_write += more.cache_write;
        self.reasoning += more.reasoning;
    }
}

texts! {
    // Specification, section 3.1.
    /// Where a run stands. The last three are finished.
    Status {
        /// Nobody has taken it yet.
        Queued = "queued",
        /// Somebody carries it on, or did until a crash.
        Running = "running",
        /// It will be taken up again at a time that is set.
        Waiting = "waiting",
        /// Finished with an output.
        Completed = "completed",
        /// Finished with a failure message.
        Failed = "failed",
        /// Finished because somebody asked.
        Cancelled = "cancelled",
    }
}

impl Status {
    /// Whether it never changes again.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

texts! {
    /// What a run waits for.
    WaitingFor {
        /// Another attempt of a step that failed.
        Retry = "retry",
        /// A time that its program named.
        Timer = "timer",
        /// A decision of a reviewer.
        Approval = "approval",
        /// The end of a child run.
        Children = "children",
        /// A call that its model provider takes: others make as many as it takes at once.
        Model = "model",
    }
}

impl WaitingFor {
    /// Whether the time of the wait is kept apart from the run's active time.
    pub const fn is_parked(self) -> bool {
        !matches!(self, Self::Retry)
    }
}

texts! {
    /// Who began a run.
    Origin {
        /// An app, through the API.
        App = "app",
        /// A person, through the command line.
        CommandLine = "command-line",
        /// Another run.
        Run = "run",
    }
}

texts! {
    // Specification, section 2.7.
    /// How a turn's version was chosen.
    Via {
        /// No version is live for the run's scope.
        Latest = "latest",
        /// The version live for its scope.
        Live = "live",
        /// The caller named it.
        Explicit = "explicit",
        /// The conversation's own.
        Conversation = "conversation",
    }
}

pub(super) fn parent_of(row: &Row) -> Result<Option<Parent>> {
    let run_id: Option<Uuid> = row.column("parent_run_id")?;
    let slot: Option<i32> = row.column("parent_slot")?;
    Ok(run_id
        .zip(slot)
        .map(|(run_id, slot)| Parent { run_id, slot }))
}

pub(super) fn agent_of(row: &Row) -> Result<Option<Agent>> {
    let Some(id) = row.column("agent_id")? else {
        return Ok(None);
    };
    Ok(Some(Agent {
        id,
        version: row.column("agent_version")?,
        conversation_id: row.column("conversation_id")?,
        via: row.column("via")?,
    }))
}

/// What model calls used, of a run's row or a child's.
pub(in crate::store) fn usage_of(row: &Row) -> Result<Usage> {
    Ok(Usage {
        calls: row.column("calls")?,
        cost_usd: row.column("cost_usd")?,
        tokens: Tokens {
            prompt: row.column("prompt_tokens")?,
            completion: row.column("completion_tokens")?,
            cache_read: row.column("cache_read_tokens")?,
            cache_write: row.column("cache_write_tokens")?,
            reasoning: row.column("reasoning_tokens")?,
        },
    })
}

/// Reads a row of the view `run_rows`.
pub(super) fn run_of(row: &Row) -> Result<Run> {
    Ok(Run {
        tenant_id: row.column("tenant_id")?,
        run_id: row.column("run_id")?,
        project_id: row.column("project_id")?,
        flow_id: row.column("flow_id")?,
        flow_version: row.column("flow_version")?,
        status: row.column("status")?,
        origin: row.column("origin")?,
        parent: parent_of(row)?,
        root_run_id: row.column("root_run_id")?,
        dry_run: row.column("dry_run")?,
        agent: agent_of(row)?,
        retry_of: row.column("retry_of")?,
        labels: Labels::of(row)?,
        failure_message: row.column("failure_message")?,
        failure_summary: row.column("failure_summary")?,
        cancel_requested_at: row.column("cancel_requested_at")?,
        created_by: row.column("created_by")?,
        created_at: row.column("created_at")?,
        started_at: row.column("started_at")?,
        completed_at: row.column("completed_at")?,
        waiting_for: row.column("waiting_for")?,
        wake_at: row.column("wake_at")?,
        parked_ms: row.column("parked_ms")?,
        last_seq: row.column("last_seq")?,
        usage: usage_of(row)?,
        payload_erased_at: row.column("payload_erased_at")?,
    })
}

impl Find for Run {
    const FINDING: Finding = find_sql!("runs/find", "project", "project_id");

    fn read(row: &Row) -> Result<Option<Self>> {
        run_of(row).map(Some)
    }
}

/// The run as it stands.
///
/// # Errors
/// `not-found` when the tenant has no such run.
pub fn find(sql: &mut impl Sql, tenant_id: Uuid, run_id: Uuid) -> Result<Run> {
    Run::find(sql, tenant_id, run_id)?.ok_or_else(|| Error::not_found("run", run_id))
}
