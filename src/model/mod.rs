//! Model providers: one call of an OpenAI-compatible chat-completions API.
//!
//! A call is one attempt; what the server refuses of the request by name is left out of it and sent again (`quirks`). It
//! streams the answer, bounds all input, and turns each fault of a provider into a [`ModelFailure`] with words for a person.
//! Not here: retries, which are durable and the driver's; prices; whether a tool call's arguments fit the tool.

mod answer;
mod body;
mod failure;
mod messages;
mod names;
mod options;
mod probe;
mod quirks;
mod request;
pub(crate) mod sse;

pub use answer::{Completion, Finish, Usage};
pub use body::schema_instruction;
pub use failure::ModelFailure;
pub use options::{ProviderHeader, ProviderOptions, ProviderTimeouts, Quirk};
pub use probe::{Finding, Probe, Probed};
pub use quirks::{Memory, Quirks};
pub use request::{ChatRequest, Kept, Message, Parameters, Tool, ToolCall};

use crate::failure::Failure;
use crate::ids::Clock;
use crate::outbound::{Client, Method, Outgoing, Stream};
use crate::secret::Secret;
use answer::{Assembly, Unfit};
use names::Names;
use quirks::Server;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;
use uuid::Uuid;

/// The longest answer in bytes, as transferred.
const MAX_ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// How much of an error answer is read, and for how long.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const ERROR_TIME: Duration = Duration::from_secs(5);
/// How long a complete answer may take to end, so that its connection can be reused.
const FINISH_TIME: Duration = Duration::from_millis(20);

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

/// Calls a model once. `on_text` gets the text as it arrives; the whole answer is returned.
///
/// The client's policy, deadlines and cancel handle apply. The clock is for a `Retry-After` date and for how long a refusal is
/// remembered.
pub fn chat(
    clock: &Clock,
    client: &mut Client,
    provider: &Provider,
    request: &ChatRequest,
    on_text: &mut dyn FnMut(&str),
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
        let mut say = |text: &str| {
            has_text = true;
            on_text(text);
        };
        let body = request.body(&names, &quirks);
        let traceparent = request.traceparent.as_deref();
        let refused = match attempt(clock, client, provider, (&body, traceparent), &mut say) {
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
        let Some(quirk) = quirk else {
            return Err(refused.failure);
        };
        quirks.insert(quirk);
        learned.insert(quirk);
    }
}

/// A failed request, with what the server said.
struct Refused {
    failure: ModelFailure,
    words: String,
}

impl From<ModelFailure> for Refused {
    fn from(failure: ModelFailure) -> Self {
        let words = match failure.status {
            Some(_) => quirks::words(failure.why.message.as_bytes()),
            None => String::new(),
        };
        Self { failure, words }
    }
}

/// Sends one request.
fn attempt(
    clock: &Clock,
    client: &mut Client,
    provider: &Provider,
    asked: (&Value, Option<&str>),
    on_text: &mut dyn FnMut(&str),
) -> Result<Completion, Refused> {
    let began = Instant::now();
    let key = provider.api_key.as_ref();
    let stream = open(client, provider, asked)?;
    if !(200..300).contains(&stream.status) {
        return Err(refusal(clock, stream, key));
    }
    let status = stream.status;
    let mut reading = Reading {
        shape: Shape::Unknown(Vec::new()),
        assembly: Assembly::default(),
        key,
        status,
        first_byte_at: None,
    };
    let outcome = reading.read(stream, on_text);
    let usage = reading.assembly.usage().map(Box::new);
    let first_byte = reading.first_byte_at.map(|at| at - began);
    let completed = outcome.and_then(|()| {
        let unfit = |unfit| ModelFailure::unfit(&unfit);
        reading.assembly.complete().map_err(unfit)
    });
    let completed = completed.map(|completion| Completion {
        first_byte,
        ..completion
    });
    let failed = |failure| ModelFailure {
        status: Some(status),
        usage,
        ..failure
    };
    completed.map_err(|failure| failed(failure).into())
}

