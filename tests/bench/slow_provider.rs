//! A model provider that streams slowly to thousands at once: one thread paces all sockets, so that it costs the machine
//! next to nothing beside those who read.
//!
//! Every stream says a word each second. It ends once it is as long as it must be and the provider was told to let go.

use super::Outcome;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(10);
/// Between two words of a stream.
pub(crate) const BETWEEN: Duration = Duration::from_secs(1);
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

#[derive(Default)]
struct Shared {
    streaming: AtomicUsize,
    finished: AtomicUsize,
    let_go: AtomicBool,
    stop: AtomicBool,
}

/// The running provider; its thread ends with it.
pub(crate) struct SlowProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl SlowProvider {
    /// Each stream lasts at least this long.
    pub(crate) fn start(at_least: Duration) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let mut pacing = Pacing {
            listener,
            at_least,
            shared: Arc::clone(&shared),
            connections: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("slow-provider".to_owned())
            .spawn(move || {
                while !pacing.shared.stop.load(Ordering::Relaxed) {
                    pacing.tick();
                    std::thread::sleep(TICK);
                }
            })?;
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Streams that are open now.
    pub(crate) fn streaming(&self) -> usize {
        self.shared.streaming.load(Ordering::Relaxed)
    }

    /// Streams that came to their end.
    pub(crate) fn finished(&self) -> usize {
        self.shared.finished.load(Ordering::Relaxed)
    }

    /// From now on streams may end.
    pub(crate) fn let_go(&self) {
        self.shared.let_go.store(true, Ordering::Relaxed);
    }
}

impl Drop for SlowProvider {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread holds.
struct Pacing {
    listener: TcpListener,
    at_least: Duration,
    shared: Arc<Shared>,
    connections: Vec<Connection>,
}

impl Pacing {
    fn tick(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // One that cannot be set up is missed in the count of streams.
            if stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok() {
                self.connections.push(Connection {
                    stream,
                    received: Vec::new(),
                    said: None,
                });
            }
        }
        let may_end = self.shared.let_go.load(Ordering::Relaxed);
        let at_least = self.at_least;
        let finished = &self.shared.finished;
        self.connections.retain_mut(|connection| {
            let lives = connection.step(may_end, at_least, finished);
            lives.is_ok_and(|lives| lives)
        });
        let streaming = self.connections.iter().filter(|one| one.said.is_some());
        let streaming = streaming.count();
        self.shared.streaming.store(streaming, Ordering::Relaxed);
    }
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// While it streams.
    said: Option<Said>,
}

struct Said {
    since: Instant,
    next: Instant,
}

impl Connection {
    /// Does what is due; whether the connection goes on.
    fn step(
        &mut self,
        may_end: bool,
        at_least: Duration,
        finished: &AtomicUsize,
    ) -> std::io::Result<bool> {
        let now = Instant::now();
        match &mut self.said {
            Some(said) if said.next <= now => {
                said.next += BETWEEN;
                if may_end && now - said.since >= at_least {
                    self.said = None;
                    finished.fetch_add(1, Ordering::Relaxed);
                    let stop = chunk(json!({}), json!("stop"));
                    let text = "data: [DONE]\n\n";
                    let done = format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
                    self.stream.write_all(&[stop, done.into_bytes()].concat())?;
                } else {
                    let word = chunk(json!({"content": "word "}), Value::Null);
                    self.stream.write_all(&word)?;
                }
                Ok(true)
            }
            Some(_) => Ok(true),
            None => self.receive(now),
        }
    }

    fn receive(&mut self, now: Instant) -> std::io::Result<bool> {
        let mut buffer = [0; 8192];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => self.received.extend(buffer.iter().take(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
        if is_whole(&self.received) {
            self.received.clear();
            let first = chunk(
                json!({"role": "assistant", "content": "word "}),
                Value::Null,
            );
            self.stream.write_all(&[HEAD, &first].concat())?;
            self.said = Some(Said {
                since: now,
                next: now + BETWEEN,
            });
        }
        Ok(true)
    }
}

/// Whether a request has come with all of its body.
fn is_whole(received: &[u8]) -> bool {
    let text = String::from_utf8_lossy(received);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    body.len() >= length.unwrap_or(0)
}

/// An event of a chat completion, as a chunk of the answer's body.
fn chunk(delta: Value, finish_reason: Value) -> Vec<u8> {
    let event = json!({"id": "slow", "object": "chat.completion.chunk", "created": 0, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]});
    let text = format!("data: {event}\n\n");
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
