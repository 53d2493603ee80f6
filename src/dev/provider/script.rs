//! What the provider is to answer, and what it was asked.

use super::answer::Numbers;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Requests kept for [`Provider::requests`], newest last.
pub(super) const MAX_RECORDED: usize = 256;

/// How the provider answers.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Answers for the first requests, in order.
    pub queue: Vec<Step>,
    /// The answer once the queue is empty.
    pub then: Step,
}

/// One answer and its pace.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// The content.
    pub reply: Reply,
    /// Delay before the first byte.
    pub before: Duration,
    /// Delay before each further event of a stream.
    pub between: Duration,
    /// A fault after this many events of a stream, in place of its end.
    pub fault: Option<(usize, Fault)>,
}

/// The content of an answer.
#[derive(Debug, Clone, Default)]
pub enum Reply {
    /// A fitting answer to the conversation, with a tool call if it asks for one.
    #[default]
    Scripted,
    /// This text.
    Text(String),
    /// Calls of tools: names and arguments.
    ToolCalls(Vec<(String, Value)>),
    /// A stream of these `data` payloads, unchanged.
    Events(Vec<String>),
    /// A plain HTTP answer: an error, a web page, anything.
    Plain {
        /// The HTTP status.
        status: u16,
        /// Headers, `content-type` included.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
}

/// A fault of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed.
    Cut,
    /// Nothing more comes, and the connection stays open.
    Hang,
}

impl Step {
    /// A step with this content and no delay.
    pub fn new(reply: Reply) -> Self {
        Self {
            reply,
            ..Self::default()
        }
    }

    /// A text without delay.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Reply::Text(text.into()))
    }

    /// A plain JSON answer.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::plain(status, "application/json", body.to_string())
    }

    /// A plain answer of any type.
    pub fn plain(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        Self::new(Reply::Plain {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.into(),
        })
    }

    /// Adds a header; only a plain answer has headers to add to.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Reply::Plain { headers, .. } = &mut self.reply {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Adds a delay before the first byte.
    #[must_use]
    pub fn before(mut self, wait: Duration) -> Self {
        self.before = wait;
        self
    }

    /// Adds a delay before each further event.
    #[must_use]
    pub fn between(mut self, wait: Duration) -> Self {
        self.between = wait;
        self
    }

    /// Adds a fault after this many events; 0 is before the head of the answer.
    #[must_use]
    pub fn fault(mut self, after: usize, fault: Fault) -> Self {
        self.fault = Some((after, fault));
        self
    }
}

/// A request that was answered.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Header names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, if it was JSON.
    pub body: Value,
}

pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Disconnects when the server stops.
    pub(super) stopped: Receiver<()>,
    pub(super) numbers: Numbers,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) queue: VecDeque<Step>,
    pub(super) then: Step,
    pub(super) count: u64,
    pub(super) recorded: VecDeque<Recorded>,
    pub(super) connections: HashMap<u64, TcpStream>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) stopping: bool,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, unless the server stops first.
    pub(super) fn pause(&self, time: Duration) -> io::Result<()> {
        if time.is_zero() {
            return Ok(());
        }
        match self.stopped.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            _ => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Records a request and takes the step that answers it.
    pub(super) fn next_step(&self, recorded: Recorded) -> Step {
        let mut state = self.lock();
        state.count += 1;
        if state.recorded.len() == MAX_RECORDED {
            state.recorded.pop_front();
        }
        state.recorded.push_back(recorded);
        let next = state.queue.pop_front();
        next.unwrap_or_else(|| state.then.clone())
    }
}
