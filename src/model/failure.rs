//! Why a model call failed, in words for a run's `failureMessage`, and whether a retry may help.
//!
//! A message holds at most 500 characters of the provider's text, on one line, without the API key.

use super::answer::Usage;
use crate::failure::{self, Part, Summary};
use crate::ids::{Clock, http_date};
use crate::outbound::{Failure, Kind};
use crate::secret::Secret;
use crate::text::trim_ows;
use serde_json::Value;
use std::time::Duration;

const MAX_WORDS_CHARS: usize = 500;
/// The longest wait that a provider may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

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
        }
    }

    pub(super) fn transport(failure: &Failure) -> Self {
        Self {
            cancelled: failure.kind() == Kind::Cancelled,
            ..Self::new(
                failure::Failure::quoting(
                    format!("The model provider could not be used: {failure}"),
                    "The model provider could not be used.",
                ),
                failure.is_transient(),
            )
        }
    }

    pub(super) fn web_page(status: u16) -> Self {
        Self {
            status: Some(status),
            ..Self::new(
                failure::Failure::of(&[
                    &"The model provider answered with a web page (HTTP ",
                    &status,
                    &"). Is its base URL right?",
                ]),
                status >= 500 || status == 429,
            )
        }
    }

    /// An answer whose status is not 2xx.
    pub(super) fn status(status: u16, body: &[u8], key: Option<&Secret>) -> Self {
        let text = String::from_utf8_lossy(body);
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if value.is_null() && text.trim_ascii_start().starts_with('<') {
            return Self::web_page(status);
        }
        let what = match status {
            300..=399 => "redirects, which are not followed",
            401 => "does not accept the API key",
            402 => "wants to be paid first",
            403 => "does not allow this call",
            404 => "does not know this path or this model",
            413 => "finds the request too large",
            429 => "is asked too much",
            500..=599 => "has a fault",
            _ => "refuses the request",
        };
        let words = if value.is_null() {
            text.into_owned()
        } else {
            words(&value)
        };
        let words = plain(&words, key);
        let colon = if words.is_empty() { "." } else { ": " };
        let lasting = is_lasting(&value);
        let parts: [&dyn Part; 5] = [&"The model provider ", &what, &" (HTTP ", &status, &")."];
        let said = format!("The model provider {what} (HTTP {status}){colon}{words}");
        let failure = Self {
            status: Some(status),
            ..Self::new(
                failure::Failure::quoting(said, Summary::of(&parts)),
                matches!(status, 408 | 409 | 425 | 500..) || (status == 429 && !lasting),
            )
        };
        failure.explained(&value)
    }

    /// An error object in an answer whose status is 200.
    pub(super) fn inside(value: &Value, key: Option<&Secret>) -> Option<Self> {
        let has_error = value.get("error").is_some_and(|error| !error.is_null());
        if !has_error && value["object"] != "error" {
            return None;
        }
        let words = plain(&words(value), key);
        let words = if words.is_empty() {
            "it does not say which".to_owned()
        } else {
            words
        };
        let status = error_status(value);
        let retryable = match status {
            Some(status) => {
                matches!(status, 408 | 409 | 425 | 500..) || (status == 429 && !is_lasting(value))
            }
            None => !is_lasting(value),
        };
        let failure = Self::new(
            failure::Failure::quoting(
                format!("The model provider reported an error inside its answer: {words}"),
                "The model provider reported an error inside its answer.",
            ),
            retryable,
        );
        Some(failure.explained(value))
    }

    /// Says what to do where the prompt was longer than the model's context window.
    fn explained(self, value: &Value) -> Self {
        if !is_too_long(value, &self.why.message) {
            return self;
        }
        Self {
            retryable: false,
            why: self.why.then(&[&TOO_LONG]),
            ..self
        }
    }
}

/// The status in an error object's code.
fn error_status(value: &Value) -> Option<u64> {
    let code = &value["error"]["code"];
    let code = if code.is_null() { &value["code"] } else { code };
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok());
    number.filter(|status| (400..600).contains(status))
}

