//! What an agent's turn is made of, read when the turn is taken up: in one statement, and its journal,
//! once it has one, in another.

use super::Sql;
use super::runs::Lease;
use super::secrets::SecretRef;
use super::steps::{self, Prices, Step};
use crate::error::{Error, Result};
use crate::sql;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
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
    Ok(Some(Turn {
        instructions: row.try_get(0)?,
        model: row.try_get(1)?,
        parameters: row.try_get(2)?,
        limits: row.try_get(3)?,
        model_provider_id: row.try_get(4)?,
        base_url: row.try_get(5)?,
        api_key_name: row.try_get(6)?,
        api_key_secret: SecretRef::maybe(row.try_get(7)?, row.try_get(8)?),
        prices: Prices {
            prompt_price: row.try_get(9)?,
            completion_price: row.try_get(10)?,
            cache_read_price: row.try_get(11)?,
            cache_write_price: row.try_get(12)?,
            reasoning_price: row.try_get(13)?,
        },
        tools: read(row.try_get(14)?)?,
        history: read(row.try_get(15)?)?,
        journal,
        input: row.try_get(16)?,
    }))
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::internal)
}
