//! The events of a run: every kind, its data, and when it is written.
//!
//! Clients ignore fields and kinds that they do not know, so both may be added; neither is ever
//! taken away or given another meaning. `seq` orders them without gaps; the last one of a run is
//! `run.completed`, `run.failed` or `run.cancelled`, and no other event follows it.

mod answer;

pub use self::answer::{ChildEnd, StepAnswer, TokenCounts, ToolCall};

use crate::flows::definition::graph::NodeKind;
use crate::ids::Timestamp;
use crate::store::approvals::{ApprovalStatus, Opening};
use crate::store::events::{NewEvent, StoredEvent};
use crate::store::policies::Streaming;
use crate::store::run_checks::{OnError, Point, Verdict};
use crate::store::runs::{Agent, End, Labels, NewRun, Origin, Usage, WaitingFor};
use crate::store::steps::{StepKind, StepOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// A longer request of a step that was not performed is left out of its event, in bytes of JSON.
const REQUEST_BYTES: usize = 16 * 1024;

/// An event of a run, as clients read it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RunEvent")]
pub struct Numbered {
    /// Its number in the run, from 1 without gaps.
    seq: i64,
    /// When it was written.
    created_at: Timestamp,
    #[serde(flatten)]
    #[schemars(with = "Event")]
    event: Value,
}

impl From<StoredEvent> for Numbered {
    fn from(event: StoredEvent) -> Self {
        Self {
            seq: event.seq,
            created_at: event.created_at.into(),
            event: json!({"kind": event.kind, "data": event.data}),
        }
    }
}

/// An event: `kind` and `data`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "data")]
pub enum Event {
    /// The run exists; it waits for a thread.
    #[serde(rename = "run.created", rename_all = "camelCase")]
    #[schemars(title = "RunCreatedEvent")]
    RunCreated {
        /// What runs.
        flow_id: String,
        /// Its version.
        flow_version: String,
        /// Who began it.
        origin: Origin,
        /// As the caller said.
        dry_run: bool,
        /// For an agent's turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<Agent>,
        /// As the caller gave them; absent without any.
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
        /// Of an agent's turn whose text guardrails judge: whether readers get text after the verdict; absent otherwise.
        // The database writes it: `run_created`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        streaming: Option<Streaming>,
    },
    /// The run takes up one that failed. Steps that were done there are taken over and not done again; what they answered
    /// is in that run's events.
    #[serde(rename = "run.retried", rename_all = "camelCase")]
    #[schemars(title = "RunRetriedEvent")]
    RunRetried {
        /// The run that failed.
        retry_of: Uuid,
        /// How many of its steps are taken over, from the first.
        steps: i32,
    },
    /// Somebody carries it on, for the first time.
    #[serde(rename = "run.started")]
    #[schemars(title = "RunStartedEvent")]
    RunStarted {},
    /// It waits, and holds nothing meanwhile. After a wait for a retry a `step.started` with a higher attempt follows.
    #[serde(rename = "run.waiting", rename_all = "camelCase")]
    #[schemars(title = "RunWaitingEvent")]
    RunWaiting {
        /// What it waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_for: Option<WaitingFor>,
        /// Of a wait for a retry: why, in a sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Of a wait for a retry: about when it goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<String>,
        /// Of a wait for a time: when it is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wake_at: Option<String>,
        /// The step that goes on, or will be tried again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<i32>,
        /// The attempt that waits, or that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<i32>,
    },
    /// An attempt of a step begins. Text of an earlier attempt of the step is void.
    #[serde(rename = "step.started")]
    #[schemars(title = "StepStartedEvent")]
    StepStarted(StepRef),
    /// The conversation was longer than the model's context window, so its oldest exchanges were left out of what the
    /// model was asked. Comes before the end of the step.
    #[serde(rename = "context.trimmed", rename_all = "camelCase")]
    #[schemars(title = "ContextTrimmedEvent")]
    ContextTrimmed {
        /// The model's step.
        step: i32,
        /// The attempt.
        attempt: i32,
        /// How many exchanges were left out: a message of the user with all that followed it.
        exchanges: usize,
        /// The model's context window, in tokens, if it is known: a server may find a prompt too long without saying how
        /// much it takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u32>,
    },
    /// A guardrail did not let something pass as it was. What it found is not told.
    #[serde(rename = "guardrail.decided", rename_all = "camelCase")]
    #[schemars(title = "GuardrailDecidedEvent")]
    GuardrailDecided {
        /// The step.
        step: i32,
        /// The attempt.
        attempt: i32,
        /// Where the check stands.
        point: Point,
        /// Of a call: which of the model's answer, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<i32>,
        /// The check.
        name: String,
        /// What it decided.
        verdict: Verdict,
    },
    /// A guardrail failed. What it was to judge was blocked, or went on unchecked.
    #[serde(rename = "guardrail.failed", rename_all = "camelCase")]
    #[schemars(title = "GuardrailFailedEvent")]
    GuardrailFailed {
        /// The step.
        step: i32,
        /// The attempt.
        attempt: i32,
        /// Where the check stands.
        point: Point,
        /// Of a call: which of the model's answer, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<i32>,
        /// The check.
        name: String,
        /// What became of what it was to judge.
        on_error: OnError,
    },
    /// A step is done, and is never done again. It may have failed all the same: see `outcome`.
    #[serde(rename = "step.completed", rename_all = "camelCase")]
    #[schemars(title = "StepCompletedEvent")]
    StepCompleted {
        /// Which step.
        #[serde(flatten)]
        step: StepRef,
        /// What it came to; absent in events of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<StepOutcome>,
        /// What it answered.
        #[serde(flatten)]
        answer: StepAnswer,
    },
    /// The process that carried the run on died during a step, which is about to be done again.
    #[serde(rename = "step.restarted", rename_all = "camelCase")]
    #[schemars(title = "StepRestartedEvent")]
    StepRestarted {
        /// Which step.
        #[serde(flatten)]
        step: StepRef,
        /// The attempt whose call was lost: nobody knows what it used.
        lost_attempt: i32,
    },
    /// An attempt of a step failed.
    #[serde(rename = "step.failed", rename_all = "camelCase")]
    #[schemars(title = "StepFailedEvent")]
    StepFailed {
        /// Which step.
        #[serde(flatten)]
        step: StepRef,
        /// Why, in a sentence.
        reason: String,
        /// `unknown` if the call may have taken effect; absent in events of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<StepOutcome>,
        /// Whether it will be tried again.
        will_retry: bool,
    },
    /// A dry run does not perform a step, which is completed with this.
    #[serde(rename = "step.simulated", rename_all = "camelCase")]
    #[schemars(title = "StepSimulatedEvent")]
    StepSimulated {
        /// Which step.
        #[serde(flatten)]
        step: StepRef,
        /// What it would have sent, as the flow or the model says it; null if that has more than 16 KiB.
        request: Value,
        /// Whether it was left out.
        request_omitted: bool,
    },
    /// A task of a flow begins. Of tasks that only compute, as of all, the events are written with the next step.
    #[serde(rename = "task.started")]
    #[schemars(title = "TaskStartedEvent")]
    TaskStarted(TaskRef),
    /// A task of a flow is done.
    #[serde(rename = "task.completed")]
    #[schemars(title = "TaskCompletedEvent")]
    TaskCompleted(TaskRef),
    /// A task of a flow is left out: its `if` does not hold.
    #[serde(rename = "task.skipped")]
    #[schemars(title = "TaskSkippedEvent")]
    TaskSkipped(TaskRef),
    /// A task of a flow ends with an error, or is cut by its time.
    #[serde(rename = "task.faulted", rename_all = "camelCase")]
    #[schemars(title = "TaskFaultedEvent")]
    TaskFaulted {
        /// Which task.
        #[serde(flatten)]
        task: TaskRef,
        /// The error.
        #[serde(flatten)]
        error: TaskError,
        /// It is a `try` whose list will be tried again.
        will_retry: bool,
    },
    /// A `try` of a flow handles an error of its list, and does not try it again.
    #[serde(rename = "task.caught")]
    #[schemars(title = "TaskCaughtEvent")]
    TaskCaught {
        /// Which `try`.
        #[serde(flatten)]
        task: TaskRef,
        /// The error.
        #[serde(flatten)]
        error: TaskError,
    },
    /// So many events of tasks were left out here: a run tells of 5,000 tasks at most, and of 200 between two steps.
    #[serde(rename = "events.omitted")]
    #[schemars(title = "EventsOmittedEvent")]
    EventsOmitted {
        /// How many.
        count: usize,
    },
    /// A step began a run.
    #[serde(rename = "child.started", rename_all = "camelCase")]
    #[schemars(title = "ChildStartedEvent")]
    ChildStarted {
        /// The step that began it.
        step: i32,
        /// The task of the flow, or the call of the turn.
        path: String,
        /// Which branch or iteration of the task, from 0.
        index: i32,
        /// The run that began.
        run_id: Uuid,
        /// What runs.
        flow_id: String,
    },
    /// A run that a step began has ended.
    #[serde(rename = "child.completed", rename_all = "camelCase")]
    #[schemars(title = "ChildCompletedEvent")]
    ChildCompleted {
        /// The step that began it.
        step: i32,
        /// The task of the flow, or the call of the turn.
        path: String,
        /// Which branch or iteration of the task, from 0.
        index: i32,
        /// The run that ended.
        run_id: Uuid,
        /// `completed`, `failed` or `cancelled`.
        status: String,
        /// What it used, runs below it included.
        usage: Usage,
    },
    /// An approval was opened, and the run waits for it.
    #[serde(rename = "approval.requested", rename_all = "camelCase")]
    #[schemars(title = "ApprovalRequestedEvent")]
    ApprovalRequested {
        /// The step that waits for it.
        step: i32,
        /// Where that stands in the run's program.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        path: String,
        /// Of a call of a tool by a model: the model's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The approval.
        approval_id: Uuid,
        /// What a reviewer reads first.
        title: String,
        /// The role that may decide it.
        required_role: String,
        /// How long it waits, from its opening.
        expires_after_ms: u64,
    },
    /// An approval was closed. Who decided it, and why, is for reviewers.
    #[serde(rename = "approval.decided", rename_all = "camelCase")]
    #[schemars(title = "ApprovalDecidedEvent")]
    ApprovalDecided {
        /// The step that waited for it.
        step: i32,
        /// The approval.
        approval_id: Uuid,
        /// How it was closed.
        status: ApprovalStatus,
    },
    /// An approval was closed, and another one for another role waits in its place. Who escalated it, if it was not its time,
    /// is for reviewers.
    // The database writes it: `approval_escalate`.
    #[serde(rename = "approval.escalated", rename_all = "camelCase")]
    #[schemars(title = "ApprovalEscalatedEvent")]
    ApprovalEscalated {
        /// The step that waits for it.
        step: i32,
        /// The approval that was closed.
        approval_id: Uuid,
        /// The approval that waits in its place, with the same title and the same end of its time.
        to: Uuid,
        /// The role that may decide that one.
        required_role: String,
    },
    /// An approval was opened and assigned to nobody: the person whom its definition names is no active user with the role.
    // The database writes it: `approval_assign_named`. It does not name the person: browsers with a public token read it.
    #[serde(rename = "approval.unassigned", rename_all = "camelCase")]
    #[schemars(title = "ApprovalUnassignedEvent")]
    ApprovalUnassigned {
        /// The step that waits for it.
        step: i32,
        /// The approval.
        approval_id: Uuid,
        /// The role that may decide it.
        required_role: String,
    },
    /// Somebody asked the run to end while it was carried on.
    #[serde(rename = "run.cancelRequested")]
    #[schemars(title = "RunCancelRequestedEvent")]
    RunCancelRequested {},
    /// The last event: the run has an output.
    #[serde(rename = "run.completed", rename_all = "camelCase")]
    #[schemars(title = "RunCompletedEvent")]
    RunCompleted {
        /// The agent's answer was cut at its maximum length; absent otherwise.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        answer_cut: bool,
        /// Those of the run; absent without any.
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
    },
    /// The last event: the run failed.
    #[serde(rename = "run.failed", rename_all = "camelCase")]
    #[schemars(title = "RunFailedEvent")]
    RunFailed {
        /// Why, in a sentence.
        failure_message: String,
        /// The same without data of the run: what webhook events, lists and the operator's log have.
        #[serde(default)]
        failure_summary: String,
        /// Those of the run; absent without any.
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
    },
    /// The last event: the run was cancelled.
    #[serde(rename = "run.cancelled")]
    #[schemars(title = "RunCancelledEvent")]
    RunCancelled {
        /// Those of the run; absent without any.
        #[serde(default, skip_serializing_if = "Labels::is_empty")]
        labels: Labels,
    },
}

/// An attempt of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepRef {
    /// Its number in the run, from 1.
    pub step: i32,
    /// The attempt, from 1.
    pub attempt: i32,
    /// What the step does.
    #[serde(rename = "type")]
    pub kind: StepKind,
    /// Of a model or a tool its name, also of a tool that runs an agent or a flow; else the kind or what it calls.
    pub name: String,
    /// Of a flow's step the JSON pointer of its task; of an approval in a turn, and of a run that it begins, the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// For a tool that a model calls, its run and its approval: the model's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// True once what was said was erased: texts are empty then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
}

