//! Readers of streams, as the standard for server-sent events has them: a reader comes back with the number of the last event
//! that it has, whatever happened to the connection or to the server. [`Follower`] reads that of a run.

use crate::server::Client;
use crate::wait::{eventually_within, moment};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Longer than the pause between two comments on an idle stream.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// An event that was read.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) seq: i64,
    pub(crate) kind: String,
    pub(crate) data: Value,
    pub(crate) at: Instant,
}

/// What a reader has so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) run_id: Option<Uuid>,
    pub(crate) events: Vec<Event>,
    /// Why streams ended, where that was said.
    pub(crate) ends: Vec<String>,
    /// Connections that were opened.
    pub(crate) connections: usize,
    /// Pieces of streamed text.
    pub(crate) pieces: usize,
    pub(crate) finished: bool,
}

/// A reader on a thread of its own. It ends with its run, or after its patience.
pub(crate) struct Follower {
    seen: Arc<Mutex<Seen>>,
    thread: JoinHandle<()>,
    pub(crate) agent_id: Uuid,
}

impl Follower {
    /// Starts a run, trying until it is answered, with one key throughout; then follows it.
    pub(crate) fn of_new_run(client: Client, agent_id: Uuid, turn: Value) -> Self {
        Self::spawn(agent_id, move |seen| {
            let key = agent_runtime::ids::Clock::system().new_id().to_string();
            let run_id = start(&client, &turn, &key);
            seen.lock().unwrap().run_id = Some(run_id);
            follow(&client, run_id, seen);
        })
    }

    /// Follows a run that was started.
    pub(crate) fn of(client: Client, agent_id: Uuid, run_id: Uuid) -> Self {
        Self::spawn(agent_id, move |seen| {
            seen.lock().unwrap().run_id = Some(run_id);
            follow(&client, run_id, seen);
        })
    }

    fn spawn(agent_id: Uuid, work: impl FnOnce(&Mutex<Seen>) + Send + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let written = Arc::clone(&seen);
        let thread = std::thread::Builder::new()
            .name("follower".to_owned())
            .spawn(move || work(&written))
            .unwrap();
        Self {
            seen,
            thread,
            agent_id,
        }
    }

