//! A tool over HTTP that remembers every call.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Calls at once.
const THREADS: usize = 8;

/// A call that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) run_id: Uuid,
    pub(crate) step: i32,
    pub(crate) attempt: i32,
}

/// The step and the attempt in the span id of a `traceparent`.
pub(crate) fn attempt_of(traceparent: &str) -> Call {
    let mut parts = traceparent.split('-').skip(1);
    let (trace, span) = (parts.next().unwrap(), parts.next().unwrap());
    Call {
        run_id: Uuid::parse_str(trace).unwrap(),
        step: i32::from_str_radix(&span[..8], 16).unwrap(),
        attempt: i32::from_str_radix(&span[8..], 16).unwrap(),
    }
}

#[derive(Default)]
struct Seen {
    calls: Mutex<Vec<Call>>,
    arrived: Condvar,
    delay: Mutex<Duration>,
}

/// The tool's server. Dropping it ends it.
pub(crate) struct Tool {
    address: SocketAddr,
    server: Arc<tiny_http::Server>,
    seen: Arc<Seen>,
    threads: Vec<JoinHandle<()>>,
}

impl Tool {
    /// Starts a tool that takes this long for each call.
    pub(crate) fn start(delay: Duration) -> Self {
        let server = Arc::new(tiny_http::Server::http("127.0.0.1:0").unwrap());
        let address = server.server_addr().to_ip().unwrap();
        let seen = Arc::new(Seen::default());
        *seen.delay.lock().unwrap() = delay;
        let threads = (0..THREADS)
            .map(|number| {
                let (server, seen) = (server.clone(), seen.clone());
                std::thread::Builder::new()
                    .name(format!("tool-{number}"))
                    .spawn(move || answer(&server, &seen))
                    .unwrap()
            })
            .collect();
        Self {
            address,
            server,
            seen,
            threads,
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
        self.seen.calls.lock().unwrap().clone()
    }

    /// Waits until a run's call has arrived.
    pub(crate) fn wait_for(&self, run_id: Uuid) {
        let deadline = Instant::now() + crate::PATIENCE;
        let mut calls = self.seen.calls.lock().unwrap();
        while !calls.iter().any(|call| call.run_id == run_id) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the tool was never called for {run_id}");
            calls = self.seen.arrived.wait_timeout(calls, left).unwrap().0;
        }
    }
}

fn answer(server: &tiny_http::Server, seen: &Seen) {
    while let Ok(mut request) = server.recv() {
        let headers: HashMap<String, String> = request
            .headers()
            .iter()
            .map(|header| {
                let name = header.field.as_str().as_str().to_ascii_lowercase();
                (name, header.value.as_str().to_owned())
            })
            .collect();
        let call = attempt_of(&headers["traceparent"]);
        assert_eq!(
            headers["idempotency-key"],
            format!("{}-{}", call.run_id, call.step)
        );
        let mut body = String::new();
        let _ = request.as_reader().read_to_string(&mut body);
        let text = format!("recorded by step {}", call.step);
        seen.calls.lock().unwrap().push(call);
        seen.arrived.notify_all();
        let delay = *seen.delay.lock().unwrap();
        std::thread::sleep(delay);
        // The caller may have died meanwhile.
        let _ = request.respond(tiny_http::Response::from_string(text));
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        for _ in &self.threads {
            self.server.unblock();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
