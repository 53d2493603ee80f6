//! What a server refuses of a request: recognised in its words, left out of the next try, and remembered.
//!
//! A refusal is recognised only if the request had what it names, and in words that refuse the field itself and not its value.
//! The memory is one process's, for a provider's address and model; a refusal that is forgotten costs one request. Not here:
//! how a request looks without what is refused (`body`, `messages`), and refusals that nothing can be left out for (`failure`).

use super::options::Quirk;
use super::request::{ChatRequest, Message};
use crate::ids::Clock;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// What a server does not take.
pub type Quirks = BTreeSet<Quirk>;

/// How many refusals one call learns from.
pub(super) const LEARNED_MOST: usize = 4;
/// How long a refusal is remembered. Servers change.
const REMEMBERED: Duration = Duration::hours(24);
/// Providers and models that are remembered at once.
const REMEMBERED_MOST: usize = 1024;
/// How much of an error is searched.
const TEXTS_MOST: usize = 200;
const BYTES_MOST: usize = 16 * 1024;
const DEPTH_MOST: usize = 8;

/// A server and a model, as a memory knows them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) provider_id: Uuid,
    /// A provider's row may be given another one.
    pub(super) base_url: String,
    pub(super) model: String,
}

/// What the servers of this process's providers refused.
#[derive(Debug)]
pub struct Memory {
    log: slog::Logger,
    known: Mutex<HashMap<Server, (Quirks, OffsetDateTime)>>,
}

impl Memory {
    /// Remembers nothing yet.
    pub fn new(log: slog::Logger) -> Self {
        Self {
            log,
            known: Mutex::default(),
        }
    }

    pub(super) fn of(&self, clock: &Clock, server: &Server) -> Quirks {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(server);
        let fresh = known.filter(|(_, since)| clock.now() - *since < REMEMBERED);
        fresh.map(|(quirks, _)| quirks.clone()).unwrap_or_default()
    }

    /// Adds what a server refused before it answered.
    pub(super) fn add(&self, clock: &Clock, server: Server, learned: &Quirks) {
        if learned.is_empty() {
            return;
        }
        for quirk in learned {
            slog::info!(self.log, "A model server refused a part of a request, which is left out from now on";
                "modelProviderId" => %server.provider_id, "model" => &server.model, "quirk" => quirk.name());
        }
        let now = clock.now();
        let quirks = &self.of(clock, &server) | learned;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MOST && !known.contains_key(&server) {
            known.retain(|_, (_, since)| now - *since < REMEMBERED);
            let oldest = known.iter().min_by_key(|(_, (_, since))| *since);
            let oldest = oldest.map(|(server, _)| server.clone());
            if let Some(oldest) = oldest.filter(|_| known.len() >= REMEMBERED_MOST) {
                known.remove(&oldest);
            }
        }
        known.insert(server, (quirks, now));
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(slog::Logger::root(slog::Discard, slog::o!()))
    }
}

impl Quirk {
    /// As a provider's row has it.
    pub fn name(self) -> String {
        json!(self).as_str().unwrap_or_default().to_owned()
    }
}

/// The parameters that are left out where a server refuses them.
const PARAMETERS: [(Quirk, &[&str]); 7] = [
    (
        Quirk::NoParallelToolCalls,
        &["parallel_tool_calls", "parallel tool calls"],
    ),
    (Quirk::NoToolChoice, &["tool_choice", "tool choice"]),
    // Some servers refuse it beside a temperature.
    (Quirk::NoTopP, &["top_p"]),
    (Quirk::NoTemperature, &["temperature"]),
    (
        Quirk::NoPenalties,
        &[
            "presence_penalty",
            "frequency_penalty",
            "presencepenalty",
            "frequencypenalty",
            "presence penalty",
            "frequency penalty",
        ],
    ),
    (Quirk::NoSeed, &["seed"]),
    (
        Quirk::NoReasoningEffort,
        &["reasoning_effort", "reasoning effort", "reasoningeffort"],
    ),
];

