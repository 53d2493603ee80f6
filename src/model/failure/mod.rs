//! Why a model call failed, in words for a run's `failureMessage`, and whether a retry may help.
//!
//! A message holds at most 1000 characters of the provider's text, on one line, without the API key and without the values of
//! the provider's headers. A time limit is named with the option and the setting that change it.

mod too_long;
mod waits;
mod words;

pub use too_long::TooLong;

use super::answer::Usage;
use crate::failure::{self, Part, Summary};
use crate::ids::Clock;
use crate::outbound::{Failure, Kind, Limit, Stream};
use crate::secret::Secret;
use serde_json::{Value, json};
use std::time::Duration;

const MAX_WORDS_CHARS: usize = 1000;
/// How much of an error answer is read, and for how long.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const ERROR_TIME: Duration = Duration::from_secs(5);

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFailure {
    /// A plain sentence or two, without secrets. Only the whole message has the provider's words.
    pub why: failure::Failure,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The wait that the provider requests, at most an hour.
    pub retry_after: Option<Duration>,
    /// The HTTP status, if an answer started.
    pub status: Option<u16>,
    /// The tokens of the failed call, if the provider counted them.
    pub usage: Option<Box<Usage>>,
    /// Whether another thread cancelled it.
    pub cancelled: bool,
    /// The time limit that ended it.
    pub limit: Option<Limit>,
    /// The conversation is longer than the model takes.
    pub too_long: Option<Box<TooLong>>,
    /// The server is loading the model, so the same call may succeed soon.
    pub is_loading: bool,
    /// The answer ended with nothing in it, and no word why.
    pub is_silent: bool,
}

/// Texts that no message shows.
#[derive(Clone, Copy, Default)]
pub(super) struct Hidden<'a> {
    /// The API key.
    pub(super) key: Option<&'a Secret>,
    /// The provider's headers with their values, which may be keys as well.
    pub(super) headers: &'a [(String, Secret)],
}

impl ModelFailure {
    pub(super) fn new(why: impl Into<failure::Failure>, retryable: bool) -> Self {
        Self {
            why: why.into(),
            retryable,
            retry_after: None,
            status: None,
            usage: None,
            cancelled: false,
            limit: None,
            too_long: None,
            is_loading: false,
            is_silent: false,
        }
    }

    /// A call that another thread cancelled.
    pub fn interrupted() -> Self {
        Self {
            cancelled: true,
            ..Self::new("The call of the model provider was cancelled.", false)
        }
    }

    /// The server was still loading its model when the time for that was over.
    pub fn while_loading(self, waited: Duration) -> Self {
        let (amount, unit) = amount(waited);
        let why = self.why.then(&[
            &"It was loading its model for more than ",
            &amount,
            &unit,
            &" (serverOptions.timeouts.firstByteMs of the model provider, or else SVC_MODEL_FIRST_BYTE_TIMEOUT_MS).",
        ]);
        Self {
            why,
            retryable: false,
            ..self
        }
    }

    pub(super) fn transport(failure: &Failure) -> Self {
        let why = match failure.limit() {
            Some(limit) => late(limit, failure),
            None => failure::Failure::quoting(
                format!("The model provider could not be used: {failure}"),
                "The model provider could not be used.",
            ),
        };
        Self {
            cancelled: failure.kind() == Kind::Cancelled,
            limit: failure.limit(),
            ..Self::new(why, failure.is_transient())
        }
    }

    /// A web page in place of an answer.
    pub(super) fn web_page(status: u16) -> Self {
        Self::page(status, "")
    }

    fn page(status: u16, title: &str) -> Self {
        let is_passing = status >= 500 || status == 429;
        let parts: [&dyn Part; 3] = [
            &"The model provider answered with a web page (HTTP ",
            &status,
            &").",
        ];
        let said = match title {
            "" => Summary::of(&parts).into(),
            _ => failure::Failure::quoting(
                format!(
                    "The model provider answered with a web page (HTTP {status}): {}",
                    sentence(title)
                ),
                Summary::of(&parts),
            ),
        };
        let why = match is_passing {
            true => said,
            false => said.then(&[&"Is its base URL right?"]),
        };
        Self {
            status: Some(status),
            ..Self::new(why, is_passing)
        }
    }

