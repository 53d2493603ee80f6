//! A child run that a commit of its parent is to begin. Not here: how it is begun (`children`, `child_turns`).

use super::end::End;
use super::rows::Agent;
use crate::store::events::NewEvent;
use serde_json::Value;
use uuid::Uuid;

/// A child run to be begun. Project, creator, root, `dry_run` and labels are its parent's; its origin is `run`.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChild {
    /// Its id.
    pub run_id: Uuid,
    /// Its place among its parent's children, which no other has.
    pub slot: i32,
    /// Where it stands in its parent's program.
    pub path: String,
    /// The step of its parent that begins it, if one does.
    pub parent_step: Option<i32>,
    /// The parallel branch of its parent's program that it is.
    pub branch: Option<String>,
    /// What runs.
    pub flow_id: String,
    /// Its version.
    pub flow_version: String,
    /// For an agent's turn.
    pub agent: Option<Agent>,
    /// For an agent's turn in a conversation.
    pub turn: Option<ConversationTurn>,
    /// What it is given.
    pub input: Value,
    /// Its first event.
    pub first: NewEvent,
    /// The payload of its job, JSON text.
    pub job_payload: String,
}

/// A turn of a conversation, which its agent names.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationTurn {
    /// What the user says.
    pub message: String,
    /// How it fails while another turn is under way there.
    pub busy: Refusal,
    /// How it fails where the agent has no such conversation, or it was erased.
    pub gone: Refusal,
}

/// How a turn fails that does not begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Its end.
    pub end: End,
    /// The event that says so.
    pub event: NewEvent,
}
