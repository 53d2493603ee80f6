//! What is recorded, where it goes, and what became of it.

use crate::config::Settings;
use crate::log::trace::TraceContext;
use crate::secret::Secret;
use std::sync::atomic::AtomicU64;
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

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) exported: AtomicU64,
    pub(super) dropped_full: AtomicU64,
    pub(super) dropped_refused: AtomicU64,
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
