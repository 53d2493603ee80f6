//! The definition of an agent's turn, read when the turn is claimed: in one statement, and its
//! journal, if it has one, in another. The first time the same statement claims the run.

use super::conversations::MessageRole;
use super::policies::{Standing, Streaming};
use super::runs::{self, Agent, Held, HeldJob, Lease, Overrides, Run, StepCommit, Via, overridden};
use super::secrets::SecretRef;
use super::steps::{self, Prices, Step, StepKind};
use super::tool_approvals::ToolApproval;
use super::tools::{TargetKind, ToolDryRun};
use super::{Columns, Sql};
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::sql;
use postgres::Row;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// The messages of a conversation that a turn is given, counted from the newest.
const HISTORY: i64 = 200;

/// The bytes of those messages. The newest is given whatever its length.
const HISTORY_BYTES: i64 = 4 * 1024 * 1024;

/// A turn as it stands in the database.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The version's instructions.
    pub instructions: String,
    /// The model: the version's, or the run's own.
    pub model: String,
    /// Parameters for the model: the version's, with the run's own in their places.
    pub parameters: Value,
    /// Limits, in the same way.
    pub limits: Value,
    /// The JSON Schema that its answer fits; none: it is text.
    pub output_schema: Option<Value>,
    /// The version's guardrails.
    pub guardrails: Value,
    /// When readers see text that they apply to.
    pub streaming: Streaming,
    /// The policies' guardrails as of now, which come first.
    pub policies: Vec<Standing>,
    /// The model's provider.
    pub model_provider_id: Uuid,
    /// Where it is.
    pub base_url: String,
    /// The name of its key.
    pub api_key_name: Option<String>,
    /// The secret that is its key.
    pub api_key_secret: Option<SecretRef>,
    /// How the provider is asked, as its row has it.
    pub provider_options: Value,
    /// The model's prices now.
    pub prices: Prices,
    /// The tokens that the model takes, prompt and answer together, if the provider's entry says so.
    pub context_window: Option<u32>,
    /// The size of what the newest answered turn of the conversation sent to its model last, as the journal has it.
    pub last_prompt: Option<Value>,
    /// The version's tools, in order.
    pub tools: Vec<Tool>,
    /// What was said, the newest last. Empty without a conversation.
    pub history: Vec<Said>,
    /// The calls of the earlier turns of the conversation, with their answers, in order. Empty where the version leaves them out.
    pub past: Vec<PastStep>,
    /// The steps so far, in order.
    pub journal: Vec<Step>,
    /// The run's input, when there is no conversation.
    pub input: Option<Value>,
    /// How many flows and turns are nested, from the root to this one.
    pub levels: i64,
}

/// What calls of a tool go to, with what a call needs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "target", rename_all = "lowercase")]
pub enum Target {
    /// An HTTP server.
    Http(HttpTarget),
    /// A turn of an agent. None where that is archived or has no version.
    Agent {
        /// The version that runs.
        #[serde(rename = "child")]
        runs: Option<AgentVersion>,
    },
    /// A flow. None where that is archived or has no version.
    Flow {
        /// The version that runs.
        #[serde(rename = "child")]
        runs: Option<FlowVersion>,
    },
}

/// An HTTP server that is a tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpTarget {
    /// Where it is.
    pub url: String,
    /// How long one call may take.
    pub timeout_ms: u32,
    /// Whether it may be called again when nobody knows whether it was.
    pub idempotent: bool,
    /// What a dry run does with its calls.
    pub dry_run: ToolDryRun,
    /// Headers of its calls whose values are secrets.
    pub headers: Vec<SecretHeader>,
    /// The name of the secret that signs its calls.
    pub signing_secret: Option<String>,
}

/// The version of an agent that a call runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentVersion {
    /// The agent.
    pub id: Uuid,
    /// The version.
    pub version: String,
    /// Why that one.
    pub via: Via,
}

/// The version of a flow that a call runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowVersion {
    /// `namespace.name`.
    pub flow_id: String,
    /// The version.
    pub version: String,
}

impl Target {
    /// Its name.
    pub const fn kind(&self) -> TargetKind {
        match self {
            Self::Http(_) => TargetKind::Http,
            Self::Agent { .. } => TargetKind::Agent,
            Self::Flow { .. } => TargetKind::Flow,
        }
    }

    /// Whether a call is a run below the caller's.
    pub const fn is_run(&self) -> bool {
        match self {
            Self::Http(_) => false,
            Self::Agent { .. } | Self::Flow { .. } => true,
        }
    }

    /// Whether a call may be made again when nobody knows whether it was. A run is begun once, whatever crashes.
    pub const fn is_repeatable(&self) -> bool {
        match self {
            Self::Http(http) => http.idempotent,
            Self::Agent { .. } | Self::Flow { .. } => true,
        }
    }

    /// Whether a dry run makes its calls. A run that is called is dry itself.
    pub const fn is_called_in_dry_runs(&self) -> bool {
        match self {
            Self::Http(http) => match http.dry_run {
                ToolDryRun::Call => true,
                ToolDryRun::Simulate => false,
            },
            Self::Agent { .. } | Self::Flow { .. } => true,
        }
    }
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its id.
    pub id: Uuid,
    /// The name by which the model calls it.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub arguments_schema: Value,
    /// What its calls go to. Its fields stand beside the tool's, as earlier programs read them.
    #[serde(flatten)]
    pub target: Target,
    /// What its calls ask a reviewer first.
    #[serde(default)]
    pub approval: Option<ToolApproval>,
}