/// What to do about a prompt that is too long.
const TOO_LONG: &str = "The prompt is longer than the model's context window. Set the model's contextWindow at its \
    provider, or lower it, and the oldest exchanges of a conversation are left out. Or begin a new conversation.";

/// Whether an error says that the prompt is too long, by its code or in the words that servers use.
fn is_too_long(value: &Value, message: &str) -> bool {
    const WORDS: [&str; 6] = [
        "context length",
        "context_length",
        "context window",
        "exceed_context_size",
        "context size",
        "prompt is too long",
    ];
    let error = &value["error"];
    let said = [
        error["code"].as_str(),
        error["type"].as_str(),
        value["code"].as_str(),
        Some(message),
    ];
    said.into_iter().flatten().any(|said| {
        let said = said.to_ascii_lowercase();
        WORDS.iter().any(|words| said.contains(words))
    })
}

/// Whether an error's type or code rules a retry out.
fn is_lasting(value: &Value) -> bool {
    const LASTING: [&str; 9] = [
        "invalid",
        "not_found",
        "authentication",
        "permission",
        "insufficient_quota",
        "billing",
        "content_filter",
        "content_policy",
        "context_length",
    ];
    let error = &value["error"];
    let names = [
        &error["type"],
        &error["code"],
        &value["type"],
        &value["code"],
    ];
    names.into_iter().filter_map(Value::as_str).any(|name| {
        LASTING
            .iter()
            .any(|lasting| name.to_ascii_lowercase().contains(lasting))
    })
}

/// The provider's message, in the shapes that servers use.
fn words(value: &Value) -> String {
    let error = &value["error"];
    let places = [
        &error["message"],
        error,
        &value["message"],
        &value["detail"],
        &value["detail"][0]["msg"],
    ];
    let found = places.into_iter().find_map(Value::as_str);
    found.map_or_else(
        || {
            if error.is_null() {
                String::new()
            } else {
                error.to_string()
            }
        },
        str::to_owned,
    )
}

