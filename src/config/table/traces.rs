//! The collector of traces.

use super::setting::{Kind, Setting, Source};

pub(super) static TRACES: &[Setting] = &[
    Setting::new(
        "SVC_OTLP_ENDPOINT",
        Kind::HttpUrl,
        Source::Ours,
        "The base URL of an OpenTelemetry collector, as in http://127.0.0.1:4318. Spans of requests, \
         runs and steps are posted to /v1/traces below it, as OTLP in JSON. Unset: no spans are \
         recorded.",
    ),
    Setting::new(
        "SVC_OTLP_HEADERS",
        Kind::Headers,
        Source::Ours,
        "Headers for the collector, such as its token. They are sent to SVC_OTLP_ENDPOINT alone.",
    )
    .secret()
    .read_by("server, with SVC_OTLP_ENDPOINT")
    .default_described("none"),
];
