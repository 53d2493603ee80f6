//! Readers of runs' event streams, all on one thread: as many connections as there are streams, and of each event the
//! moment at which its last byte was there.
//!
//! A reader checks that it gets every event of its run, in order, each once.

use super::Outcome;
use agent_runtime::ids::Clock;
use crossbeam_channel::{Receiver, Sender, unbounded};
use socket2::SockRef;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use uuid::Uuid;

/// Streams that are being opened at once.
const OPENING: usize = 64;
/// How long one stream may take to open, or one event to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run to be followed.
#[derive(Clone, Copy)]
pub(crate) struct Follow {
    pub(crate) run_id: Uuid,
    /// The last event that its readers have.
    pub(crate) after: i64,
}

/// An event at a reader.
pub(crate) struct Receipt {
    pub(crate) run_id: Uuid,
    pub(crate) seq: i64,
    pub(crate) at: OffsetDateTime,
}

/// What a reader reports.
enum Report {
    Open,
    Event(Receipt),
    Fault(String),
}

/// Open streams. They are closed with this value.
pub(crate) struct Readers {
    reports: Receiver<Report>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Readers {
    /// Lets this many readers follow each run, and waits until the service has taken all of them up.
    pub(crate) fn open(
        to: SocketAddr,
        token: &str,
        follows: &[Follow],
        each: usize,
    ) -> Outcome<Self> {
        let (sender, reports) = unbounded();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let (follows, token) = (follows.to_vec(), token.to_owned());
        let count = follows.len() * each;
        let thread = std::thread::Builder::new()
            .name("readers".to_owned())
            .spawn(move || {
                let opening = Arc::new(Semaphore::new(OPENING));
                // One of each run after the other, as they come in life.
                for follow in (0..each).flat_map(|_| &follows) {
                    let request = request(to, &token, follow);
                    runtime.spawn(reader(
                        to,
                        request,
                        *follow,
                        sender.clone(),
                        opening.clone(),
                    ));
                }
                let _: Result<(), _> = runtime.block_on(stopped);
            })?;
        let made = Self {
            reports,
            stop: Some(stop),
            thread: Some(thread),
        };
        for _ in 0..count {
            match made.reports.recv_timeout(PATIENCE)? {
                Report::Open => {}
                Report::Event(_) => return Err("an event came before all streams were open".into()),
                Report::Fault(fault) => return Err(fault.into()),
            }
        }
        Ok(made)
    }

    /// The next event that any of them got.
    pub(crate) fn next(&self) -> Outcome<Receipt> {
        match self.reports.recv_timeout(PATIENCE)? {
            Report::Event(receipt) => Ok(receipt),
            Report::Open => Err("a stream was opened twice".into()),
            Report::Fault(fault) => Err(fault.into()),
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn request(to: SocketAddr, token: &str, follow: &Follow) -> String {
    format!(
        "GET /v1/runs/{}/progress/stream HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer {token}\r\n\
         accept: text/event-stream\r\nlast-event-id: {}\r\n\r\n",
        follow.run_id, follow.after
    )
}

async fn reader(
    to: SocketAddr,
    request: String,
    follow: Follow,
    reports: Sender<Report>,
    opening: Arc<Semaphore>,
) {
    // Nobody listens any more once the readers are dropped.
    let fault = match read(to, &request, follow, &reports, &opening).await {
        Ok(()) => "a stream ended".to_owned(),
        Err(error) => error,
    };
    let _ = reports.send(Report::Fault(format!("run {}: {fault}", follow.run_id)));
}

async fn read(
    to: SocketAddr,
    request: &str,
    follow: Follow,
    reports: &Sender<Report>,
    opening: &Semaphore,
) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let mut permit = Some(opening.acquire().await.map_err(|error| error.to_string())?);
    let stream = TcpStream::connect(to).await.map_err(said)?;
    // Closed at once, so that thousands of ports do not stay taken for a minute.
    let socket = SockRef::from(&stream);
    socket.set_linger(Some(Duration::ZERO)).map_err(said)?;
    stream.writable().await.map_err(said)?;
    // A fresh connection has room for it.
    if stream.try_write(request.as_bytes()).map_err(said)? < request.len() {
        return Err("a request did not fit".to_owned());
    }
    let clock = Clock::system();
    let mut lines = Lines::new(follow);
    let mut bytes = [0; 1024];
    loop {
        stream.readable().await.map_err(said)?;
        let count = match stream.try_read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.to_string()),
        };
        let at = clock.now();
        for byte in &bytes[..count] {
            let Some(line) = lines.take(*byte)? else {
                continue;
            };
            let tell = match line {
                Line::Open => {
                    drop(permit.take());
                    Report::Open
                }
                Line::Event(seq) => Report::Event(Receipt {
                    run_id: follow.run_id,
                    seq,
                    at,
                }),
            };
            let _ = reports.send(tell);
        }
    }
}

/// What a stream says, as far as it matters here. The sizes between the chunks of its body are lines of their own.
struct Lines {
    line: Vec<u8>,
    head: bool,
    /// The number of the event that has begun.
    begun: Option<i64>,
    /// The last that is whole.
    seq: i64,
}

enum Line {
    /// The stream is taken up.
    Open,
    /// An event is whole.
    Event(i64),
}

impl Lines {
    fn new(follow: Follow) -> Self {
        Self {
            line: Vec::with_capacity(64),
            head: true,
            begun: None,
            seq: follow.after,
        }
    }

    fn take(&mut self, byte: u8) -> Result<Option<Line>, String> {
        if byte != b'\n' {
            // Nobody asks for the end of a long line.
            if self.line.len() < 256 {
                self.line.push(byte);
            }
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        if self.head {
            self.head = false;
            let is_open = text.starts_with("HTTP/1.1 200 ");
            return is_open.then_some(None).ok_or(text);
        }
        if text.starts_with("retry: ") {
            return Ok(Some(Line::Open));
        }
        if let Some(id) = text.strip_prefix("id: ") {
            self.begun = id.parse().ok();
        }
        if !text.is_empty() {
            return Ok(None);
        }
        let Some(seq) = self.begun.take() else {
            return Ok(None);
        };
        if seq != self.seq + 1 {
            return Err(format!("event {seq} came after event {}", self.seq));
        }
        self.seq = seq;
        Ok(Some(Line::Event(seq)))
    }
}
