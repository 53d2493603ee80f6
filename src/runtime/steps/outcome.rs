//! What a step came to: the one place that decides it, for the events of a run, the API, the console, the command line and
//! spans.
//!
//! A completed step has an answer, which may be an error. So its status alone does not say whether it succeeded.

use crate::runtime::journal::call::{HttpAnswer, StepFailure};
use crate::runtime::journal::read;
use crate::runtime::journal::wait::{ApprovalResult, ChildResult};
use crate::store::approvals::ApprovalStatus;
use crate::store::runs::ChildState;
use crate::store::steps::{StepKind, StepOutcome, StepStatus};
use crate::tools::Answer;
use serde_json::Value;

/// What a step came to. None: it is under way, or its answer was erased.
pub fn outcome(kind: StepKind, status: StepStatus, result: Option<&Value>) -> Option<StepOutcome> {
    match status {
        StepStatus::Running => None,
        StepStatus::Failed => Some(of_failure(result)),
        StepStatus::Completed => match kind {
            // What a guardrail blocks is data of its flow.
            StepKind::Model | StepKind::Wait | StepKind::Guardrail => Some(StepOutcome::Succeeded),
            _ => result.map(|result| of_answer(kind, result)),
        },
    }
}

fn of_failure(result: Option<&Value>) -> StepOutcome {
    let failure: Result<StepFailure, String> = read(result);
    match failure.is_ok_and(|failure| failure.is_unknown) {
        true => StepOutcome::Unknown,
        false => StepOutcome::Failed,
    }
}

fn of_answer(kind: StepKind, result: &Value) -> StepOutcome {
    let result = Some(result);
    match kind {
        StepKind::Http => {
            let answer: Result<HttpAnswer, String> = read(result);
            failed_if(answer.is_ok_and(|answer| answer.is_error || answer.status >= 400))
        }
        StepKind::Tool => read(result).map_or(StepOutcome::Succeeded, |answer| of_tool(&answer)),
        // The run that the call of a tool is leaves the answer of a tool.
        StepKind::Child => match read::<Vec<ChildResult>>(result) {
            Ok(children) => of_children(&children),
            Err(_) => read(result).map_or(StepOutcome::Succeeded, |answer| of_tool(&answer)),
        },
        StepKind::Approval => {
            let closed: Result<ApprovalResult, String> = read(result);
            match closed.is_ok_and(|closed| closed.decision != ApprovalStatus::Approved) {
                true => StepOutcome::Refused,
                false => StepOutcome::Succeeded,
            }
        }
        StepKind::Model | StepKind::Wait | StepKind::Guardrail => StepOutcome::Succeeded,
    }
}

fn of_tool(answer: &Answer) -> StepOutcome {
    match answer.is_unknown {
        true => StepOutcome::Unknown,
        false => failed_if(answer.is_error),
    }
}

/// Also of a loop that takes the errors of its iterations for answers: a reader looks for them.
fn of_children(children: &[ChildResult]) -> StepOutcome {
    let mut errors = children.iter().filter_map(|child| child.error.as_ref());
    if errors.any(|error| error["outcome"] == "unknown") {
        return StepOutcome::Unknown;
    }
    let has_failed = |child: &ChildResult| child.status != ChildState::Completed.text();
    failed_if(children.iter().any(has_failed))
}

fn failed_if(has_failed: bool) -> StepOutcome {
    match has_failed {
        true => StepOutcome::Failed,
        false => StepOutcome::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_completed_step_may_have_failed() {
        use StepOutcome::{Failed, Refused, Succeeded, Unknown};
        let http = |status: u16| json!({"status": status, "headers": [], "body": ""});
        let redirect = json!({"status": 302, "headers": [], "body": "", "isError": true});
        let child = |status: &str, error: Value| json!([{"runId": uuid::Uuid::nil(), "status": status, "error": error}]);
        let lost = json!({"outcome": "unknown"});
        let approval = |decision: &str| json!({"decision": decision, "comment": null, "decidedBy": null, "answer": null, "approvalId": null});
        for (kind, result, expected) in [
            (StepKind::Http, http(200), Succeeded),
            (StepKind::Http, http(404), Failed),
            (StepKind::Http, http(302), Succeeded),
            (StepKind::Http, redirect, Failed),
            (
                StepKind::Tool,
                json!({"isError": false, "output": "ok"}),
                Succeeded,
            ),
            (
                StepKind::Tool,
                json!({"isError": true, "output": "no"}),
                Failed,
            ),
            (
                StepKind::Tool,
                json!({"isError": true, "output": "?", "isUnknown": true}),
                Unknown,
            ),
            (StepKind::Tool, json!({"simulated": true}), Succeeded),
            (StepKind::Child, child("completed", Value::Null), Succeeded),
            (
                StepKind::Child,
                child("failed", json!({"status": 500})),
                Failed,
            ),
            (StepKind::Child, child("cancelled", Value::Null), Failed),
            (StepKind::Child, child("failed", lost), Unknown),
            (
                StepKind::Child,
                json!({"isError": true, "output": "no"}),
                Failed,
            ),
            (StepKind::Approval, approval("approved"), Succeeded),
            (StepKind::Approval, approval("rejected"), Refused),
            (StepKind::Approval, approval("expired"), Refused),
        ] {
            let found = outcome(kind, StepStatus::Completed, Some(&result));
            assert_eq!(found, Some(expected), "{kind:?} {result}");
        }
        let failed = |result: Value| outcome(StepKind::Tool, StepStatus::Failed, Some(&result));
        assert_eq!(failed(json!({"reason": "No."})), Some(Failed));
        assert_eq!(
            failed(json!({"reason": "?", "isUnknown": true})),
            Some(Unknown)
        );
        assert_eq!(
            outcome(StepKind::Http, StepStatus::Failed, None),
            Some(Failed)
        );
        assert_eq!(outcome(StepKind::Http, StepStatus::Running, None), None);
        assert_eq!(outcome(StepKind::Http, StepStatus::Completed, None), None);
    }
}
