//! Spans for the operator's tracing system: OpenTelemetry's OTLP over HTTP, in its JSON form.
//!
//! Whoever has done something hands over a finished [`Span`]. It waits in a bounded queue for the
//! thread `traces`, which sends batches to the collector.
//!
//! Guarantees: recording never waits. A collector that is away, slow or refuses costs no request
//! and no run: its spans are dropped and counted, and the log says so once. A trace whose caller
//! does not sample it is not recorded. A stop waits for the collector no longer than [`FLUSH`].
//!
//! Not here: the ids of traces and spans (`log::trace`); what a span says, which is its recorder's.
//! A span holds no text of a message, an argument, an answer or a failure.

mod exporter;
mod otlp;

pub use exporter::{Exporter, FLUSH, probe};

use crate::config::Settings;
use crate::error::Result;
use crate::ids::Clock;
use crate::log::trace::TraceContext;
use crate::outbound::Outbound;
use crate::secret::Secret;
use crossbeam_channel::{Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use time::OffsetDateTime;

/// Where spans go.
#[derive(Debug, Clone)]
pub struct Options {
    /// The collector's base URL; `/v1/traces` is added.
    pub endpoint: String,
    /// Headers for the collector, by name.
    pub headers: Vec<(String, Secret)>,
    /// The environment that the service serves, if it has a name.
    pub environment: Option<String>,
    /// Spans that wait at most.
    pub queue_length: usize,
    /// How long spans wait for others before a batch is sent.
    pub delay: Duration,
    /// The wait after a failed export; it doubles with each further one, up to half a minute.
    pub first_wait: Duration,
    /// Time limit of one export.
    pub timeout: Duration,
}

impl Options {
    /// As the settings say, if there is a collector.
    pub fn from_settings(settings: &Settings) -> Option<Self> {
        let endpoint = settings.values.text("SVC_OTLP_ENDPOINT")?;
        Some(Self {
            headers: settings.values.headers("SVC_OTLP_HEADERS"),
            environment: settings.environment.clone(),
            ..Self::new(endpoint)
        })
    }

    /// A collector, with the usual bounds.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            environment: None,
            queue_length: 4096,
            delay: Duration::from_secs(1),
            first_wait: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
        }
    }
}

/// What stands on the other side of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nobody.
    Internal,
    /// The client of a request.
    Server,
    /// The server of a call.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text; a long one is cut.
    Text(String),
    /// A number.
    Integer(i64),
    /// Yes or no.
    Boolean(bool),
    /// Texts.
    Texts(Vec<String>),
}

/// Something that began and ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its place in its trace.
    pub trace: TraceContext,
    /// What was done; of few different names.
    pub name: String,
    /// What stands on the other side.
    pub kind: Kind,
    /// When it began.
    pub began: OffsetDateTime,
    /// When it ended.
    pub ended: OffsetDateTime,
    /// What there is to say, by the names of OpenTelemetry's conventions.
    pub attributes: Vec<(&'static str, Value)>,
    /// The word for how it failed, if it did.
    pub failure: Option<String>,
}

/// What became of spans in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Spans that wait.
    pub queued: usize,
    /// Spans that the collector took.
    pub exported: u64,
    /// Spans dropped because the queue was full.
    pub dropped_full: u64,
    /// Spans that the collector refused.
    pub dropped_refused: u64,
}

#[derive(Debug, Default)]
struct Counters {
    exported: AtomicU64,
    dropped_full: AtomicU64,
    dropped_refused: AtomicU64,
}

/// Takes spans. Cheap to clone.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<Queue>>);

struct Queue {
    spans: Sender<Span>,
    counters: Arc<Counters>,
}

impl Traces {
    /// Records nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// Starts the thread `traces`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        options: Options,
        outbound: &Outbound,
        clock: &Clock,
        log: slog::Logger,
    ) -> Result<(Self, Exporter)> {
        let (spans, waiting) = bounded(options.queue_length);
        let counters = Arc::new(Counters::default());
        let exporter = Exporter::start(
            options,
            outbound,
            clock,
            (waiting, Arc::clone(&counters)),
            log,
        )?;
        Ok((Self(Some(Arc::new(Queue { spans, counters }))), exporter))
    }

    /// Whether spans are recorded at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether spans of this trace are recorded. Ask before making one.
    pub fn takes(&self, trace: &TraceContext) -> bool {
        self.0.is_some() && trace.is_sampled()
    }

    /// Records a span, if its trace is recorded. It never waits: where the queue is full, the span is
    /// dropped and counted.
    pub fn record(&self, span: Span) {
        let Some(queue) = self.0.as_ref().filter(|_| span.trace.is_sampled()) else {
            return;
        };
        if queue.spans.try_send(span).is_err() {
            queue.counters.dropped_full.fetch_add(1, Relaxed);
        }
    }

    /// What became of spans; none where none are recorded.
    pub fn stats(&self) -> Option<Stats> {
        let queue = self.0.as_ref()?;
        Some(Stats {
            queued: queue.spans.len(),
            exported: queue.counters.exported.load(Relaxed),
            dropped_full: queue.counters.dropped_full.load(Relaxed),
            dropped_refused: queue.counters.dropped_refused.load(Relaxed),
        })
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<uuid::Uuid> for Value {
    fn from(id: uuid::Uuid) -> Self {
        Self::Text(id.to_string())
    }
}
