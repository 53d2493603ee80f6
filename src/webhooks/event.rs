//! The events that receivers can get, and the content of each (specification sections 2.7, 2.8 and
//! 6.3). An event never contains the input or output of a run, nor the subject of an approval.
//!
//! The schema of a time is spelled out beside it: so its keys keep their order in the published description.
//!
//! Not here: when an event is emitted (its source), and to which endpoints (`emit`).

use crate::error::{Error, Result};
use crate::ids::Timestamp;
use crate::store::runs::{self, Status, Usage};
use crate::texts;
use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    /// The kinds that an endpoint can be registered for.
    #[schemars(rename = "WebhookEventKind")]
    Kind {
        /// A run that an app or the command line started has ended.
        RunFinished = "run.finished",
        /// An improvement pass has ended, whoever started it. Nothing sends it yet.
        ImprovementPassFinished = "improvement-pass.finished",
        /// An approval has begun to wait for a reviewer.
        ApprovalRequested = "approval.requested",
    }
}

/// The `type` of a test, which nobody can be registered for.
pub const TEST: &str = "webhook.test";

/// What happened, as it is written into an event's body.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
#[schemars(rename = "WebhookEventContent")]
pub enum Event {
    /// A run has ended.
    #[serde(rename = "run.finished")]
    #[schemars(title = "RunFinishedWebhookEvent")]
    RunFinished {
        /// The run, as it is read at `/v1/runs/{runId}`.
        run: Box<RunFields>,
    },
    /// An improvement pass has ended. Nothing sends it yet.
    #[serde(rename = "improvement-pass.finished")]
    #[schemars(title = "ImprovementPassFinishedWebhookEvent")]
    ImprovementPassFinished {
        /// The pass.
        pass: ImprovementPass,
    },
    /// An approval waits for a reviewer.
    #[serde(rename = "approval.requested")]
    #[schemars(title = "ApprovalRequestedWebhookEvent")]
    ApprovalRequested {
        /// The approval, without what it is about.
        approval: Approval,
    },
    /// A person sent a test.
    #[serde(rename = "webhook.test")]
    #[schemars(title = "TestWebhookEvent")]
    Test {
        /// The endpoint that it was sent to.
        #[serde(rename = "endpointId")]
        endpoint_id: Uuid,
        /// Says that it is a test.
        message: String,
    },
}

// Specification, section 2.7.
/// A run's fields in a `run.finished` event.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookRun")]
pub struct RunFields {
    /// The run.
    pub id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// `agent.turn` for an agent's turn.
    pub flow_id: String,
    /// The version of the flow.
    pub flow_version: String,
    /// Where it stands.
    pub status: Status,
    /// As the caller said.
    pub dry_run: bool,
    /// Why it failed; null unless it did. In a webhook event and in a list it names the task, the status and the error's title,
    /// and quotes no data of the run; the run itself has the whole message.
    pub failure_message: Option<String>,
    /// When it was created.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub created_at: Timestamp,
    /// When it ended; null until it has.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub completed_at: Option<Timestamp>,
    /// What its model calls used.
    pub usage: Usage,
    /// Only on an agent's turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<runs::Agent>,
}

impl RunFields {
    /// The fields without data of the run: for an event, or an item of a list.
    pub fn summary(run: runs::Run) -> Self {
        let failure_message = run.summary_of_failure().map(str::to_owned);
        Self {
            failure_message,
            ..run.into()
        }
    }
}

impl From<runs::Run> for RunFields {
    /// The fields for those who may read the run.
    fn from(run: runs::Run) -> Self {
        Self {
            id: run.run_id,
            project_id: run.project_id,
            flow_id: run.flow_id,
            flow_version: run.flow_version,
            status: run.status,
            dry_run: run.dry_run,
            failure_message: run.failure_message,
            created_at: run.created_at.into(),
            completed_at: run.completed_at.map(Into::into),
            usage: run.usage,
            agent: run.agent,
        }
    }
}

// Specification, section 3.3.
/// How an improvement pass ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "WebhookPassStatus")]
pub enum PassStatus {
    /// It came to an end of its own.
    Completed,
    /// It could not.
    Failed,
    /// Somebody asked it to end.
    Cancelled,
}

/// An improvement pass that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookImprovementPass")]
pub struct ImprovementPass {
    /// The pass.
    pub id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// How it ended.
    pub status: PassStatus,
    /// What came of it; null where it did not come so far.
    pub outcome: Option<PassOutcome>,
    /// When it began.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub created_at: Timestamp,
    /// When it ended.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub completed_at: Timestamp,
}

/// What came of an improvement pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookPassOutcome")]
pub struct PassOutcome {
    /// The proposal that it wrote; null where it wrote none.
    pub proposal_id: Option<Uuid>,
}

