//! Facts about a request, for handlers, refusals and the log. Its id and its place in its caller's trace are made once, so
//! the answer and every record say the same.

use super::head;
use super::limits::Limits;
use crate::error::Result;
use crate::ids::Clock;
use crate::log::trace::TraceContext;
use hyper::http::request::Parts;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A request as the door sees it. It outlives the request's thread.
pub struct Context {
    peer: SocketAddr,
    head: Option<Parts>,
    arrived: Instant,
    clock: Clock,
    id: OnceLock<Uuid>,
    trace: OnceLock<TraceContext>,
}

impl Context {
    pub(super) fn new(peer: SocketAddr, head: Option<Parts>, clock: &Clock) -> Self {
        Self {
            peer,
            head,
            arrived: Instant::now(),
            clock: clock.clone(),
            id: OnceLock::new(),
            trace: OnceLock::new(),
        }
    }

    /// The request's id, made when it is first asked for and the same ever after.
    pub fn request_id(&self) -> Uuid {
        *self.id.get_or_init(|| self.clock.new_id())
    }

    /// The request's place in its caller's trace, or in a trace of its own.
    pub fn trace(&self) -> &TraceContext {
        self.trace.get_or_init(|| {
            let mut parents = self.headers("traceparent");
            let parent = match (parents.next(), parents.next()) {
                (only, None) => only,
                _ => None,
            };
            let states: Vec<&str> = self.headers("tracestate").collect();
            TraceContext::incoming(parent, Some(&states.join(",")))
        })
    }

    /// This logger for the request: its records carry the request's id and trace.
    pub fn log(&self, log: &slog::Logger) -> slog::Logger {
        let request_id = format!("req-{}", self.request_id());
        log.new(slog::o!("requestId" => request_id, self.trace().clone()))
    }

    /// The address at the other end of the connection. No header changes it.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The method as sent, so `HEAD` too. Empty where no header block was read.
    pub fn method(&self) -> &str {
        self.head.as_ref().map_or("", |head| head.method.as_str())
    }

    /// Path and query as sent. Empty where no header block was read.
    pub fn target(&self) -> &str {
        self.head
            .as_ref()
            .and_then(|head| head.uri.path_and_query())
            .map_or("", |target| target.as_str())
    }

    /// The first field of this name, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).next()
    }

    /// Every field of this name that is text, in order.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let head = self.head.as_ref();
        head.into_iter()
            .flat_map(move |head| head.headers.get_all(name))
            .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
    }

    /// Whether there is a field of this name, text or not.
    pub fn has_header(&self, name: &str) -> bool {
        let head = self.head.as_ref();
        head.is_some_and(|head| head.headers.contains_key(name))
    }

    /// Time since the header block was read.
    pub fn age(&self) -> Duration {
        self.arrived.elapsed()
    }

    /// Whether the door takes this header block.
    pub(super) fn check(&self, limits: &Limits) -> Result<()> {
        self.head
            .as_ref()
            .map_or(Ok(()), |head| head::check(head, limits))
    }

    pub(super) fn is_head(&self) -> bool {
        self.head
            .as_ref()
            .is_some_and(|head| head.method == hyper::Method::HEAD)
    }

    /// The request for a handler, on whose thread this runs: the copying is not the door's.
    pub(super) fn request(&self, body: Vec<u8>) -> rouille::Request {
        let method = if self.is_head() { "GET" } else { self.method() };
        let headers = self.head.as_ref().map_or_else(Vec::new, |head| {
            head.headers
                .iter()
                .map(|(name, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes());
                    (name.as_str().to_owned(), value.into_owned())
                })
                .collect()
        });
        rouille::Request::fake_http_from(self.peer, method, self.target(), headers, body)
    }
}
