//! What `/v1/approvals` shows of an approval.
//!
//! Not here: who may see it, and what reviewers do with it (`approvals`).

use crate::ids::Timestamp;
use crate::store::approvals::for_reviewers::{Approval, Entry, Subject};
use crate::store::approvals::{ApprovalSource, ApprovalStatus, EarlierCall};
use crate::text::hex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// What a run asks a reviewer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Approval")]
pub(super) struct View {
    id: Uuid,
    project_id: Uuid,
    /// The run that waits for it.
    run_id: Uuid,
    /// The run at the top of that run's tree.
    root_run_id: Uuid,
    source: ApprovalSource,
    /// Where the step that waits stands in the run's program.
    path: String,
    title: String,
    /// The reviewer role that may decide.
    required_role: String,
    status: ApprovalStatus,
    /// Who started the run; this person does not decide.
    requested_by: Uuid,
    assigned_to: Option<Uuid>,
    created_at: Timestamp,
    /// Until when it waits. Nobody's silence approves it.
    expires_at: Timestamp,
    /// When another role is asked in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    escalates_at: Option<Timestamp>,
    /// The approval whose place this one took.
    #[serde(skip_serializing_if = "Option::is_none")]
    escalated_from: Option<Uuid>,
    /// The approval that took the place of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    escalated_to: Option<Uuid>,
    closed_at: Option<Timestamp>,
    /// Who closed it; null while it waits, and where time or the end of the run did.
    decided_by: Option<Uuid>,
    comment: Option<String>,
}

impl From<Approval> for View {
    fn from(row: Approval) -> Self {
        Self {
            id: row.approval_id,
            project_id: row.project_id,
            run_id: row.run_id,
            root_run_id: row.root_run_id,
            source: row.source,
            path: row.path,
            title: row.title,
            required_role: row.required_role,
            status: row.status,
            requested_by: row.requested_by,
            assigned_to: row.assigned_to,
            created_at: row.created_at.into(),
            expires_at: row.expires_at.into(),
            escalates_at: row.escalate_at.map(Into::into),
            escalated_from: row.escalated_from,
            escalated_to: row.escalated_to,
            closed_at: row.closed_at.map(Into::into),
            decided_by: row.decided_by,
            comment: row.comment,
        }
    }
}

/// What an approval is about, and what the reviewer gave.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ApprovalSubject")]
pub(super) struct SubjectView {
    /// Of a tool call: the tool's name.
    tool: Option<String>,
    /// Of a tool call: what the tool is to be called with.
    arguments: Option<Value>,
    /// What the run shows beside.
    context: Option<Value>,
    /// Names what is asked: a decision that carries it is refused if it is not about that.
    digest: String,
    /// What the reviewer put in place of the arguments.
    edited_arguments: Option<Value>,
    /// The JSON Schema that the answer of who approves has to fit: an object of flat fields. Null: it takes any answer, or none.
    form: Option<Value>,
    /// What the reviewer answered.
    answer: Option<Value>,
    /// Of a tool call: an earlier call with this content may have been made, and nobody got its answer. Look there before you
    /// approve another one. Null: there is none.
    earlier_call: Option<EarlierCall>,
}

/// Something that happened to an approval.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ApprovalLogEntry")]
pub(super) struct EntryView {
    /// `opened`, `assigned`, or as it was closed.
    kind: String,
    /// Who did it; null where the run, time or the end of the run did.
    user_id: Option<Uuid>,
    /// By which key.
    key_id: Option<Uuid>,
    at: Timestamp,
}

impl From<Entry> for EntryView {
    fn from(entry: Entry) -> Self {
        Self {
            kind: entry.kind,
            user_id: entry.user_id,
            key_id: entry.token_id,
            at: entry.at.into(),
        }
    }
}

/// An approval with what it is about.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WholeApproval")]
pub(super) struct WholeView {
    #[serde(flatten)]
    pub(super) approval: View,
    pub(super) subject: SubjectView,
    /// Whether the caller may decide about it now.
    pub(super) may_decide: bool,
    /// The code that a decision of the caller would be answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) may_not_because: Option<&'static str>,
    /// What the caller may put in place of the subject's: `arguments` of a tool call.
    pub(super) may_edit: Vec<&'static str>,
    /// What happened to it, in order.
    pub(super) log: Vec<EntryView>,
}

pub(super) fn subject_view(approval: &Approval, subject: Subject) -> SubjectView {
    SubjectView {
        tool: subject.tool,
        arguments: subject.arguments,
        context: subject.context,
        digest: digest(approval),
        edited_arguments: subject.edited_arguments,
        form: subject.form,
        answer: subject.answer,
        earlier_call: subject
            .earlier_call
            .and_then(|earlier| EarlierCall::deserialize(earlier).ok()),
    }
}

pub(super) fn digest(approval: &Approval) -> String {
    format!("sha256:{}", hex(&approval.subject_digest))
}
