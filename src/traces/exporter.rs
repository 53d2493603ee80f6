//! The thread `traces`: gathers spans and sends them in batches, one export at a time.
//!
//! A batch that the collector does not take for now is kept and sent again, after a wait that
//! grows; meanwhile the queue fills, and further spans are dropped. A batch that it refuses is
//! dropped. The log hears of it once, and once when it is over. Spans that it rejects out of a batch that it takes are
//! dropped, too, and the next batch is sent at once: the log hears of the first of them.

use super::{Counters, Options, Span, Value, otlp};
use crate::error::{Error, Result};
use crate::ids::Clock;
use crate::outbound::{Client, Method, Outbound, Outgoing, Policy, Response, Switch, Timeouts};
use crate::text::trim_ows;
use crate::threads;
use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Spans of one export at most.
const BATCH: usize = 512;
/// The longest wait before the next export, whatever the collector asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a stop waits for the collector.
pub const FLUSH: Duration = Duration::from_secs(2);
/// The longest answer of the collector, in bytes.
const ANSWER_BYTES: u64 = 64 * 1024;

/// The thread `traces`.
pub struct Exporter {
    stop: Sender<Instant>,
    ended: Receiver<()>,
    switch: Arc<Switch>,
}

impl Exporter {
    pub(super) fn start(
        options: Options,
        outbound: &Outbound,
        clock: &Clock,
        (spans, counters): (Receiver<Span>, Arc<Counters>),
        log: slog::Logger,
    ) -> Result<Self> {
        let (stop, stopped) = bounded(1);
        let (end, ended) = bounded(0);
        let switch = Arc::new(Switch::default());
        let sender = Sending {
            collector: Collector::new(&options, outbound),
            resource: otlp::resource(&of_process(&options, clock)),
            spans,
            stopped,
            counters,
            switch: Arc::clone(&switch),
            batch: Vec::new(),
            due: None,
            wait: options.first_wait,
            trouble: None,
            has_rejected: false,
            options,
            log,
        };
        let work = move || {
            sender.run();
            drop(end);
        };
        threads::start("traces", None, work).map_err(Error::internal)?;
        Ok(Self {
            stop,
            ended,
            switch,
        })
    }

    /// Sends what waits and ends the thread, within [`FLUSH`] and hardly after the deadline. False: it
    /// did not end.
    pub fn stop(self, deadline: Instant) -> bool {
        let deadline = deadline.min(Instant::now() + FLUSH);
        let _ = self.stop.try_send(deadline);
        let has_ended = |by| self.ended.recv_deadline(by).is_err_and(|e| !e.is_timeout());
        if has_ended(deadline) {
            return true;
        }
        self.switch.cut();
        has_ended(Instant::now() + Duration::from_millis(500))
    }
}

/// Asks the collector whether it would take spans, with an export of none.
///
/// # Errors
/// A sentence.
pub fn probe(options: &Options, outbound: &Outbound, within: Duration) -> Result<(), String> {
    let mut collector = Collector::new(options, outbound);
    match collector.send(otlp::EMPTY, within) {
        Err(sentence) => Err(sentence),
        Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
        Ok(answer) => Err(format!("{} answered {}.", collector.url, answer.status)),
    }
}

/// The collector of a server with these options.
struct Collector {
    client: Client,
    url: String,
    headers: Vec<(String, crate::secret::Secret)>,
}

impl Collector {
    fn new(options: &Options, outbound: &Outbound) -> Self {
        let base = options.endpoint.trim_end_matches('/');
        Self {
            client: outbound.client_through_proxy(Policy::Operator, timeouts(options.timeout)),
            url: format!("{base}/v1/traces"),
            headers: options.headers.clone(),
        }
    }

    fn send(&mut self, body: &[u8], within: Duration) -> Result<Response, String> {
        self.client.set_timeouts(timeouts(within));
        let mut headers = vec![("content-type", "application/json")];
        let own = self.headers.iter();
        headers.extend(own.map(|(name, value)| (name.as_str(), value.expose())));
        let sent = self.client.send(&Outgoing {
            method: Method::POST,
            url: &self.url,
            headers: &headers,
            body,
            cap: ANSWER_BYTES,
        });
        sent.map_err(|failure| failure.message().to_owned())
    }
}

fn timeouts(total: Duration) -> Timeouts {
    Timeouts {
        connect: total,
        first_byte: total,
        idle: None,
        total,
    }
}

/// What there is to say of this process.
fn of_process(options: &Options, clock: &Clock) -> Vec<(&'static str, Value)> {
    let system = rustix::system::uname();
    let mut all = vec![
        ("service.name", Value::from("agent-runtime")),
        ("service.version", env!("CARGO_PKG_VERSION").into()),
        ("service.instance.id", clock.new_id().into()),
        (
            "host.name",
            system.nodename().to_string_lossy().as_ref().into(),
        ),
    ];
    if let Some(environment) = &options.environment {
        all.push(("deployment.environment.name", environment.as_str().into()));
    }
    all
}

/// How an export went wrong.
enum Trouble {
    /// The batch may be taken later.
    Away(String, Option<Duration>),
    /// The batch is not taken.
    Refused(String),
}

struct Sending {
    options: Options,
    collector: Collector,
    resource: serde_json::Value,
    spans: Receiver<Span>,
    /// The deadline of a stop.
    stopped: Receiver<Instant>,
    counters: Arc<Counters>,
    switch: Arc<Switch>,
    batch: Vec<Span>,
    /// When the batch is sent at the latest.
    due: Option<Instant>,
    /// The wait after the next failure.
    wait: Duration,
    /// While the collector takes nothing: how many spans had been dropped before.
    trouble: Option<u64>,
    /// Whether it rejected spans out of a batch that it took.
    has_rejected: bool,
    log: slog::Logger,
}