/// The text on one line, without the key, cut to length.
fn plain(words: &str, key: Option<&Secret>) -> String {
    let mut words = words.to_owned();
    if let Some(key) = key.map(Secret::expose).filter(|key| !key.is_empty()) {
        words = words.replace(key, "[redacted]");
    }
    let key_start = key.and_then(|key| key.expose().get(..8).filter(|_| key.expose().len() >= 16));
    let pieces = words.split(|c: char| c.is_whitespace() || c.is_control());
    let kept: Vec<&str> = pieces
        .filter(|piece| !piece.is_empty())
        // Some providers repeat the refused key with its middle masked.
        .map(|piece| match key_start {
            Some(start) if piece.contains(start) => "[redacted]",
            _ => piece,
        })
        .collect();
    let line = kept.join(" ");
    match line.char_indices().nth(MAX_WORDS_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Parses `Retry-After`: seconds, or an HTTP date, which is compared with the answer's `Date` if
/// there is one (RFC 9110, sections 5.6.7 and 10.2.3).
pub(super) fn retry_after(clock: &Clock, value: &str, date: Option<&str>) -> Option<Duration> {
    let value = trim_ows(value);
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
            MAX_RETRY_AFTER
        }
        Err(_) => {
            let until = http_date(value)?;
            let now = date.and_then(http_date).unwrap_or_else(|| clock.now());
            Duration::try_from(until - now).unwrap_or(Duration::ZERO)
        }
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(status: u16, body: &str) -> ModelFailure {
        ModelFailure::status(status, body.as_bytes(), None)
    }

    #[test]
    fn each_status_says_what_it_is_and_whether_to_try_again() {
        for (code, says, retryable) in [
            (302, "not followed", false),
            (400, "refuses the request", false),
            (401, "does not accept the API key", false),
            (403, "does not allow", false),
            (404, "does not know", false),
            (408, "refuses", true),
            (413, "too large", false),
            (422, "refuses", false),
            (429, "asked too much", true),
            (500, "has a fault", true),
            (503, "has a fault", true),
            (529, "has a fault", true),
        ] {
            let failure = status(code, r#"{"error":{"message":"because"}}"#);
            assert!(
                failure.why.message.contains(says),
                "{}",
                failure.why.message
            );
            assert!(
                failure
                    .why
                    .message
                    .ends_with(&format!("(HTTP {code}): because"))
            );
            assert_eq!(failure.retryable, retryable, "{code}");
            assert_eq!(failure.status, Some(code));
        }
        let quota = r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#;
        assert!(!status(429, quota).retryable);
        assert!(status(502, "<html>").retryable && !status(404, " <!DOCTYPE").retryable);
    }

    #[test]
    fn a_prompt_that_is_too_long_is_explained_and_not_sent_again() {
        for (code, body) in [
            (
                400,
                r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
            ),
            (
                400,
                r#"{"error":{"type":"exceed_context_size_error","message":"x"}}"#,
            ),
            (
                500,
                r#"{"error":{"message":"the request exceeds the available context size"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            ),
        ] {
            let failure = status(code, body);
            assert!(failure.why.message.contains("contextWindow"), "{body}");
            assert!(!failure.retryable, "{body}");
        }
        let inside = json!({"error": {"message": "x", "code": "context_length_exceeded"}});
        let failure = ModelFailure::inside(&inside, None).unwrap();
        assert!(failure.why.message.contains("contextWindow") && !failure.retryable);
        assert!(!status(400, "words").why.message.contains("contextWindow"));
    }

    #[test]
    fn words_are_found_in_every_form() {
        for body in [
            json!({"error": {"message": "words"}}),
            json!({"error": "words"}),
            json!({"object": "error", "message": "words"}),
            json!({"detail": "words"}),
            json!({"detail": [{"msg": "words"}]}),
        ] {
            assert!(
                status(400, &body.to_string())
                    .why
                    .message
                    .ends_with(": words")
            );
        }
        assert!(status(400, "words").why.message.ends_with(": words"));
        assert!(status(400, "").why.message.ends_with("(HTTP 400)."));
    }

    #[test]
    fn words_are_one_bounded_line_without_the_key() {
        let key = Secret::new("sk-0123456789abcdef");
        let body = json!({"error": {"message":
            format!("bad\r\nkey {} or\u{0} sk-01234****cdef, {}", key.expose(), "é".repeat(600))}});
        let failure = ModelFailure::status(401, body.to_string().as_bytes(), Some(&key));
        assert!(
            failure
                .why
                .message
                .contains("bad key [redacted] or [redacted] é"),
            "{}",
            failure.why.message
        );
        assert!(failure.why.message.chars().count() < 600);
        assert!(!failure.why.message.contains("sk-"));
    }

    #[test]
    fn an_error_inside_is_seen() {
        let inside = |value: Value| ModelFailure::inside(&value, None);
        assert_eq!(inside(json!({"choices": [], "error": null})), None);
        for (value, retryable) in [
            (
                json!({"error": {"message": "x", "type": "server_error"}}),
                true,
            ),
            (json!({"error": {"message": "x", "code": 429}}), true),
            (json!({"error": {"message": "x", "code": "400"}}), false),
            (
                json!({"error": {"message": "x", "type": "invalid_request_error"}}),
                false,
            ),
            (json!({"error": "x"}), true),
            (
                json!({"object": "error", "message": "x", "code": 404}),
                false,
            ),
            (json!({"error": {}}), true),
        ] {
            let failure = inside(value.clone()).unwrap();
            assert_eq!(failure.retryable, retryable, "{value}");
        }
    }

    #[test]
    fn a_wait_is_read_in_seconds_and_as_a_date() {
        let clock = Clock::system();
        let read =
            |value: &str, date: Option<&str>| retry_after(&clock, value, date).map(|d| d.as_secs());
        assert_eq!(read(" 7 ", None), Some(7));
        assert_eq!(read("999999", None), Some(3600));
        assert_eq!(read("99999999999999999999999", None), Some(3600));
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(read("Sun, 06 Nov 1994 08:49:57 GMT", date), Some(20));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:57 GMT", None), Some(0));
        assert_eq!(read("Sun, 06 Nov 2094 08:49:57 GMT", None), Some(3600));
        for nonsense in ["", "soon", "-1", "1.5"] {
            assert_eq!(read(nonsense, None), None, "{nonsense}");
        }
    }
}