/// What of a request to leave out after a refusal. `words`: of [`words`].
pub(super) fn of_refusal(
    status: Option<u16>,
    words: &str,
    (request, body): (&ChatRequest, &Value),
    active: &Quirks,
) -> Option<Quirk> {
    let said = Said(words);
    let may_refuse = match status {
        Some(400 | 403 | 404 | 405 | 415 | 422) => true,
        // A fault, or an error inside an answer, may be of any kind.
        None | Some(200 | 500 | 501) => said.is_clear(),
        Some(_) => false,
    };
    if !may_refuse {
        return None;
    }
    let extra = &request.parameters.extra;
    let sent = |name: &str| body.get(name).is_some() && !extra.contains_key(name);
    let parameter = PARAMETERS.iter().find(|(quirk, names)| {
        let is_sent = match quirk {
            Quirk::NoPenalties => sent("presence_penalty") || sent("frequency_penalty"),
            _ => sent(names[0]),
        };
        is_sent && said.names(names) && said.refuses()
    });
    let found = [
        sent("stream_options")
            && said.names(&["stream_options", "include_usage"])
            && said.refuses(),
        sent("max_tokens")
            && (said.names(&["max_completion_tokens"])
                || said.names(&["max_tokens"]) && said.refuses()),
        is_strict(body) && said.names(&["strict"]) && said.refuses(),
        has_null_content(body) && said.refuses_null(),
        said.names_kept(request) && said.refuses(),
        has_system(body) && said.refuses_system(),
    ];
    let quirks = [
        Quirk::NoStreamOptions,
        Quirk::MaxCompletionTokens,
        Quirk::NoStrict,
        Quirk::NoNullContent,
        Quirk::NoKept,
        Quirk::NoSystemRole,
    ];
    let named = quirks.into_iter().zip(found).find(|(_, found)| *found);
    let format = || {
        let kind = body["response_format"]["type"].as_str();
        let is_own = request.output_schema.is_some() && said.names_format();
        match kind.filter(|_| is_own) {
            Some("json_schema") => Some(Quirk::NoJsonSchema),
            Some(_) => Some(Quirk::NoResponseFormat),
            None => None,
        }
    };
    let streaming = || {
        let is_refused = body["stream"] == true && said.refuses_streaming();
        is_refused.then_some(Quirk::NoStreaming)
    };
    let quirk = named.map(|(quirk, _)| quirk);
    let quirk = quirk.or(parameter.map(|(quirk, _)| *quirk));
    let quirk = quirk.or_else(format).or_else(streaming);
    quirk.filter(|quirk| !active.contains(quirk))
}

fn has_null_content(body: &Value) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages
        .into_iter()
        .any(|message| message["content"].is_null())
}

fn has_system(body: &Value) -> bool {
    body["messages"][0]["role"] == "system"
}

fn is_strict(body: &Value) -> bool {
    !body["response_format"]["json_schema"]["strict"].is_null()
}

/// What a server says, in lower case.
struct Said<'a>(&'a str);