    /// Explains an answer whose status is not 2xx, and hands out its body.
    pub(super) fn refusal(clock: &Clock, stream: Stream, hidden: Hidden<'_>) -> (Self, Vec<u8>) {
        let (status, headers) = (stream.status, stream.headers.clone());
        let body = stream.excerpt(MAX_ERROR_BYTES, ERROR_TIME);
        let text = String::from_utf8_lossy(&body);
        let failure = Self::status(status, &body, hidden);
        let is_limited = matches!(status, 429 | 498);
        let retry_after = waits::of_answer(
            &headers,
            &words::json(bare(&text)),
            &text,
            clock.now(),
            is_limited,
        );
        let failure = Self {
            retry_after: retry_after.filter(|_| failure.retryable),
            ..failure
        };
        (failure, body)
    }

    /// An answer whose status is not 2xx, from its body alone.
    pub(super) fn status(status: u16, body: &[u8], hidden: Hidden<'_>) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = bare(&text);
        let value = words::json(text);
        if value.is_null() && text.starts_with('<') {
            return Self::page(status, &plain(&words::title(text), hidden));
        }
        let what = match status {
            300..=399 => "redirects, which are not followed",
            401 => "does not accept the API key",
            402 => "wants to be paid first",
            403 => "does not allow this call",
            404 => "does not know this path or this model",
            413 => "finds the request too large",
            429 => "is asked too much",
            498 => "has no capacity left",
            500..=599 => "has a fault",
            _ => "refuses the request",
        };
        let said = match value.is_null() {
            true => text.to_owned(),
            false => words::of(&value),
        };
        let said = plain(&said, hidden);
        let colon = if said.is_empty() { "." } else { ": " };
        let parts: [&dyn Part; 5] = [&"The model provider ", &what, &" (HTTP ", &status, &")."];
        let whole = format!(
            "The model provider {what} (HTTP {status}){colon}{}",
            sentence(&said)
        );
        let failure = Self {
            status: Some(status),
            ..Self::new(
                failure::Failure::quoting(whole, Summary::of(&parts)),
                may_pass(status, &value, &said),
            )
        };
        failure.explained(Some(status), &value, &said)
    }

    /// What came in place of an answer: what is wrong with it, and what it says.
    pub(super) fn no_answer(what: &'static str, said: &str, hidden: Hidden<'_>) -> Self {
        let said = plain(said, hidden);
        let parts: [&dyn Part; 3] = [
            &"The model provider's answer is not a chat completion: ",
            &what,
            &".",
        ];
        let why = match said.as_str() {
            "" => Summary::of(&parts).into(),
            said => failure::Failure::quoting(
                format!(
                    "The model provider's answer is not a chat completion: {what}: {}",
                    sentence(said)
                ),
                Summary::of(&parts),
            ),
        };
        Self::new(why, true)
    }

    /// The same, of a value.
    pub(super) fn no_answer_in(what: &'static str, value: &Value, hidden: Hidden<'_>) -> Self {
        Self::no_answer(what, &words::of(value), hidden)
    }

    /// An error object in an answer whose status is 200.
    pub(super) fn inside(value: &Value, hidden: Hidden<'_>) -> Option<Self> {
        let value = value.get(0).unwrap_or(value);
        let choice = &value["choices"][0];
        let of_choice = [choice, &choice["delta"], &choice["message"]];
        if let Some(place) = of_choice.into_iter().find(|place| has_error(place)) {
            return Self::inside(&json!({"error": place["error"]}), hidden);
        }
        if !is_error(value) {
            return None;
        }
        let said = plain(&words::of(value), hidden);
        let shown = match said.as_str() {
            "" => "it does not say which",
            said => said,
        };
        let status = error_status(value);
        let retryable = match status {
            Some(status) => may_pass(status, value, &said),
            None => !is_lasting(value) && !is_minimax_lasting(value),
        };
        let failure = Self::new(
            failure::Failure::quoting(
                format!(
                    "The model provider reported an error inside its answer: {}",
                    sentence(shown)
                ),
                "The model provider reported an error inside its answer.",
            ),
            retryable,
        );
        let failure = failure.explained(status, value, &said);
        Some(Self {
            retry_after: waits::of_body(value, "", None).filter(|_| failure.retryable),
            ..failure
        })
    }

