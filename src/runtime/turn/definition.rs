//! The definition of a turn: the agent version with its limits, its tools with their schemas, and
//! the conversation so far.

use crate::error::{Error, Result};
use crate::runtime::journal::decision::ChildRun;
use crate::store::conversations::MessageRole;
use crate::store::runs::Agent;
use crate::store::turns::{Tool, Turn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;

pub use crate::store::runs::AGENT_TURN;

/// The `flowVersion` of an agent's turn: raised when what a turn does changes.
pub const AGENT_TURN_VERSION: &str = "1.0.0";

/// The longest message of a turn, in bytes.
pub const MESSAGE_BYTES: usize = 1024 * 1024;

/// A turn that a flow or another turn begins.
pub(in crate::runtime) fn child(agent: Agent, message: &Value) -> ChildRun {
    ChildRun {
        flow_id: AGENT_TURN.to_owned(),
        flow_version: AGENT_TURN_VERSION.to_owned(),
        agent: Some(agent),
        input: json!({"message": message}),
        branch: None,
    }
}

/// The limits of an agent's version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Steps of a turn at most, model and tool calls together.
    #[schemars(range(min = 1, max = 200))]
    pub max_steps: u16,
    /// Milliseconds that a turn may take, waits included.
    #[schemars(range(min = 1_000, max = 86_400_000))]
    pub turn_timeout_ms: u32,
    /// Tokens that one model call may write; the provider's own limit if absent.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_output_tokens: Option<u32>,
    /// Whether the model is told of the calls of tools in the earlier turns of a conversation, and of their results.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub history_calls: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_steps: 16,
            turn_timeout_ms: 600_000,
            max_output_tokens: None,
            history_calls: true,
        }
    }
}

impl Limits {
    /// What is out of bounds, as a sentence.
    pub fn fault(&self) -> Option<&'static str> {
        if !(1..=200).contains(&self.max_steps) {
            Some("maxSteps is 1 to 200.")
        } else if !(1_000..=86_400_000).contains(&self.turn_timeout_ms) {
            Some("turnTimeoutMs is 1000 to 86400000.")
        } else if !self
            .max_output_tokens
            .is_none_or(|tokens| (1..=1_000_000).contains(&tokens))
        {
            Some("maxOutputTokens is 1 to 1000000.")
        } else {
            None
        }
    }
}

/// Limits that a run sets, each in place of its version's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(rename = "RunLimits")]
pub struct RunLimits {
    /// Steps of the turn at most, model and tool calls together.
    #[schemars(range(min = 1, max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u16>,
    /// Milliseconds that the turn may take, waits included.
    #[schemars(range(min = 1_000, max = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_timeout_ms: Option<u32>,
    /// Tokens that one model call may write.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether the model is told of the calls of tools in the earlier turns of a conversation, and of their results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_calls: Option<bool>,
}

impl RunLimits {
    /// What is out of bounds, as a sentence.
    pub fn fault(&self) -> Option<&'static str> {
        let of_version = Limits::default();
        let limits = Limits {
            max_steps: self.max_steps.unwrap_or(of_version.max_steps),
            turn_timeout_ms: self.turn_timeout_ms.unwrap_or(of_version.turn_timeout_ms),
            max_output_tokens: self.max_output_tokens,
            history_calls: true,
        };
        limits.fault()
    }
}

/// A turn and its limits.
#[derive(Debug, Clone)]
pub struct Definition {
    /// As it stands in the database.
    pub turn: Turn,
    /// The version's limits.
    pub limits: Limits,
    /// The steps for which approvals were opened.
    pub asked: BTreeSet<i32>,
    /// Whether its run is dry.
    pub is_dry_run: bool,
    /// When its policies were read.
    pub read_at: Instant,
}

impl Definition {
    /// Reads what the database holds.
    ///
    /// # Errors
    /// Internal, when the version's limits cannot be read.
    pub fn new(turn: Turn, is_dry_run: bool) -> Result<Self> {
        let limits = Limits::deserialize(&turn.limits).map_err(Error::internal)?;
        Ok(Self {
            turn,
            limits,
            asked: BTreeSet::new(),
            is_dry_run,
            read_at: Instant::now(),
        })
    }

    /// What the model is asked now, which stands last among what was said. None: nothing was.
    pub(in crate::runtime) fn input(&self) -> Option<&str> {
        match &self.turn.input {
            Some(input) => input["message"].as_str(),
            None => {
                let newest = self.turn.history.last();
                newest
                    .filter(|said| said.role == MessageRole::User)
                    .map(|said| said.content.as_str())
            }
        }
    }

    /// This takes the place of what the model is asked.
    pub(in crate::runtime) fn set_input(&mut self, text: &str) {
        match &mut self.turn.input {
            Some(input) => input["message"] = json!(text),
            None => {
                if let Some(said) = self.turn.history.last_mut() {
                    text.clone_into(&mut said.content);
                }
            }
        }
    }

    /// Whether calls of its tools may have been asked about: by the tools, or by guardrails.
    pub(in crate::runtime) fn may_ask(&self) -> bool {
        self.turn.tools.iter().any(|tool| tool.approval.is_some())
            || !self.turn.policies.is_empty()
            || self
                .turn
                .guardrails
                .as_array()
                .is_some_and(|own| !own.is_empty())
    }
}

/// The version's tool of that name.
pub fn tool_of<'a>(definition: &'a Definition, name: &str) -> Option<&'a Tool> {
    definition.turn.tools.iter().find(|tool| tool.name == name)
}
