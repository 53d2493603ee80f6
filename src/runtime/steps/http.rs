//! A step that makes an HTTP request for a flow.
//!
//! The tenant chose the host, so the deployment's host-access mode applies. Redirects are not followed.

use super::attempt::{Attempt, Outcome};
use crate::failure::Failure;
use crate::outbound::{self, Kind, Outgoing, Response, Timeouts};
use crate::runtime::journal::call::{HttpAnswer, HttpRequest, Simulated, is_http_error};
use crate::runtime::journal::{misread, read};
use crate::runtime::program::Program;
use crate::runtime::progress::events::StepAnswer;
use crate::store::steps::{Begun, Step};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use std::time::Duration;

/// How long one exchange may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Makes the request.
pub(super) fn perform(attempt: &mut Attempt<'_>, begun: &Begun) -> Outcome {
    let request: HttpRequest = match read(Some(&begun.request)) {
        Ok(request) => request,
        Err(reason) => return Outcome::refused(misread(reason)),
    };
    if is_simulated(&request, attempt.program) {
        return simulated();
    }
    let services = attempt.services;
    let timeout = match attempt.time_for(TIMEOUT, request.until) {
        Ok(timeout) => timeout,
        Err(late) => return *late,
    };
    let origin = attempt.origin(begun);
    let key = request.idempotency_key.clone();
    let key = key.unwrap_or_else(|| origin.idempotency_key());
    let trace = origin.traceparent();
    let own = [("idempotency-key", &key), ("traceparent", &trace)];
    let own = own.map(|(name, value)| (name, value.as_str()));
    let given = request.headers.iter();
    let given: Vec<(&str, &str)> = given
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    // What the author says goes before what the service says.
    let own = own
        .into_iter()
        .filter(|(name, _)| given.iter().all(|(other, _)| other != name));
    let headers: Vec<(&str, &str)> = given.iter().copied().chain(own).collect();
    let Ok(method) = request.method.parse() else {
        return Outcome::refused("The method of the request is not known.");
    };
    let outgoing = Outgoing {
        method,
        url: &request.url,
        headers: &headers,
        body: request.body.as_deref().unwrap_or_default().as_bytes(),
        cap: services.options.tool_answer_bytes,
    };
    let client = attempt.clients.http(&attempt.interrupt.switch);
    client.set_timeouts(Timeouts {
        connect: timeout.min(CONNECT),
        first_byte: timeout,
        idle: None,
        total: timeout,
    });
    match client.send(&outgoing) {
        Ok(response) => answered(&request, &response, services.options.tool_answer_bytes),
        Err(failure) => failed(&request, &failure),
    }
}

/// A dry run does not make the request: it has an answer for it, or the request does not read alone.
fn is_simulated(request: &HttpRequest, program: &Program) -> bool {
    program.is_dry_run() && (request.is_simulated || !request.is_read())
}

/// The outcome of a step that a dry run does not perform.
pub(super) fn simulated() -> Outcome {
    Outcome::Done {
        result: json!(Simulated { simulated: true }),
        answer: StepAnswer::Simulated { simulated: true },
    }
}

fn answered(request: &HttpRequest, response: &Response, most: u64) -> Outcome {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in &response.headers {
        let value = storable(value.as_bytes());
        match headers.iter_mut().find(|(other, _)| other == name.as_str()) {
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(&value);
            }
            None => headers.push((name.as_str().to_owned(), value)),
        }
    }
    let body = match (request.is_raw, response.text(most)) {
        (true, _) => BASE64_STANDARD.encode(&response.body),
        (false, Ok(text)) => text,
        (false, Err(failure)) if (200..300).contains(&response.status) => {
            return failed(request, &failure);
        }
        // The status says more.
        (false, Err(failure)) => failure.to_string(),
    };
    let answer = HttpAnswer {
        status: response.status,
        is_error: is_http_error(response.status, request.takes_redirects),
        headers,
        body,
    };
    Outcome::Done {
        answer: StepAnswer::Http {
            status_code: answer.status,
        },
        result: json!(answer),
    }
}

fn failed(request: &HttpRequest, failure: &outbound::Failure) -> Outcome {
    if failure.kind() == Kind::Cancelled {
        return Outcome::Interrupted;
    }
    Outcome::Failed {
        failure: Failure::quoting(failure.message(), "It got no answer."),
        retryable: failure.is_transient() && request.is_repeatable(),
        retry_after: None,
        is_unknown: failure.may_have_arrived() && !request.is_read(),
    }
}

/// A header's value as text that PostgreSQL takes.
fn storable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// Whether it may have an effect.
pub(super) fn has_effect(begun: &Begun) -> bool {
    read::<HttpRequest>(Some(&begun.request)).is_ok_and(|request| !request.is_read())
}

/// Whether an attempt that was lost may be made again. One of a dry run that is not performed did nothing.
pub(super) fn is_repeatable(step: &Step, program: &Program) -> bool {
    let request = read::<HttpRequest>(Some(&step.request));
    request.is_ok_and(|request| request.is_repeatable() || is_simulated(&request, program))
}