    /// Says what to do where the prompt was longer than the model's context window, and recognises a server that loads.
    fn explained(self, status: Option<u16>, value: &Value, said: &str) -> Self {
        let Some(too_long) = too_long::of(status, value, said) else {
            return Self {
                is_loading: self.retryable && is_loading(value, said),
                ..self
            };
        };
        let over = match (too_long.limit, too_long.sent) {
            (Some(limit), Some(sent)) if sent > limit => self.why.then(&[
                &"The prompt is longer than the model's context window by ",
                &(sent - limit),
                &" tokens.",
            ]),
            _ => self
                .why
                .then(&[&"The prompt is longer than the model's context window."]),
        };
        Self {
            retryable: false,
            too_long: Some(Box::new(too_long)),
            why: over.then(&[&TOO_LONG]),
            ..self
        }
    }
}

/// What to do about a prompt that is too long.
const TOO_LONG: &str = "Set the model's contextWindow at its provider, or lower it, and the oldest exchanges of a \
    conversation are left out before it is sent. Or begin a new conversation.";

/// Why a call ended at a time limit.
fn late(limit: Limit, failure: &Failure) -> failure::Failure {
    let (before, after, behind) = match limit {
        Limit::Connect(after) => (
            "The model provider did not accept a connection within ",
            after,
            " (SVC_MODEL_CONNECT_TIMEOUT_MS).",
        ),
        Limit::FirstByte(after) => (
            "The model provider did not begin to answer within ",
            after,
            " (serverOptions.timeouts.firstByteMs of the model provider, or else SVC_MODEL_FIRST_BYTE_TIMEOUT_MS).",
        ),
        Limit::Idle(after) => (
            "The model provider sent nothing for ",
            after,
            " in the middle of its answer (serverOptions.timeouts.idleMs of the model provider, or else \
             SVC_MODEL_IDLE_TIMEOUT_MS).",
        ),
        Limit::Total(after) => (
            "The call of the model provider did not end within ",
            after,
            " (serverOptions.timeouts.callMs of the model provider, or else SVC_MODEL_TOTAL_TIMEOUT_MS).",
        ),
    };
    let (amount, unit) = amount(after);
    let summary = Summary::of(&[&before, &amount, &unit, &behind]);
    match limit {
        // The host, and the way to it.
        Limit::Connect(_) => {
            failure::Failure::quoting(format!("{} {failure}", summary.as_str()), summary)
        }
        _ => summary.into(),
    }
}

/// A time as a number and its unit.
fn amount(time: Duration) -> (u64, &'static str) {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    match milliseconds % 1000 {
        0 => (milliseconds / 1000, " s"),
        _ => (milliseconds, " ms"),
    }
}

/// Whether an answer with this status may be another one later.
fn may_pass(status: u16, value: &Value, said: &str) -> bool {
    match status {
        408 | 409 | 424 | 425 | 498 => true,
        // The model wrote a call that the server could not read. It may write another one.
        400 => is_named(value, &["tool_use_failed", "output_parse_failed"]),
        429 => !is_lasting(value) && !is_unpaid(said),
        501 | 505 => false,
        500.. => true,
        _ => false,
    }
}

/// Whether a field says something.
fn is_said(field: &Value) -> bool {
    match field {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    }
}

fn has_error(value: &Value) -> bool {
    is_said(&value["error"])
}

/// Whether a part of an answer is an error.
fn is_error(value: &Value) -> bool {
    if has_error(value) || value["object"] == "error" {
        return true;
    }
    let base_status = &value["base_resp"]["status_code"];
    if base_status.as_i64().is_some_and(|status| status != 0) {
        return true;
    }
    // What has no field of an answer, and one of an error.
    let has = |name: &str| is_said(&value[name]);
    let is_answer = ["choices", "usage", "id"].iter().any(|name| has(name));
    let has_code = ["code", "status", "status_code", "statusCode", "error_code"]
        .iter()
        .any(|name| has(name) && value[name] != 0 && value[name] != 200);
    let has_words = ["message", "msg", "error_msg", "error_message"]
        .iter()
        .any(|name| has(name));
    !is_answer && (has("errors") || has("detail") || has_code && has_words)
}

