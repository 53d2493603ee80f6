//! A step that waits for a time.

use super::attempt::{Attempt, Outcome};
use crate::runtime::journal::read;
use crate::runtime::journal::wait::{TimerRequest, timer};
use crate::runtime::progress::events::StepAnswer;
use crate::store::steps::Begun;
use serde_json::json;

/// Done once its time has come.
pub(super) fn perform(attempt: &Attempt<'_>, begun: &Begun) -> Outcome {
    let request: TimerRequest = match read(Some(&begun.request)) {
        Ok(request) => request,
        Err(reason) => return Outcome::refused(reason),
    };
    if attempt.services.clock.now() < request.until {
        return Outcome::Waits(timer(request.until));
    }
    Outcome::Done {
        result: json!({}),
        answer: StepAnswer::Wait {},
    }
}