fn open(
    client: &mut Client,
    provider: &Provider,
    (body, traceparent): (&Value, Option<&str>),
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
    if let Some(traceparent) = traceparent {
        headers.push(("traceparent", traceparent));
    }
    client
        .open(&Outgoing {
            method: Method::POST,
            url: &provider.url(&["chat", "completions"])?,
            headers: &headers,
            body: body.to_string().as_bytes(),
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

/// Explains an answer whose status is not 2xx.
fn refusal(clock: &Clock, stream: Stream, key: Option<&Secret>) -> Refused {
    let date = stream.header("date");
    let retry_after = stream
        .header("retry-after")
        .and_then(|value| failure::retry_after(clock, value, date));
    let status = stream.status;
    let body = stream.excerpt(MAX_ERROR_BYTES, ERROR_TIME);
    let failure = ModelFailure {
        retry_after,
        ..ModelFailure::status(status, &body, key)
    };
    Refused {
        failure,
        words: quirks::words(&body),
    }
}

/// An answer while it is read.
struct Reading<'a> {
    shape: Shape,
    assembly: Assembly,
    key: Option<&'a Secret>,
    status: u16,
    first_byte_at: Option<Instant>,
}

/// The kind of body. Its first byte decides, whatever its content type claims.
enum Shape {
    Unknown(Vec<u8>),
    Events(sse::Parser),
    Json(Vec<u8>),
}

impl Reading<'_> {
    fn read(
        &mut self,
        mut stream: Stream,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), ModelFailure> {
        let mut buffer = [0; 8 * 1024];
        loop {
            let amount = match stream.read(&mut buffer) {
                Ok(amount) => amount,
                // An answer that lost only its final usage is still complete.
                Err(failure) if self.assembly.is_finished() && failure.is_transient() => {
                    return Ok(());
                }
                Err(failure) => return Err(ModelFailure::transport(&failure)),
            };
            self.first_byte_at.get_or_insert_with(Instant::now);
            if amount == 0 {
                return self.end(on_text);
            }
            if self.take(&buffer[..amount], on_text)? {
                stream.finish(FINISH_TIME);
                return Ok(());
            }
        }
    }

    /// Adds bytes; `true` once the answer is complete.
    fn take(&mut self, bytes: &[u8], on_text: &mut dyn FnMut(&str)) -> Result<bool, ModelFailure> {
        match &mut self.shape {
            Shape::Json(body) => body.extend_from_slice(bytes),
            Shape::Events(parser) => {
                let events = parser.push(bytes).map_err(|sse::TooLong| {
                    ModelFailure::unfit(&Unfit::TooLarge("one of its events is longer than 4 MiB"))
                })?;
                for event in events {
                    if self.take_event(&event, on_text)? {
                        return Ok(true);
                    }
                }
            }
            Shape::Unknown(start) => {
                start.extend_from_slice(bytes);
                let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
                let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
                let shape = match first {
                    None if start.len() > MAX_ERROR_BYTES => {
                        let unfit = Unfit::Malformed("it begins with nothing but blanks");
                        return Err(ModelFailure::unfit(&unfit));
                    }
                    None => return Ok(false),
                    // A byte order mark may arrive in pieces.
                    Some(0xef) if text.len() < 3 => return Ok(false),
                    Some(b'<') => return Err(ModelFailure::web_page(self.status)),
                    Some(b'{' | b'[' | b'"') => Shape::Json(Vec::new()),
                    Some(_) => Shape::Events(sse::Parser::default()),
                };
                let text = text.to_vec();
                self.shape = shape;
                return self.take(&text, on_text);
            }
        }
        Ok(false)
    }

    fn take_event(
        &mut self,
        event: &sse::Event,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<bool, ModelFailure> {
        if event.data.trim_ascii() == "[DONE]" {
            self.assembly.done();
            return Ok(true);
        }
        if event.data.trim_ascii().is_empty() {
            return Ok(false);
        }
        let value: Value = match serde_json::from_str(&event.data) {
            Ok(value) => value,
            Err(_) if event.name == "error" => serde_json::json!({"error": event.data}),
            Err(_) => {
                let unfit = Unfit::Malformed("one of its events is not JSON");
                return Err(ModelFailure::unfit(&unfit));
            }
        };
        self.take_value(&value, on_text)?;
        Ok(false)
    }

    fn take_value(
        &mut self,
        value: &Value,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<(), ModelFailure> {
        if let Some(failure) = ModelFailure::inside(value, self.key) {
            return Err(failure);
        }
        let taken = self.assembly.take(value, on_text);
        taken.map_err(|unfit| ModelFailure::unfit(&unfit))
    }

    /// Ends the body.
    fn end(&mut self, on_text: &mut dyn FnMut(&str)) -> Result<(), ModelFailure> {
        let Shape::Json(body) = &self.shape else {
            return Ok(());
        };
        let value: Value = serde_json::from_slice(body)
            .map_err(|_| ModelFailure::unfit(&Unfit::Malformed("it is not valid JSON")))?;
        self.take_value(&value, on_text)
    }
}

#[cfg(test)]
mod tests;