/// The status in an error object.
fn error_status(value: &Value) -> Option<u16> {
    const NAMES: [&str; 6] = [
        "code",
        "status",
        "status_code",
        "statusCode",
        "http_code",
        "error_code",
    ];
    let fields = [&value["error"], value]
        .into_iter()
        .flat_map(|error| NAMES.map(|name| &error[name]));
    let mut numbers =
        fields.filter_map(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    let status = numbers.find(|status| (400..600).contains(status))?;
    u16::try_from(status).ok()
}

/// Whether the server says that it loads the model.
fn is_loading(value: &Value, said: &str) -> bool {
    const LOADS: [&str; 20] = [
        "loading model",
        "loading the model",
        "model loading",
        "is loading",
        "currently loading",
        "still loading",
        "being loaded",
        "not loaded yet",
        "not yet loaded",
        "warming up",
        "model is starting",
        "model is not ready",
        "model is initializing",
        "model to load",
        "initializing model",
        "initializing the model",
        "engine is initializing",
        "being downloaded",
        "is starting",
        "being started",
    ];
    const FAILS: [&str; 5] = ["error loading", "fail", "unable", "cannot", "could not"];
    let said = said.to_ascii_lowercase();
    let says = |list: &[&str]| list.iter().any(|one| said.contains(one));
    (says(&LOADS) || value["estimated_time"].is_number()) && !says(&FAILS)
}

/// Whether MiniMax's number of an error rules a retry out.
fn is_minimax_lasting(value: &Value) -> bool {
    let status = value["base_resp"]["status_code"].as_i64();
    // Unknown, a timeout, too many calls, an internal fault.
    status.is_some_and(|status| {
        status != 0 && !matches!(status, 1000..=1002 | 1013 | 1024 | 1033 | 1041)
    })
}

/// Whether a refusal for too many calls will stand until somebody pays.
fn is_unpaid(said: &str) -> bool {
    const UNPAID: [&str; 4] = [
        "insufficient balance",
        "insufficient credit",
        "out of credits",
        "insufficient quota",
    ];
    let said = said.to_ascii_lowercase();
    UNPAID.iter().any(|unpaid| said.contains(unpaid))
}

/// Whether an error's type or code rules a retry out.
fn is_lasting(value: &Value) -> bool {
    is_named(
        value,
        &[
            "invalid",
            "not_found",
            "authentication",
            "permission",
            "insufficient_quota",
            "exceeded_current_quota",
            "billing",
            "content_filter",
            "content_policy",
            "context_length",
        ],
    )
}

/// Whether an error's type or code has one of these parts.
fn is_named(value: &Value, parts: &[&str]) -> bool {
    let value = value.get(0).unwrap_or(value);
    let error = &value["error"];
    let names = [
        &error["type"],
        &error["code"],
        &error["status"],
        &value["type"],
        &value["code"],
    ];
    names.into_iter().filter_map(Value::as_str).any(|name| {
        let name = name.to_ascii_lowercase();
        parts.iter().any(|part| name.contains(part))
    })
}

/// A text without a byte order mark and blanks around it.
fn bare(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim()
}

/// A text with the end of a sentence; nothing stays nothing.
fn sentence(text: &str) -> String {
    match text.ends_with(['.', '!', '?', '…']) || text.is_empty() {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

/// The text on one line, without secrets, cut to length.
fn plain(words: &str, hidden: Hidden<'_>) -> String {
    let mut words = words.to_owned();
    let key = hidden.key.map(Secret::expose);
    let headers = hidden.headers.iter().map(|(_, value)| value.expose());
    // A short value is no secret, and may be part of every other word.
    let secrets = key
        .into_iter()
        .chain(headers.filter(|value| value.len() >= 8));
    let mut starts = Vec::new();
    for secret in secrets.filter(|secret| !secret.is_empty()) {
        words = words.replace(secret, "[redacted]");
        starts.extend(secret.get(..8).filter(|_| secret.len() >= 16));
    }
    let pieces = words.split(|c: char| c.is_whitespace() || c.is_control());
    let kept: Vec<&str> = pieces
        .filter(|piece| !piece.is_empty())
        // Some providers repeat the refused key with its middle masked.
        .map(
            |piece| match starts.iter().any(|start| piece.contains(start)) {
                true => "[redacted]",
                false => piece,
            },
        )
        .collect();
    let line = kept.join(" ");
    match line.char_indices().nth(MAX_WORDS_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
