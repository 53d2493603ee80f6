//! A step that waits for a time.

use super::attempt::{Attempt, Outcome};
use crate::runtime::journal::wait::{TimerRequest, timer};
use crate::runtime::journal::{misread, read};
use crate::runtime::progress::events::StepAnswer;
use crate::store::steps::Begun;
use serde_json::json;

/// Done once its time has come.
pub(super) fn perform(attempt: &Attempt<'_>, begun: &Begun) -> Outcome {
    let request: TimerRequest = match read(Some(&begun.request)) {
        Ok(request) => request,
        Err(reason) => return Outcome::refused(misread(reason)),
    };
    let now = attempt.services.clock.now();
    if let Some(left) = request.left((now, attempt.database_ahead)) {
        return Outcome::Waits(timer(now + left));
    }
    Outcome::Done {
        result: json!({}),
        answer: StepAnswer::Wait {},
    }
}