/// A header whose value is a secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SecretHeader {
    /// The header's name.
    pub name: String,
    /// The secret's name.
    pub secret: String,
    /// What stands before the value.
    #[serde(default)]
    pub prefix: String,
}

/// A completed step of an earlier turn of a conversation: what a model said with its calls, or the answer of a call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastStep {
    /// Its run.
    pub run_id: Uuid,
    /// Its number there.
    pub step: i32,
    /// Of a model, a tool, or a run that a tool is.
    pub kind: StepKind,
    /// What it was asked.
    pub request: Value,
    /// What it answered, shortened.
    pub result: Value,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// Its number in the conversation.
    pub position: i64,
    /// The turn in which it was said.
    pub run_id: Uuid,
    /// Who said it.
    pub role: MessageRole,
    /// The text.
    pub content: String,
}

/// Loads the turn of a held run. `has_begun`: it may have steps. `None` when the run is no agent's turn, or its model was removed
/// since it was started.
pub fn load(sql: &mut impl Sql, lease: &Lease, has_begun: bool) -> Result<Option<Turn>> {
    let row = sql.query_opt(
        sql!("turns/load"),
        &[
            &lease.tenant_id(),
            &lease.run_id(),
            &HISTORY,
            &HISTORY_BYTES,
        ],
    )?;
    let Some(row) = row else { return Ok(None) };
    let journal = match has_begun {
        true => steps::of_held(sql, lease)?,
        false => Vec::new(),
    };
    turn_of(&row, journal).map(Some)
}

/// Takes up a run that nobody has taken up yet, with what that writes, `first`: its events, of which the last
/// says the model step that begins; of both, the model's name is filled in. `None`, and nothing is written, where
/// the run was taken up before, was asked to cancel, is not of this flow, or its model was removed. The run is as it was before the
/// events.
pub fn begin(
    sql: &mut impl Sql,
    (tenant_id, run_id): (Uuid, Uuid),
    job: HeldJob,
    flow_id: &str,
    first: &StepCommit,
    now: OffsetDateTime,
) -> Result<Option<(Run, Held, Turn)>> {
    let kinds: Vec<&str> = first.events.iter().map(|event| event.kind).collect();
    let data: Vec<&Value> = first.events.iter().map(|event| &event.data).collect();
    let begun = first.begun.as_ref();
    let row = sql.query_opt(
        sql!("runs/begin"),
        &[
            &tenant_id,
            &run_id,
            &now,
            &flow_id,
            &kinds,
            &data,
            &begun.map(|step| step.kind.text()),
            &begun.map(|step| &step.request),
            &HISTORY,
            &HISTORY_BYTES,
        ],
    )?;
    let Some(row) = row else { return Ok(None) };
    let (run, held) = runs::begun_of(&row, (tenant_id, run_id), flow_id, job, now)?;
    Ok(Some((run, held, turn_of(&row, Vec::new())?)))
}

/// Whether a call of this tool of the turn may be made again. `None`: its version has no such tool.
pub fn is_idempotent(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    agent: &Agent,
    tool: &str,
) -> Result<Option<bool>> {
    let row = sql.query_opt(
        sql!("turns/is_idempotent"),
        &[&may.tenant_id(), &agent.id, &agent.version, &tool],
    )?;
    row.map(|row| row.column("idempotent")).transpose()
}

/// Reads a turn, in one row.
fn turn_of(row: &Row, journal: Vec<Step>) -> Result<Turn> {
    let overrides = Overrides::of_column(row.column("overrides")?)?;
    Ok(Turn {
        instructions: row.column("instructions")?,
        model: row.column("model")?,
        parameters: overridden(row.column("parameters")?, &overrides.parameters),
        limits: overridden(row.column("limits")?, &overrides.limits),
        output_schema: row.column("output_schema")?,
        guardrails: row.column("guardrails")?,
        streaming: row.column("streaming")?,
        policies: Standing::of_column(row.column("policies")?)?,
        model_provider_id: row.column("model_provider_id")?,
        base_url: row.column("base_url")?,
        api_key_name: row.column("api_key_name")?,
        api_key_secret: SecretRef::maybe(
            row.column("api_key_environment")?,
            row.column("api_key_secret")?,
        ),
        provider_options: row.column("provider_options")?,
        prices: Prices {
            prompt_price: row.column("prompt_price")?,
            completion_price: row.column("completion_price")?,
            cache_read_price: row.column("cache_read_price")?,
            cache_write_price: row.column("cache_write_price")?,
            reasoning_price: row.column("reasoning_price")?,
        },
        context_window: row
            .column::<Option<i32>>("context_window")?
            .and_then(|tokens| u32::try_from(tokens).ok()),
        last_prompt: row.column("last_prompt")?,
        tools: read(row.column("tools")?)?,
        history: read(row.column("history")?)?,
        past: read(row.column("past")?)?,
        journal,
        input: row.column("input")?,
        levels: row.column("levels")?,
    })
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::internal)
}
