//! What an agent's turn is made of, read when the turn is taken up: in one statement, and its journal,
//! once it has one, in another. The first time the same statement takes it up.

use super::Sql;
use super::runs::{self, Lease, Movement, Run};
use super::secrets::SecretRef;
use super::steps::{self, Prices, Step};
use crate::error::{Error, Result};
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
    /// Its model.
    pub model: String,
    /// Parameters for the model, as the version has them.
    pub parameters: Value,
    /// Limits, as the version has them.
    pub limits: Value,
    /// The model's provider.
    pub model_provider_id: Uuid,
    /// Where it is.
    pub base_url: String,
    /// The name of its key.
    pub api_key_name: Option<String>,
    /// The secret that is its key.
    pub api_key_secret: Option<SecretRef>,
    /// The model's prices now.
    pub prices: Prices,
    /// The version's tools, in order.
    pub tools: Vec<Tool>,
    /// What was said, the newest last. Empty without a conversation.
    pub history: Vec<Said>,
    /// The steps so far, in order.
    pub journal: Vec<Step>,
    /// The run's input, when there is no conversation.
    pub input: Option<Value>,
}

/// An HTTP tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name by which the model calls it.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub arguments_schema: Value,
    /// Where it is.
    pub url: String,
    /// How long one call may take.
    pub timeout_ms: u32,
    /// Whether it may be called again when nobody knows whether it was.
    pub idempotent: bool,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Said {
    /// `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// Loads the turn of a held run. `has_begun`: it may have steps. `None` when the run is no agent's turn.
///
/// # Errors
/// The database's.
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
    turn_of(&row, 0, journal).map(Some)
}

/// Takes up a run that nobody has taken up yet, with what that writes, `first`: its events, of which the last
/// says the model step that begins; of both, the model's name is filled in. `None`, and nothing is written, where
/// the run was taken up before, was asked to cancel, or is not of this flow. The run is as it was before the
/// events.
///
/// # Errors
/// The database's.
pub fn begin(
    sql: &mut impl Sql,
    (tenant_id, run_id): (Uuid, Uuid),
    flow_id: &str,
    first: &Movement,
    now: OffsetDateTime,
) -> Result<Option<(Run, Lease, Turn)>> {
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
    let (run, lease) = runs::begun_of(&row, (tenant_id, run_id), flow_id, now)?;
    let turn = turn_of(&row, runs::BEGUN_COLUMNS, Vec::new())?;
    Ok(Some((run, lease, turn)))
}

/// Reads a turn from the columns after the first so many.
fn turn_of(row: &Row, first: usize, journal: Vec<Step>) -> Result<Turn> {
    Ok(Turn {
        instructions: row.try_get(first)?,
        model: row.try_get(first + 1)?,
        parameters: row.try_get(first + 2)?,
        limits: row.try_get(first + 3)?,
        model_provider_id: row.try_get(first + 4)?,
        base_url: row.try_get(first + 5)?,
        api_key_name: row.try_get(first + 6)?,
        api_key_secret: SecretRef::maybe(row.try_get(first + 7)?, row.try_get(first + 8)?),
        prices: Prices {
            prompt_price: row.try_get(first + 9)?,
            completion_price: row.try_get(first + 10)?,
            cache_read_price: row.try_get(first + 11)?,
            cache_write_price: row.try_get(first + 12)?,
            reasoning_price: row.try_get(first + 13)?,
        },
        tools: read(row.try_get(first + 14)?)?,
        history: read(row.try_get(first + 15)?)?,
        journal,
        input: row.try_get(first + 16)?,
    })
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::internal)
}