/// A task of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskRef {
    /// Its JSON pointer in the definition.
    pub path: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: NodeKind,
    /// In a loop: the iteration, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<usize>,
}

/// An error of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskError {
    /// Its status, as those of HTTP.
    pub status: u16,
    /// What went wrong, cut after 200 characters.
    pub title: String,
    /// True once what was said was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
}

impl Event {
    /// The first event of a run.
    pub fn created(run: &NewRun) -> Self {
        Self::RunCreated {
            flow_id: run.flow_id.clone(),
            flow_version: run.flow_version.clone(),
            origin: run.origin,
            dry_run: run.dry_run,
            agent: run.agent.clone(),
            labels: run.labels.clone(),
            streaming: None,
        }
    }

    /// An approval was opened for a step.
    pub fn requested(opening: &Opening, call_id: Option<&str>) -> Self {
        let new = &opening.new;
        let expires_after_ms = new.expires_after.as_millis();
        Self::ApprovalRequested {
            step: opening.step,
            path: opening.path.clone(),
            call_id: call_id.map(str::to_owned),
            approval_id: opening.approval_id,
            title: new.title.clone(),
            required_role: new.required_role.clone(),
            expires_after_ms: u64::try_from(expires_after_ms).unwrap_or(u64::MAX),
        }
    }