impl Said<'_> {
    fn has(&self, any: &[&str]) -> bool {
        any.iter().any(|words| self.0.contains(words))
    }

    /// Whether it can be nothing but a refusal.
    fn is_clear(&self) -> bool {
        const CLEAR: [&str; 9] = [
            "support",
            "not implemented",
            "not enabled",
            "not permitted",
            "unrecognized",
            "unknown",
            "alternate",
            "nonetype",
            "valid string",
        ];
        self.has(&CLEAR)
    }

    /// Whether one of these stands in it as a whole word.
    fn names(&self, any: &[&str]) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        any.iter().any(|name| {
            self.0.match_indices(name).any(|(at, _)| {
                let before = self.0[..at].chars().next_back();
                let after = self.0[at + name.len()..].chars().next();
                !before.is_some_and(is_part) && !after.is_some_and(is_part)
            })
        })
    }

    /// Whether it refuses what it names, and not a value of it.
    fn refuses(&self) -> bool {
        const REFUSES: [&str; 30] = [
            "unsupported",
            "not support",
            "n't support",
            "unrecognized",
            "unrecognised",
            "not recognized",
            "unknown",
            "unexpected",
            "not permitted",
            "not allowed",
            "isn't allowed",
            "disallowed",
            "forbidden",
            "unavailable",
            "not available",
            "not implemented",
            "not enabled",
            "disabled",
            "deprecated",
            "incompatible",
            "not compatible",
            "only the default",
            "is allowed for this model",
            "cannot be used",
            "cannot both",
            "can't be used",
            "not accept",
            "no such",
            "additional properties",
            "extra",
        ];
        const VALUE: [&str; 14] = [
            "between",
            "maximum value",
            "minimum value",
            "less than",
            "greater than",
            "must be at",
            "out of range",
            "too large",
            "too small",
            "too high",
            "too low",
            "<=",
            ">=",
            "supported values",
        ];
        self.has(&REFUSES) && !self.has(&VALUE)
    }

    fn refuses_null(&self) -> bool {
        const NOTHING: [&str; 9] = [
            "string", "str", "null", "none", "nonetype", "nil", "required", "missing", "empty",
        ];
        self.has(&["nonetype"]) || self.names(&["content", "contents"]) && self.names(&NOTHING)
    }

    fn refuses_system(&self) -> bool {
        const PLACES: [&str; 8] = [
            "role",
            "roles",
            "message",
            "messages",
            "instruction",
            "instructions",
            "prompt",
            "prompts",
        ];
        const WORDS: [&str; 6] = [
            "only user and assistant",
            "must alternate",
            "should be with user",
            "must be user",
            "must be a user",
            "must be from user",
        ];
        let names_system = self.names(&["system", "developer"]);
        self.names(&PLACES) && (self.has(&WORDS) || names_system && self.refuses())
    }

    fn names_format(&self) -> bool {
        const FORMAT: [&str; 14] = [
            "response_format",
            "response format",
            "responseformat",
            "json_schema",
            "json schema",
            "json_object",
            "json mode",
            "json output",
            "structured output",
            "response mime type",
            "response_mime_type",
            "response_schema",
            "guided",
            "grammar",
        ];
        self.has(&FORMAT)
    }

    fn refuses_streaming(&self) -> bool {
        const WORDS: [&str; 13] = [
            "not support",
            "n't support",
            "unsupported",
            "verified to stream",
            "not available",
            "unavailable",
            "not allowed",
            "not implemented",
            "not enabled",
            "disabled",
            "cannot stream",
            "must be false",
            "only non-stream",
        ];
        self.names(&["stream", "streaming", "streamed"]) && self.has(&WORDS)
    }

    /// Whether it names a field that the server is handed back.
    fn names_kept(&self, request: &ChatRequest) -> bool {
        let kept = request.messages.iter().filter_map(Message::kept);
        let mut names = kept.flat_map(|kept| {
            let calls = kept.calls.iter().flat_map(|call| call.keys());
            kept.message.keys().chain(calls)
        });
        names.any(|name| self.names(&[name.to_ascii_lowercase().as_str()]))
    }
}

/// What an error answer says, in lower case: its texts, but for those that repeat the request.
pub(super) fn words(body: &[u8]) -> String {
    let (mut words, mut left) = (String::new(), TEXTS_MOST);
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => gather(&value, 0, &mut left, &mut words),
        Err(_) => {
            let text = Value::String(String::from_utf8_lossy(body).into_owned());
            gather(&text, 0, &mut left, &mut words);
        }
    }
    crate::text::beginning(&words, BYTES_MOST).to_ascii_lowercase()
}

fn gather(value: &Value, depth: usize, left: &mut usize, words: &mut String) {
    const REPEATED: [&str; 7] = [
        "input",
        "body",
        "request",
        "ctx",
        "url",
        "failed_generation",
        "messages",
    ];
    if depth > DEPTH_MOST || *left == 0 || words.len() > BYTES_MOST {
        return;
    }
    *left -= 1;
    match value {
        Value::String(text) => {
            // Rust's servers list what they know behind what they do not.
            let said = text.split("expected one of `").next().unwrap_or(text);
            words.push_str(crate::text::beginning(said, BYTES_MOST));
            words.push('\n');
        }
        Value::Array(items) => {
            for item in items.iter().take(TEXTS_MOST) {
                gather(item, depth + 1, left, words);
            }
        }
        Value::Object(fields) => {
            let own = fields
                .iter()
                .filter(|(name, _)| !REPEATED.contains(&name.as_str()));
            for (_, field) in own.take(TEXTS_MOST) {
                gather(field, depth + 1, left, words);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
