//! What a tool's calls ask a reviewer before they are made, as the tool's row has it.
//!
//! Not here: reading its times, and the approvals that calls open (`runtime::tool_approvals`).

use crate::texts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What each call of a tool asks a reviewer before it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolApproval {
    /// What a reviewer reads first. Webhooks are told it too, so it says nothing of a single call.
    #[serde(default = "title")]
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// The reviewer role that may decide.
    #[serde(default = "required_role")]
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9-]{0,39}$"))]
    pub required_role: String,
    /// Whom each approval is assigned to, by id or email address: a person with the role. If the person is not active or lacks
    /// the role when it is opened, it is nobody's. Others with the role may decide all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 320))]
    pub assigned_to: Option<String>,
    /// How long the call waits, as an ISO 8601 duration such as `PT8H`: 30 days at most. Nobody's silence approves it.
    #[serde(default = "expires_after")]
    #[schemars(length(max = 64))]
    pub expires_after: String,
    /// Who is asked in the place of the role if nobody has decided: one at most.
    #[serde(default)]
    #[schemars(length(max = 1))]
    pub escalation: Vec<ToolEscalation>,
    /// What becomes of a call that is rejected or that nobody decides in time.
    #[serde(default = "on_reject")]
    pub on_reject: OnReject,
}

impl Default for ToolApproval {
    /// As if nothing was said.
    fn default() -> Self {
        Self {
            title: title(),
            required_role: required_role(),
            assigned_to: None,
            expires_after: expires_after(),
            escalation: Vec::new(),
            on_reject: on_reject(),
        }
    }
}

/// Who is asked if nobody has decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolEscalation {
    /// When, counted from the opening, as an ISO 8601 duration shorter than `expiresAfter`.
    #[schemars(length(max = 64))]
    pub after: String,
    /// The reviewer role that may decide then.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9-]{0,39}$"))]
    pub required_role: String,
    /// Whom the approval in its place is assigned to, by id or email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 320))]
    pub assigned_to: Option<String>,
}

texts! {
    /// What becomes of a call that nobody approves.
    OnReject {
        /// The model is told, with the reviewer's comment, and the turn goes on.
        Tell = "tell",
        /// The turn fails.
        Fail = "fail",
    }
}

fn title() -> String {
    "A tool call waits for approval".to_owned()
}

fn required_role() -> String {
    "standard".to_owned()
}

fn expires_after() -> String {
    "P1D".to_owned()
}

fn on_reject() -> OnReject {
    OnReject::Tell
}
