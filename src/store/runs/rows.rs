//! The row of a run, as it is read.

use crate::error::{Error, Result};
use crate::proof::{Kind, Scope};
use crate::texts;
use postgres::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// How many columns of a statement's answer [`run_of`] reads.
pub(super) const COLUMNS: usize = 27;

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
    /// The run that began it.
    pub parent_run_id: Option<Uuid>,
    /// As the caller said.
    pub dry_run: bool,
    /// For an agent's turn.
    pub agent: Option<Agent>,
    /// Why it failed.
    pub failure_message: Option<String>,
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
    /// The number of its newest event.
    pub last_seq: i64,
    /// What its model calls used.
    pub usage: Usage,
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

/// The agent of a turn (specification section 2.7).
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

/// What a run's model calls used (specification section 2.7).
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

texts! {
    /// Where a run stands. The last three are finished (specification section 3.1).
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
    /// How a turn's version was chosen (specification section 2.7).
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

/// A text that the database's own checks let in and this program does not know.
fn unknown(what: &'static str) -> Error {
    Error::internal(format!("a run's {what} is none that is known"))
}

pub(super) fn origin_of(text: &str) -> Result<Origin> {
    Origin::parse(text).ok_or_else(|| unknown("origin"))
}

/// Reads the four columns from the one after the first so many.
pub(super) fn agent_of(row: &Row, first: usize) -> Result<Option<Agent>> {
    let Some(id) = row.try_get::<_, Option<Uuid>>(first)? else {
        return Ok(None);
    };
    Ok(Some(Agent {
        id,
        version: row.try_get(first + 1)?,
        conversation_id: row.try_get(first + 2)?,
        via: Via::parse(row.try_get(first + 3)?).ok_or_else(|| unknown("via"))?,
    }))
}

/// Reads the first [`COLUMNS`] columns.
pub(super) fn run_of(row: &Row) -> Result<Run> {
    Ok(Run {
        tenant_id: row.try_get(0)?,
        run_id: row.try_get(1)?,
        project_id: row.try_get(2)?,
        flow_id: row.try_get(3)?,
        flow_version: row.try_get(4)?,
        status: Status::parse(row.try_get(5)?).ok_or_else(|| unknown("status"))?,
        origin: origin_of(row.try_get(6)?)?,
        parent_run_id: row.try_get(7)?,
        dry_run: row.try_get(8)?,
        agent: agent_of(row, 9)?,
        failure_message: row.try_get(13)?,
        cancel_requested_at: row.try_get(14)?,
        created_by: row.try_get(15)?,
        created_at: row.try_get(16)?,
        started_at: row.try_get(17)?,
        completed_at: row.try_get(18)?,
        last_seq: row.try_get(19)?,
        usage: Usage {
            calls: row.try_get(20)?,
            cost_usd: row.try_get(21)?,
            tokens: Tokens {
                prompt: row.try_get(22)?,
                completion: row.try_get(23)?,
                cache_read: row.try_get(24)?,
                cache_write: row.try_get(25)?,
                reasoning: row.try_get(26)?,
            },
        },
    })
}
