//! Model providers: one call of an OpenAI-compatible chat-completions API.
//!
//! A call is one attempt; what the server refuses of the request by name is left out of it and sent again (`quirks`). It
//! streams the answer, bounds all input, and turns each fault of a provider into a [`ModelFailure`] with words for a person.
//! Not here: retries, which are durable and the driver's; prices; whether a tool call's arguments fit the tool.

mod answer;
mod body;
mod failure;
mod json;
mod messages;
mod names;
pub mod options;
mod probe;
mod quirks;
mod reading;
mod request;
pub(crate) mod sse;

pub use answer::{Completion, Finish, Piece, Usage};
pub use body::schema_instruction;
pub use failure::{ModelFailure, TooLong};
pub use options::{ProviderHeader, ProviderOptions, ProviderTimeouts, Quirk};
pub use probe::{Finding, Probe, Probed};
pub use quirks::{Memory, Quirks};
pub use request::{ChatRequest, Kept, Message, Parameters, Tool, ToolCall};

use crate::failure::Failure;
use crate::ids::Clock;
use crate::outbound::{Client, Method, Outgoing, Stream};
use crate::secret::Secret;
use failure::Hidden;
use names::Names;
use quirks::Server;
use reading::Reading;
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use url::Url;
use uuid::Uuid;

/// The longest answer in bytes, as transferred. What is kept of it has smaller bounds: a token of an event stream takes some hundred
/// bytes.
const MAX_ANSWER_BYTES: u64 = 256 * 1024 * 1024;

/// The provider to call.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The provider's id, by which is remembered what its server refuses.
    pub id: Uuid,
    /// The API's base URL, which usually ends in `/v1`; `/chat/completions` is appended.
    pub base_url: String,
    /// The key, sent as a bearer token unless the options name its header.
    pub api_key: Option<Secret>,
    /// Headers of each request beside those of the API, with their values.
    pub headers: Vec<(String, Secret)>,
    /// How it is asked.
    pub options: ProviderOptions,
    /// What the servers of providers refused.
    pub memory: Arc<Memory>,
}

/// Calls a model once. `on_piece` gets text and reasoning as they arrive; the whole answer is returned.
///
/// The client's policy, deadlines and cancel handle apply. The clock is for a `Retry-After` date and for how long a refusal is
/// remembered.
pub fn chat(
    clock: &Clock,
    client: &mut Client,
    provider: &Provider,
    request: &ChatRequest,
    on_piece: &mut dyn FnMut(Piece<'_>),
) -> Result<Completion, ModelFailure> {
    if let Some(name) = request.parameters.reserved_extra() {
        let said = format!("The model parameter {name} cannot be set through extra.");
        let why = Failure::quoting(said, "A model parameter cannot be set through extra.");
        return Err(ModelFailure::new(why, false));
    }
    let server = Server {
        provider_id: provider.id,
        base_url: provider.base_url.clone(),
        model: request.model.clone(),
    };
    let names = Names::of(&request.tools);
    let mut quirks = provider.memory.of(clock, &server);
    quirks.extend(&provider.options.quirks);
    let mut learned = Quirks::new();
    loop {
        let mut has_text = false;
        let mut on_piece = |piece: Piece<'_>| {
            has_text = true;
            on_piece(piece);
        };
        let body = request.body(&names, &quirks);
        let asked = Asked {
            body: &body,
            traceparent: request.traceparent.as_deref(),
            tools: request
                .tools
                .iter()
                .map(|tool| names.sent(&tool.name))
                .collect(),
        };
        let refused = match attempt(clock, client, provider, asked, &mut on_piece) {
            Ok(mut completion) => {
                names.back(&mut completion.tool_calls);
                provider.memory.add(clock, server, &learned);
                return Ok(completion);
            }
            Err(refused) => refused,
        };
        let status = refused.failure.status;
        let quirk = quirks::of_refusal(status, &refused.words, (request, &body), &quirks)
            .filter(|_| !has_text && learned.len() < quirks::LEARNED_MOST);
        match quirk {
            Some(quirk) => {
                quirks.insert(quirk);
                learned.insert(quirk);
            }
            // llama-cpp-python says what is wrong with a request only where it does not stream. It closes the connection a moment
            // after its empty answer.
            None if refused.failure.is_silent && !has_text && quirks.insert(Quirk::NoStreaming) => {
                client.reconnect();
            }
            None => return Err(*refused.failure),
        }
    }
}