    /// Whether the run's last event was read.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Looks at what was read so far.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap())
    }

    /// Waits until the run's last event was read.
    pub(crate) fn finish(self) -> Seen {
        if self.thread.join().is_err() {
            let seen = self
                .seen
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            panic!("a reader gave up: {seen:?}");
        }
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

/// Longer than any fault that the tests make.
const LONGEST_FAULT: Duration = crate::PATIENCE.saturating_mul(2);

fn deadline() -> Instant {
    Instant::now() + LONGEST_FAULT
}

pub(crate) fn start(client: &Client, turn: &Value, key: &str) -> Uuid {
    eventually_within(LONGEST_FAULT, "the run to be started", || {
        // Nobody there, not ready, or the first request of this key has not ended.
        let answer = client
            .send("POST", "/v1/runs", Some(turn), &[("idempotency-key", key)])
            .ok()?;
        let accepted = answer.status == 202;
        let in_vain = [409, 503, 504].contains(&answer.status);
        assert!(accepted || in_vain, "{}", answer.body);
        accepted.then(|| answer.body["run"]["id"].as_str().unwrap().parse().unwrap())
    })
}

fn follow(client: &Client, run_id: Uuid, seen: &Mutex<Seen>) {
    let mut deadline = deadline();
    let mut had = 0;
    loop {
        // A connection that breaks is the point of it all.
        let _ = read_stream(client, run_id, seen);
        let (finished, has) = {
            let seen = seen.lock().unwrap();
            (seen.finished, seen.events.len())
        };
        if finished {
            return;
        }
        if has > had {
            (had, deadline) = (has, self::deadline());
        }
        assert!(Instant::now() < deadline, "run {run_id} did not go on");
        moment();
    }
}

/// One connection, to its end.
fn read_stream(client: &Client, run_id: Uuid, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let last = seen.lock().unwrap().events.last().map(|event| event.seq);
    let path = format!("/v1/runs/{run_id}/progress/stream");
    let Some(mut frames) = Frames::open(client, &path, last)? else {
        return Ok(());
    };
    seen.lock().unwrap().connections += 1;
    let mut text = Text::default();
    loop {
        take(run_id, seen, &mut text, frames.next()?);
    }
}

/// A number, a kind and data.
pub(crate) type Frame = (Option<i64>, String, Value);

/// The events of one connection.
pub(crate) struct Frames(BufReader<Chunks<BufReader<TcpStream>>>);

impl Frames {
    /// Opens a stream that goes on after this event. None: the server does not take it now.
    pub(crate) fn open(
        client: &Client,
        path: &str,
        last: Option<i64>,
    ) -> std::io::Result<Option<Self>> {
        let connection = TcpStream::connect_timeout(&client.address, Duration::from_secs(5))?;
        connection.set_read_timeout(Some(READ_TIMEOUT))?;
        let last = last.map(|last| format!("last-event-id: {last}\r\n"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n{}\r\n",
            client.address,
            client.token,
            last.as_deref().unwrap_or_default()
        );
        (&connection).write_all(request.as_bytes())?;
        let mut reader = BufReader::new(connection);
        let status = line_of(&mut reader)?;
        while !line_of(&mut reader)?.is_empty() {}
        if !status.contains(" 200 ") {
            // A proxy says 502 where the server is away.
            let fine = [" 502 ", " 503 ", " 504 "]
                .iter()
                .any(|code| status.contains(code));
            assert!(fine, "{path} after {last:?}: {status}");
            return Ok(None);
        }
        Ok(Some(Self(BufReader::new(Chunks {
            inner: reader,
            left: 0,
        }))))
    }

    /// The next one. The end of the connection is an error.
    pub(crate) fn next(&mut self) -> std::io::Result<Frame> {
        loop {
            let (mut id, mut kind, mut data) = (None, String::new(), String::new());
            loop {
                let line = line_of(&mut self.0)?;
                match line
                    .split_once(':')
                    .map(|(name, rest)| (name, rest.trim_start()))
                {
                    _ if line.is_empty() => break,
                    Some(("id", value)) => id = Some(value.parse().unwrap()),
                    Some(("event", value)) => value.clone_into(&mut kind),
                    Some(("data", value)) => value.clone_into(&mut data),
                    _ => {}
                }
            }
            if !kind.is_empty() {
                return Ok((id, kind, serde_json::from_str(&data).unwrap()));
            }
        }
    }
}

/// The text of an attempt, as one connection was told it.
#[derive(Default)]
struct Text {
    step: i64,
    attempt: i64,
    said: String,
}

fn take(run_id: Uuid, seen: &Mutex<Seen>, text: &mut Text, (id, kind, data): Frame) {
    let mut seen = seen.lock().unwrap();
    match (id, kind.as_str()) {
        (Some(seq), _) => {
            let last = seen.events.last().map_or(0, |event| event.seq);
            assert_eq!(seq, last + 1, "run {run_id}: {kind} after {last}");
            let (said, whole) = (&text.said, &data["data"]);
            if kind == "step.completed"
                && whole["step"] == json!(text.step)
                && whole["attempt"] == json!(text.attempt)
            {
                let whole = whole["text"].as_str().unwrap_or_default();
                assert!(
                    whole.starts_with(said),
                    "run {run_id}: {said:?} was streamed of {whole:?}"
                );
            }
            seen.events.push(Event {
                seq,
                kind,
                data: data["data"].clone(),
                at: Instant::now(),
            });
        }
        (None, "text.delta") => {
            let (step, attempt) = (
                data["step"].as_i64().unwrap(),
                data["attempt"].as_i64().unwrap(),
            );
            if (step, attempt) != (text.step, text.attempt) {
                assert!(
                    (step, attempt) > (text.step, text.attempt),
                    "run {run_id}: {data}"
                );
                *text = Text {
                    step,
                    attempt,
                    said: String::new(),
                };
            }
            let had = i64::try_from(text.said.chars().count()).unwrap();
            assert_eq!(data["offset"].as_i64(), Some(had), "run {run_id}: {data}");
            text.said.push_str(data["text"].as_str().unwrap());
            seen.pieces += 1;
        }
        (None, "stream.end") => {
            let reason = data["reason"].as_str().unwrap().to_owned();
            seen.finished |= reason == "run-finished";
            seen.ends.push(reason);
        }
        (None, other) => panic!("run {run_id}: {other}"),
    }
}

/// A line without its end. The end of the stream is an error.
fn line_of(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 || !line.ends_with('\n') {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

/// The body of a chunked answer.
struct Chunks<R> {
    inner: R,
    left: usize,
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let size = line_of(&mut self.inner)?;
            self.left = usize::from_str_radix(&size, 16)
                .map_err(|_| std::io::Error::from(std::io::ErrorKind::InvalidData))?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = into.len().min(self.left);
        let read = self.inner.read(&mut into[..most])?;
        self.left -= read;
        if self.left == 0 {
            line_of(&mut self.inner)?;
        }
        Ok(read)
    }
}
