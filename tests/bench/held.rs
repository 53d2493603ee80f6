//! A model provider that keeps each run waiting until the benchmark says what its model answers, and a tool that answers
//! at once. A run is known by its number, which is the message that it was started with.

use super::Outcome;
use super::loopback::{Answered, Loopback, answer};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, body::Incoming};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The tool's name.
pub(crate) const TOOL: &str = "note";
/// How long a run may take to ask its model.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a model says.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// That the tool is to be called: the run asks again after it.
    Tool,
    /// Its last word.
    Text,
}

/// The running provider. It ends with this value.
pub(crate) struct Held {
    server: Loopback,
    waiting: Arc<Waiting>,
    /// Numbers the calls of the tool.
    calls: AtomicU64,
}

/// The runs that wait for their model.
#[derive(Default)]
struct Waiting {
    runs: Mutex<HashMap<usize, oneshot::Sender<Bytes>>>,
    came: Condvar,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, oneshot::Sender<Bytes>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    pub(crate) fn start() -> Outcome<Self> {
        let waiting = Arc::new(Waiting::default());
        let asked = Arc::clone(&waiting);
        Ok(Self {
            server: Loopback::start("held", move |request| answered(request, Arc::clone(&asked)))?,
            waiting,
            calls: AtomicU64::new(0),
        })
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.server.address)
    }

    pub(crate) fn tool_url(&self) -> String {
        format!("http://{}/tool", self.server.address)
    }

    /// Waits until all of these runs wait for their model.
    pub(crate) fn await_all(&self, numbers: impl IntoIterator<Item = usize>) -> Outcome {
        for number in numbers {
            drop(self.await_one(number)?);
        }
        Ok(())
    }

    fn await_one(
        &self,
        number: usize,
    ) -> Outcome<MutexGuard<'_, HashMap<usize, oneshot::Sender<Bytes>>>> {
        let deadline = Instant::now() + PATIENCE;
        let mut runs = self.waiting.lock();
        while !runs.contains_key(&number) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("run {number} did not ask its model").into());
            }
            let waited = self.waiting.came.wait_timeout(runs, left);
            runs = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(runs)
    }

    /// Answers a run's model call, as soon as it makes one.
    pub(crate) fn answer(&self, number: usize, answer: Answer) -> Outcome {
        let call = self.await_one(number)?.remove(&number);
        let body = match answer {
            Answer::Tool => self.tool_call(),
            Answer::Text => stream(&json!({"role": "assistant", "content": "Done."}), "stop"),
        };
        let sent = call.is_some_and(|call| call.send(body).is_ok());
        sent.then_some(())
            .ok_or_else(|| format!("run {number} gave its model up").into())
    }

    fn tool_call(&self) -> Bytes {
        let id = format!("call_{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let call = json!({"index": 0, "id": id, "type": "function",
            "function": {"name": TOOL, "arguments": "{}"}});
        let delta = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        stream(&delta, "tool_calls")
    }
}

/// A streamed answer.
fn stream(delta: &Value, finish: &str) -> Bytes {
    let chunk = |delta: &Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "m",
            "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let (said, end) = (chunk(delta, None), chunk(&json!({}), Some(finish)));
    Bytes::from(format!("{said}{end}data: [DONE]\n\n"))
}

async fn answered(request: Request<Incoming>, waiting: Arc<Waiting>) -> Answered {
    let is_tool = request.uri().path() == "/tool";
    let body = request.into_body().collect().await?.to_bytes();
    Ok(if is_tool {
        answer("text/plain", Bytes::from_static(b"noted"))
    } else {
        answer("text/event-stream", said(&body, &waiting).await)
    })
}

/// What the run's model says once it may; nothing if it may no more.
async fn said(request: &[u8], waiting: &Waiting) -> Bytes {
    let Some(number) = number(request) else {
        return Bytes::new();
    };
    let (sender, answer) = oneshot::channel();
    waiting.lock().insert(number, sender);
    waiting.came.notify_all();
    answer.await.unwrap_or_default()
}

/// The number of the run that asks.
fn number(request: &[u8]) -> Option<usize> {
    let request: Value = serde_json::from_slice(request).ok()?;
    let mut messages = request["messages"].as_array()?.iter();
    let user = messages.find(|message| message["role"] == "user")?;
    user["content"].as_str()?.parse().ok()
}