/// Reads bytes as the body of an answer, at once and in pieces of `size` bytes: what the fuzz target calls.
///
/// # Panics
/// The reader does not keep what it promises.
#[cfg(feature = "fuzz")]
pub fn check_any_bytes(body: &[u8], size: usize) {
    reading::any_bytes::check(body, size);
}

/// A failed request, with what the server said.
struct Refused {
    failure: Box<ModelFailure>,
    words: String,
}

impl From<ModelFailure> for Refused {
    fn from(failure: ModelFailure) -> Self {
        let words = match failure.status {
            Some(_) => quirks::words(failure.why.message.as_bytes()),
            None => String::new(),
        };
        Self {
            failure: Box::new(failure),
            words,
        }
    }
}

/// One request.
struct Asked<'a> {
    body: &'a Value,
    traceparent: Option<&'a str>,
    /// The names of its tools, as they are sent.
    tools: Vec<String>,
}

/// Sends one request.
fn attempt(
    clock: &Clock,
    client: &mut Client,
    provider: &Provider,
    asked: Asked<'_>,
    on_piece: &mut dyn FnMut(Piece<'_>),
) -> Result<Completion, Refused> {
    let began = Instant::now();
    let hidden = Hidden {
        key: provider.api_key.as_ref(),
        headers: &provider.headers,
    };
    let stream = open(client, provider, &asked)?;
    if !(200..300).contains(&stream.status) {
        let (failure, body) = ModelFailure::refusal(clock, stream, hidden);
        return Err(Refused {
            failure: Box::new(failure),
            words: quirks::words(&body),
        });
    }
    let status = stream.status;
    let (outcome, usage, first_byte_at) =
        Reading::new(hidden, status, asked.tools).whole(stream, on_piece);
    let completed = outcome.map(|completion| Completion {
        first_byte: first_byte_at.map(|at| at - began),
        ..completion
    });
    let failed = |failure| ModelFailure {
        status: Some(status),
        usage: usage.map(Box::new),
        ..failure
    };
    completed.map_err(|failure| failed(failure).into())
}

fn open(
    client: &mut Client,
    provider: &Provider,
    asked: &Asked<'_>,
) -> Result<Stream, ModelFailure> {
    let own = provider.own_headers();
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "text/event-stream, application/json"),
    ];
    let own = own
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()));
    headers.extend(own);
    if let Some(traceparent) = asked.traceparent {
        headers.push(("traceparent", traceparent));
    }
    client
        .open(&Outgoing {
            method: Method::POST,
            url: &provider.url(&["chat", "completions"])?,
            headers: &headers,
            body: asked.body.to_string().as_bytes(),
            cap: MAX_ANSWER_BYTES,
        })
        .map_err(|failure| ModelFailure::transport(&failure))
}

impl Provider {
    /// Its key and the headers of its own.
    fn own_headers(&self) -> Vec<(String, Secret)> {
        let key = self.api_key.as_ref().map(|key| {
            let bearer = || Secret::new(format!("Bearer {}", key.expose()));
            match &self.options.key_header {
                Some(name) => (name.clone(), key.clone()),
                None => ("authorization".to_owned(), bearer()),
            }
        });
        key.into_iter()
            .chain(self.headers.iter().cloned())
            .collect()
    }

    /// The URL of a route: its path after the base URL's. The base URL's query is kept.
    fn url(&self, route: &[&str]) -> Result<String, ModelFailure> {
        let bad = || ModelFailure::new("The model provider's base URL is not valid.", false);
        let mut url = Url::parse(&self.base_url).map_err(|_| bad())?;
        url.path_segments_mut()
            .map_err(|()| bad())?
            .pop_if_empty()
            .extend(route);
        if let Some(version) = &self.options.api_version {
            url.query_pairs_mut().append_pair("api-version", version);
        }
        Ok(url.into())
    }
}

#[cfg(test)]
mod tests;