// Specification, section 2.8.
/// An approval that waits for a reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookApproval")]
pub struct Approval {
    /// The approval; the event has the same id.
    pub approval_id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// The role that a reviewer needs.
    pub required_role: String,
    /// What a reviewer reads first.
    pub title: String,
    /// The user that it is assigned to; absent where it is nobody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_to: Option<Uuid>,
    /// When it began to wait.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub created_at: Timestamp,
    /// Until when it waits.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub expires_at: Timestamp,
    /// Its page in the console; absent where the runtime does not know its own public address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What the filters of endpoints look at (section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts<'a> {
    pub(super) project_id: Option<Uuid>,
    /// Of a run alone.
    pub(super) flow_id: Option<&'a str>,
    /// Of a run alone.
    pub(super) run_id: Option<Uuid>,
    pub(super) dry_run: bool,
}

// Specification, section 6.2.
/// The body of an event, the same at every attempt.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WebhookEvent")]
pub struct Envelope<'a> {
    /// The event: equal to the header `webhook-id`, and the same however often it is sent.
    id: Uuid,
    /// When it was emitted.
    #[schemars(with = "String", extend("format" = "date-time"))]
    created_at: Timestamp,
    #[serde(flatten)]
    event: &'a Event,
}

impl Event {
    /// As it is written in `type`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RunFinished { .. } => Kind::RunFinished.text(),
            Self::ImprovementPassFinished { .. } => Kind::ImprovementPassFinished.text(),
            Self::ApprovalRequested { .. } => Kind::ApprovalRequested.text(),
            Self::Test { .. } => TEST,
        }
    }

    /// The id that the event has by itself. It says in which month the event is kept, so it is made where
    /// the event is emitted: [`super::Webhooks::emit`] takes none that is older than a day.
    pub(super) const fn own_id(&self) -> Option<Uuid> {
        match self {
            Self::ApprovalRequested { approval } => Some(approval.approval_id),
            _ => None,
        }
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        let (project_id, run) = match self {
            Self::RunFinished { run } => (Some(run.project_id), Some(run)),
            Self::ImprovementPassFinished { pass } => (Some(pass.project_id), None),
            Self::ApprovalRequested { approval } => (Some(approval.project_id), None),
            Self::Test { .. } => (None, None),
        };
        Facts {
            project_id,
            flow_id: run.map(|run| run.flow_id.as_str()),
            run_id: run.map(|run| run.id),
            dry_run: run.is_some_and(|run| run.dry_run),
        }
    }

    /// The event's body.
    ///
    /// # Errors
    /// `internal`: it cannot be written as JSON.
    pub(super) fn body(&self, id: Uuid, created_at: OffsetDateTime) -> Result<String> {
        serde_json::to_string(&Envelope {
            id,
            created_at: created_at.into(),
            event: self,
        })
        .map_err(Error::internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use time::macros::datetime;

    fn written(event: &Event) -> Value {
        let body = event.body(Uuid::nil(), datetime!(2026-01-02 03:04:05.678 UTC));
        serde_json::from_str(&body.unwrap()).unwrap()
    }

    #[test]
    fn a_pass_and_an_approval_in_their_envelopes() {
        let at = Timestamp(datetime!(2026-01-01 00:00 UTC));
        let id = Uuid::from_u128(7);
        let pass = Event::ImprovementPassFinished {
            pass: ImprovementPass {
                id,
                project_id: id,
                status: PassStatus::Completed,
                outcome: Some(PassOutcome {
                    proposal_id: Some(id),
                }),
                created_at: at,
                completed_at: at,
            },
        };
        assert_eq!(
            written(&pass),
            json!({
                "id": Uuid::nil(), "createdAt": "2026-01-02T03:04:05.678Z", "type": "improvement-pass.finished",
                "data": {"pass": {
                    "id": id, "projectId": id, "status": "completed", "outcome": {"proposalId": id},
                    "createdAt": "2026-01-01T00:00:00.000Z", "completedAt": "2026-01-01T00:00:00.000Z",
                }},
            })
        );
        assert_eq!(pass.own_id(), None);
        let approval = Event::ApprovalRequested {
            approval: Approval {
                approval_id: id,
                project_id: id,
                required_role: "admin".to_owned(),
                title: "Send the letter".to_owned(),
                assigned_to: None,
                created_at: at,
                expires_at: at,
                url: None,
            },
        };
        assert_eq!(
            written(&approval)["data"],
            json!({"approval": {
                "approvalId": id, "projectId": id, "requiredRole": "admin", "title": "Send the letter",
                "createdAt": "2026-01-01T00:00:00.000Z", "expiresAt": "2026-01-01T00:00:00.000Z",
            }})
        );
        assert_eq!(approval.own_id(), Some(id));
        assert_eq!(approval.facts().project_id, Some(id));
    }

    #[test]
    fn kinds_are_written_as_events_are() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.text());
        }
        let test = Event::Test {
            endpoint_id: Uuid::nil(),
            message: "m".to_owned(),
        };
        assert_eq!(written(&test)["type"], TEST);
        assert_eq!(written(&test)["data"]["endpointId"], json!(Uuid::nil()));
    }
}