impl Sending {
    fn run(mut self) {
        loop {
            let mut stop = self.gather();
            if stop.is_none() {
                stop = match self.export(self.options.timeout) {
                    Ok(()) => {
                        self.wait = self.options.first_wait;
                        continue;
                    }
                    Err(trouble) => self.pause(trouble),
                };
            }
            if let Some(deadline) = stop {
                return self.flush(deadline);
            }
        }
    }

    /// Waits until there is something to send; says the deadline of a stop.
    fn gather(&mut self) -> Option<Instant> {
        while self.batch.len() < BATCH {
            let due = self.due.map_or_else(never, at);
            select! {
                recv(self.stopped) -> deadline => {
                    return Some(deadline.unwrap_or_else(|_| Instant::now()));
                }
                recv(self.spans) -> span => match span {
                    Ok(span) => {
                        self.batch.push(span);
                        let delay = self.options.delay;
                        self.due.get_or_insert_with(|| Instant::now() + delay);
                    }
                    Err(_) => return Some(Instant::now() + FLUSH),
                },
                recv(due) -> _ => return None,
            }
        }
        None
    }

    /// Waits after a failure; says the deadline of a stop.
    fn pause(&mut self, trouble: Trouble) -> Option<Instant> {
        let asked = match &trouble {
            Trouble::Away(_, asked) => asked.unwrap_or_default(),
            Trouble::Refused(_) => Duration::ZERO,
        };
        self.note(&trouble);
        let wait = self.wait.max(asked).min(LONGEST_WAIT);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        self.due = (!self.batch.is_empty()).then(Instant::now);
        let stopped = self.stopped.recv_timeout(wait);
        match stopped {
            Ok(deadline) => Some(deadline),
            Err(error) if error.is_timeout() => None,
            Err(_) => Some(Instant::now()),
        }
    }

    /// Sends the batch. It is empty afterwards, unless it may be taken later.
    fn export(&mut self, within: Duration) -> Result<(), Trouble> {
        let body = otlp::body(&self.resource, &self.batch);
        self.switch.cover(self.collector.client.cancel_handle());
        let sent = self.collector.send(&body, within);
        let answer = sent.map_err(|sentence| Trouble::Away(sentence, None))?;
        let said = || format!("It answered {}.", answer.status);
        let count = u64::try_from(self.batch.len()).unwrap_or(u64::MAX);
        let (rejected, outcome) = match answer.status {
            200..300 => (otlp::rejected(&answer.body).min(count), Ok(())),
            429 | 502..=504 => return Err(Trouble::Away(said(), retry_after(&answer))),
            _ => (count, Err(Trouble::Refused(said()))),
        };
        self.batch.clear();
        self.due = None;
        self.counters.exported.fetch_add(count - rejected, Relaxed);
        self.counters.dropped_refused.fetch_add(rejected, Relaxed);
        if outcome.is_ok() {
            self.over();
            self.note_rejected(rejected);
        }
        outcome
    }

    /// Sends what is left, until the deadline.
    fn flush(mut self, deadline: Instant) {
        loop {
            let room = BATCH.saturating_sub(self.batch.len());
            self.batch.extend(self.spans.try_iter().take(room));
            if self.batch.is_empty() {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || matches!(self.export(left), Err(Trouble::Away(..))) {
                let lost = self.batch.len() + self.spans.len();
                slog::warn!(self.log, "Spans were lost at the stop, since the collector of traces did not take them"; "collector" => &self.collector.url, "spans" => lost);
                return;
            }
        }
    }

    fn dropped(&self) -> u64 {
        let counters = &self.counters;
        counters.dropped_full.load(Relaxed) + counters.dropped_refused.load(Relaxed)
    }

    /// Says once that the collector takes nothing.
    fn note(&mut self, trouble: &Trouble) {
        if self.trouble.is_some() {
            return;
        }
        self.trouble = Some(self.dropped());
        let collector = &self.collector.url;
        match trouble {
            Trouble::Away(reason, _) => {
                slog::warn!(self.log, "The collector of traces is away; spans that find no room to wait are dropped"; "collector" => collector, "reason" => reason);
            }
            Trouble::Refused(reason) => {
                slog::warn!(self.log, "The collector of traces refuses spans; they are dropped"; "collector" => collector, "reason" => reason);
            }
        }
    }

    /// Says of the first spans that the collector rejects out of a batch; the metrics count all of them.
    fn note_rejected(&mut self, rejected: u64) {
        if rejected > 0 && !std::mem::replace(&mut self.has_rejected, true) {
            slog::warn!(self.log, "The collector of traces takes batches and rejects spans out of them; they are dropped and counted"; "collector" => &self.collector.url, "rejected" => rejected);
        }
    }

    /// Says once that the collector takes spans again.
    fn over(&mut self) {
        if let Some(before) = self.trouble.take() {
            let dropped = self.dropped() - before;
            slog::info!(self.log, "The collector of traces takes spans again"; "collector" => &self.collector.url, "dropped" => dropped);
        }
    }
}

/// The wait that the collector asks for, in seconds.
fn retry_after(answer: &Response) -> Option<Duration> {
    let text = answer.headers.get("retry-after")?.to_str().ok()?;
    trim_ows(text).parse().ok().map(Duration::from_secs)
}
