//! A tool over HTTP that remembers every call.

use crate::wait::moment;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A call that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) run_id: Uuid,
    pub(crate) step: i32,
    pub(crate) attempt: i32,
}

/// Steps of a run, and attempts of a step, in these tests at most.
const MOST: i32 = 1 << 16;

/// The call of this run that a `traceparent` comes from: the span id is the lower half of the run's id, xor the step
/// and the attempt. None: it comes from another run.
pub(crate) fn attempt_of(traceparent: &str, run_id: Uuid) -> Option<Call> {
    let span = traceparent.split('-').nth(2).unwrap();
    let place = u64::from_str_radix(span, 16).unwrap() ^ run_id.as_u64_pair().1;
    let step = i32::try_from(place >> 32).ok()?;
    let attempt = i32::try_from(place & u64::from(u32::MAX)).ok()?;
    let is_of_run = (1..MOST).contains(&step) && (1..MOST).contains(&attempt);
    is_of_run.then_some(Call {
        run_id,
        step,
        attempt,
    })
}

#[derive(Default)]
struct Calls {
    arrived: Vec<Call>,
    /// The runs whose calls were answered.
    answered: Vec<Uuid>,
}

#[derive(Default)]
struct Seen {
    calls: Mutex<Calls>,
    changed: Condvar,
    delay: Mutex<Duration>,
    stopping: AtomicBool,
}

/// The tool's server. Dropping it ends it.
pub(crate) struct Tool {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: Option<JoinHandle<()>>,
}

impl Tool {
    /// Starts a tool that takes this long for each call.
    pub(crate) fn start(delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        *seen.delay.lock().unwrap() = delay;
        let written = Arc::clone(&seen);
        let accepting = std::thread::Builder::new()
            .name("tool".to_owned())
            .spawn(move || accept(&listener, &written))
            .unwrap();
        Self {
            address,
            seen,
            accepting: Some(accepting),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/call", self.address)
    }

    /// Calls take this long from now on.
    pub(crate) fn take(&self, delay: Duration) {
        *self.seen.delay.lock().unwrap() = delay;
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.seen.calls.lock().unwrap().arrived.clone()
    }

    /// Waits until a run's call has arrived.
    pub(crate) fn wait_for(&self, run_id: Uuid) {
        let is_call = |call: &Call| call.run_id == run_id;
        self.wait("a call", |calls| calls.arrived.iter().any(is_call));
    }

    /// Waits until a run's call has been answered.
    #[allow(dead_code, reason = "the test of upgrades does not ask for it")]
    pub(crate) fn wait_for_answer(&self, run_id: Uuid) {
        self.wait("an answer", |calls| calls.answered.contains(&run_id));
    }

    fn wait(&self, what: &str, has: impl Fn(&Calls) -> bool) {
        let deadline = Instant::now() + crate::PATIENCE;
        let mut calls = self.seen.calls.lock().unwrap();
        while !has(&calls) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the tool waited in vain for {what}");
            calls = self.seen.changed.wait_timeout(calls, left).unwrap().0;
        }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        self.seen.stopping.store(true, Ordering::Relaxed);
        // Wakes the accept, which then sees that it is to stop.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
    }
}

/// A thread a call: none ever waits for another.
fn accept(listener: &TcpListener, seen: &Arc<Seen>) {
    let mut threads = Vec::new();
    for connection in listener.incoming().flatten() {
        if seen.stopping.load(Ordering::Relaxed) {
            break;
        }
        let seen = Arc::clone(seen);
        let thread = std::thread::Builder::new()
            .name("tool-call".to_owned())
            // A caller that dies is no fault of the tool's.
            .spawn(move || drop(answer(&connection, &seen)))
            .unwrap();
        threads.push(thread);
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// One call, one connection.
fn answer(mut connection: &TcpStream, seen: &Seen) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(connection);
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_owned()),
            None if line.trim_end().is_empty() => break,
            None => None,
        };
    }
    let length = headers["content-length"].parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let key = &headers["idempotency-key"];
    let (run_id, step) = key.rsplit_once('-').unwrap();
    let call = attempt_of(&headers["traceparent"], run_id.parse().unwrap()).unwrap();
    assert_eq!(step, call.step.to_string());
    let text = format!("recorded by step {}", call.step);
    let run_id = call.run_id;
    seen.calls.lock().unwrap().arrived.push(call);
    seen.changed.notify_all();
    // The tool takes as long as it was told to.
    let until = Instant::now() + *seen.delay.lock().unwrap();
    while Instant::now() < until && !seen.stopping.load(Ordering::Relaxed) {
        moment();
    }
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length";
    let answer = format!("{head}: {}\r\n\r\n{text}", text.len());
    let sent = connection.write_all(answer.as_bytes());
    seen.calls.lock().unwrap().answered.push(run_id);
    seen.changed.notify_all();
    sent
}
