//! The span of a request: what its caller's tracing system shows below the caller's own span.
//!
//! It begins when the header block was read, and ends when the answer may go. A stream's span ends
//! with its head. The route stands in it, never the path, the query, a header or a body.
//!
//! Not here: probes, and what the door itself refuses; they have no span.

use super::context::{Known, Shared};
use super::door::Context;
use crate::traces::{Kind, Span, Traces, Value};

/// The methods that a span names; any other may be a client's invention.
const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// The span of a request that is being answered, if its trace is recorded.
pub(super) struct RequestSpan(Option<Box<Recording>>);

struct Recording {
    traces: Traces,
    span: Span,
}

impl RequestSpan {
    pub(super) fn begin(shared: &Shared, context: &Context) -> Self {
        if !shared.traces.takes(context.trace()) {
            return Self(None);
        }
        let now = shared.clock.now();
        let method = METHODS.into_iter().find(|known| *known == context.method());
        let request_id = format!("req-{}", context.request_id());
        Self(Some(Box::new(Recording {
            traces: shared.traces.clone(),
            span: Span {
                trace: context.trace().clone(),
                name: method.unwrap_or("HTTP").to_owned(),
                kind: Kind::Server,
                began: now - context.age(),
                ended: now,
                attributes: vec![
                    ("http.request.method", method.unwrap_or("_OTHER").into()),
                    ("url.scheme", "http".into()),
                    ("agent_runtime.request.id", Value::Text(request_id)),
                ],
                failure: None,
            },
        })))
    }

    /// The route that the request found, and what is known of its caller and of what its path names.
    pub(super) fn found(&mut self, route: &'static str, known: &Known) {
        let Some(recording) = &mut self.0 else {
            return;
        };
        let span = &mut recording.span;
        span.name = format!("{} {route}", span.name);
        span.attributes.push(("http.route", route.into()));
        span.attributes.extend(known.attributes());
    }

    /// The answer may go.
    pub(super) fn end(self, shared: &Shared, status: u16) {
        let Some(recording) = self.0 else {
            return;
        };
        let Recording { traces, mut span } = *recording;
        span.ended = shared.clock.now();
        let status_code = i64::from(status).into();
        span.attributes
            .push(("http.response.status_code", status_code));
        span.failure = (status >= 500).then(|| status.to_string());
        traces.record(span);
    }
}
