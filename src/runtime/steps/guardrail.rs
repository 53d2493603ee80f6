//! A step in which guardrails judge a text for a flow: the task's own, which are pure. So it is performed in a dry run, too, and
//! once more where its process died.
//!
//! Guarantees: the text stands in no row of the step unless it goes on as it is. It is computed from where the run stands.

use super::attempt::{Attempt, Outcome, Performed};
use super::checks::Checker;
use super::http;
use crate::runtime::journal::judged::JudgedText;
use crate::runtime::journal::misread;
use crate::runtime::progress::events::StepAnswer;
use crate::store::steps::Begun;
use serde_json::json;

/// Has them judge.
pub(super) fn perform(attempt: &Attempt<'_>, begun: &Begun) -> Performed {
    let program = attempt.program;
    if program.is_dry_run() && program.has_fixture(&begun.path) {
        return http::simulated().into();
    }
    let subject = match program.judged_text() {
        Ok(subject) => subject,
        Err(reason) => return Outcome::refused(misread(reason)).into(),
    };
    let mut checker = Checker::of_task(attempt, begun, subject.guardrails);
    let outcome = checker.text(subject.point, &subject.text);
    let judged = JudgedText::of(subject.text, outcome);
    Performed {
        checks: checker.checks,
        events: checker.events,
        ..Outcome::Done {
            result: json!(judged),
            answer: StepAnswer::Guardrail {
                verdict: judged.verdict,
                blocked_by: judged.name,
                code: judged.code,
            },
        }
        .into()
    }
}
