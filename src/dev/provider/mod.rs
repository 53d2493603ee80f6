//! A scripted model provider: an OpenAI-compatible server on loopback without a model.
//!
//! `agent-runtime dev` starts it if no provider is configured, so that a first run answers and
//! shows its tool steps. Tests and benchmarks queue answers and faults on it. It streams word by
//! word, calls an offered tool if the message asks for one, answers an output schema with JSON that fits it, and reports usage.
//!
//! It binds loopback only, bounds connections and bodies, and stops when dropped. Not here:
//! anything except `POST …/chat/completions` and `GET …/models`.

mod answer;
mod fitting;
mod wire;

use answer::Numbers;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Open connections, at most; a further one is closed unanswered.
const MAX_CONNECTIONS: usize = 512;
/// Requests kept for [`Provider::requests`], newest last.
const MAX_RECORDED: usize = 256;

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

/// The running server. Dropping it stops it and its threads.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<Sender<()>>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Disconnects when the server stops.
    stopped: Receiver<()>,
    numbers: Numbers,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Step>,
    then: Step,
    count: u64,
    recorded: VecDeque<Recorded>,
    connections: HashMap<u64, TcpStream>,
    threads: Vec<JoinHandle<()>>,
    stopping: bool,
}

impl Provider {
    /// Starts a server on a free port of 127.0.0.1.
    pub fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = bounded(0);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: script.queue.into(),
                then: script.then,
                ..State::default()
            }),
            stopped,
            numbers: Numbers::default(),
        });
        let for_accept = Arc::clone(&shared);
        let accepting = std::thread::Builder::new()
            .name("provider".to_owned())
            .spawn(move || accept(&listener, &for_accept))?;
        Ok(Self {
            address,
            shared,
            stop: Some(stop),
            accepting: Some(accepting),
        })
    }

    /// The base URL to configure: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Appends an answer to the queue.
    pub fn push(&self, step: Step) {
        self.shared.lock().queue.push_back(step);
    }

    /// The number of chat completions requested.
    pub fn count(&self) -> u64 {
        self.shared.lock().count
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// The last requests, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().recorded.iter().cloned().collect()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.stop.take());
        let threads = {
            let mut state = self.shared.lock();
            state.stopping = true;
            for connection in state.connections.values() {
                let _ = connection.shutdown(Shutdown::Both);
            }
            std::mem::take(&mut state.threads)
        };
        // Wakes the accept call, which then stops.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        for thread in self.accepting.take().into_iter().chain(threads) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, unless the server stops first.
    fn pause(&self, time: Duration) -> io::Result<()> {
        if time.is_zero() {
            return Ok(());
        }
        match self.stopped.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            _ => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Records a request and takes the step that answers it.
    fn next_step(&self, recorded: Recorded) -> Step {
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

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for (id, connection) in (0_u64..).zip(listener.incoming()) {
        let mut state = shared.lock();
        if state.stopping {
            return;
        }
        let Ok(connection) = connection else {
            drop(state);
            // Most likely the process is out of file descriptors; others may close theirs.
            let _ = shared.pause(Duration::from_millis(20));
            continue;
        };
        state.threads.retain(|thread| !thread.is_finished());
        if state.connections.len() >= MAX_CONNECTIONS {
            continue;
        }
        let Ok(held) = connection.try_clone() else {
            continue;
        };
        let for_thread = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .name(format!("provider-{id}"))
            // A JSON Schema is compiled on it.
            .stack_size(2 * 1024 * 1024)
            .spawn(move || {
                // A client that disconnects is not a fault of the server.
                let _ = wire::serve(&connection, &for_thread);
                let _ = connection.shutdown(Shutdown::Both);
                for_thread.lock().connections.remove(&id);
            });
        if let Ok(thread) = thread {
            state.connections.insert(id, held);
            state.threads.push(thread);
        }
    }
}

#[cfg(test)]
mod tests;
