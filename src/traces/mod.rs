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
mod span;

pub use exporter::{Exporter, FLUSH, probe};

use crate::error::Result;
use crate::ids::Clock;
use crate::log::trace::TraceContext;
use crate::outbound::Outbound;
use crossbeam_channel::{Sender, bounded};
use span::Counters;
pub use span::{Kind, Options, Span, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

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