    /// A dry run did not perform the step that asks this.
    pub fn simulated(step: StepRef, request: Value) -> Self {
        let request_omitted = request.to_string().len() > REQUEST_BYTES;
        Self::StepSimulated {
            step,
            request: match request_omitted {
                true => Value::Null,
                false => request,
            },
            request_omitted,
        }
    }

    /// The last event of a run with these labels.
    pub fn ended(end: &End, labels: &Labels) -> Self {
        let labels = labels.clone();
        match end {
            End::Completed { output, message } => Self::RunCompleted {
                // A flow's output is its author's.
                answer_cut: message.is_some() && output["answerCut"] == true,
                labels,
            },
            End::Failed { failure, .. } => Self::RunFailed {
                failure_message: failure.message.clone(),
                failure_summary: failure.summary.as_str().to_owned(),
                labels,
            },
            End::Cancelled => Self::RunCancelled { labels },
        }
    }

    /// Its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RunCreated { .. } => "run.created",
            Self::GuardrailDecided { .. } => "guardrail.decided",
            Self::GuardrailFailed { .. } => "guardrail.failed",
            Self::RunRetried { .. } => "run.retried",
            Self::RunStarted {} => "run.started",
            Self::RunWaiting { .. } => "run.waiting",
            Self::StepStarted(_) => "step.started",
            Self::ContextTrimmed { .. } => "context.trimmed",
            Self::StepCompleted { .. } => "step.completed",
            Self::StepRestarted { .. } => "step.restarted",
            Self::StepFailed { .. } => "step.failed",
            Self::StepSimulated { .. } => "step.simulated",
            Self::TaskStarted(_) => "task.started",
            Self::TaskCompleted(_) => "task.completed",
            Self::TaskSkipped(_) => "task.skipped",
            Self::TaskFaulted { .. } => "task.faulted",
            Self::TaskCaught { .. } => "task.caught",
            Self::EventsOmitted { .. } => "events.omitted",
            Self::ChildStarted { .. } => "child.started",
            Self::ChildCompleted { .. } => "child.completed",
            Self::ApprovalRequested { .. } => "approval.requested",
            Self::ApprovalDecided { .. } => "approval.decided",
            Self::ApprovalEscalated { .. } => "approval.escalated",
            Self::ApprovalUnassigned { .. } => "approval.unassigned",
            Self::RunCancelRequested {} => "run.cancelRequested",
            Self::RunCompleted { .. } => "run.completed",
            Self::RunFailed { .. } => "run.failed",
            Self::RunCancelled { .. } => "run.cancelled",
        }
    }

    /// Whether an event of this kind is a run's last.
    pub fn is_last(kind: &str) -> bool {
        matches!(kind, "run.completed" | "run.failed" | "run.cancelled")
    }

    /// The row to be written.
    pub fn row(&self) -> NewEvent {
        let mut whole = serde_json::to_value(self).unwrap_or_default();
        NewEvent {
            kind: self.kind(),
            data: whole.get_mut("data").map_or(Value::Null, Value::take),
        }
    }
}

#[cfg(test)]
mod tests;
