//! The JSON form of OTLP (opentelemetry-proto 1.x, `ExportTraceServiceRequest`): ids as hexadecimal,
//! 64-bit numbers as text, field names in lower camel case.

use super::{Kind, Span, Value};
use crate::text::beginning;
use serde_json::{Map, Value as Json, json};
use time::OffsetDateTime;

/// The longest text of an attribute, in bytes; OpenTelemetry's own limits are the collector's.
const MAX_TEXT_BYTES: usize = 256;
/// Texts of one attribute at most.
const MAX_TEXTS: usize = 16;

/// The process that spans come from, as OTLP's resource.
pub(super) fn resource(attributes: &[(&'static str, Value)]) -> Json {
    json!({ "attributes": pairs(attributes) })
}

/// The body of an export.
pub(super) fn body(resource: &Json, spans: &[Span]) -> Vec<u8> {
    let scope = json!({ "name": "agent-runtime", "version": env!("CARGO_PKG_VERSION") });
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let body = json!({ "resourceSpans": [{
        "resource": resource,
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] });
    body.to_string().into_bytes()
}

/// The body of an export of nothing, which a collector answers all the same.
pub(super) const EMPTY: &[u8] = br#"{"resourceSpans":[]}"#;

/// The spans that the collector did not take out of a batch that it took (`partialSuccess`).
pub(super) fn rejected(answer: &[u8]) -> u64 {
    let answer: Json = serde_json::from_slice(answer).unwrap_or_default();
    let rejected = &answer["partialSuccess"]["rejectedSpans"];
    // A 64-bit number is a text; some senders write a number all the same.
    let text = rejected.as_str().and_then(|text| text.parse().ok());
    text.or(rejected.as_u64()).unwrap_or(0)
}

fn span(span: &Span) -> Json {
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    let mut out = Map::new();
    out.insert("traceId".to_owned(), json!(span.trace.trace_id()));
    out.insert("spanId".to_owned(), json!(span.trace.span_id()));
    if let Some(parent) = span.trace.parent_id() {
        out.insert("parentSpanId".to_owned(), json!(parent));
    }
    if let Some(state) = span.trace.tracestate() {
        out.insert("traceState".to_owned(), json!(state));
    }
    out.insert("name".to_owned(), json!(cut(&span.name)));
    out.insert("kind".to_owned(), json!(kind));
    out.insert("startTimeUnixNano".to_owned(), nanoseconds(span.began));
    // A clock that was set back in between: a span ends no earlier than it begins.
    let ended = span.ended.max(span.began);
    out.insert("endTimeUnixNano".to_owned(), nanoseconds(ended));
    let mut attributes = pairs(&span.attributes);
    if let Some(failure) = &span.failure {
        attributes.push(pair("error.type", &Value::Text(failure.clone())));
        out.insert("status".to_owned(), json!({ "code": 2 }));
    }
    out.insert("attributes".to_owned(), Json::Array(attributes));
    Json::Object(out)
}

fn nanoseconds(at: OffsetDateTime) -> Json {
    json!(at.unix_timestamp_nanos().max(0).to_string())
}

fn pairs(attributes: &[(&'static str, Value)]) -> Vec<Json> {
    attributes
        .iter()
        .map(|(key, value)| pair(key, value))
        .collect()
}

fn pair(key: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => string(text),
        Value::Integer(number) => json!({ "intValue": number.to_string() }),
        Value::Boolean(is_so) => json!({ "boolValue": is_so }),
        Value::Texts(texts) => {
            let values: Vec<Json> = texts.iter().take(MAX_TEXTS).map(|t| string(t)).collect();
            json!({ "arrayValue": { "values": values } })
        }
    };
    json!({ "key": key, "value": value })
}

fn string(text: &str) -> Json {
    json!({ "stringValue": cut(text) })
}

fn cut(text: &str) -> &str {
    beginning(text, MAX_TEXT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::trace::TraceContext;

    #[test]
    fn a_span_has_the_form_of_otlp() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = TraceContext::incoming(Some(parent), Some("a=1"));
        let span_id = trace.span_id();
        let began = OffsetDateTime::UNIX_EPOCH + time::Duration::nanoseconds(1_000_000_007);
        let span = Span {
            trace,
            name: "chat m".to_owned(),
            kind: Kind::Client,
            began,
            ended: began - time::Duration::SECOND,
            attributes: vec![
                ("text", "a".into()),
                ("number", 7_i64.into()),
                ("is_so", Value::Boolean(true)),
                ("texts", Value::Texts(vec!["b".to_owned()])),
            ],
            failure: Some("failed".to_owned()),
        };
        let body = body(&resource(&[("service.name", "s".into())]), &[span]);
        let body: Json = serde_json::from_slice(&body).unwrap();
        let expected = json!({ "resourceSpans": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "s" } }] },
            "scopeSpans": [{
                "scope": { "name": "agent-runtime", "version": env!("CARGO_PKG_VERSION") },
                "spans": [{
                    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                    "spanId": span_id,
                    "parentSpanId": "00f067aa0ba902b7",
                    "traceState": "a=1",
                    "name": "chat m",
                    "kind": 3,
                    "startTimeUnixNano": "1000000007",
                    "endTimeUnixNano": "1000000007",
                    "status": { "code": 2 },
                    "attributes": [
                        { "key": "text", "value": { "stringValue": "a" } },
                        { "key": "number", "value": { "intValue": "7" } },
                        { "key": "is_so", "value": { "boolValue": true } },
                        { "key": "texts", "value": { "arrayValue": { "values": [{ "stringValue": "b" }] } } },
                        { "key": "error.type", "value": { "stringValue": "failed" } },
                    ],
                }],
            }],
        }] });
        assert_eq!(body, expected);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("abc"), "abc");
        assert_eq!(cut(&"x".repeat(300)).len(), MAX_TEXT_BYTES);
        assert_eq!(cut(&"\u{20ac}".repeat(100)).len(), 255);
    }

    #[test]
    fn what_was_rejected_is_read_in_either_form() {
        assert_eq!(rejected(br#"{"partialSuccess":{"rejectedSpans":"3"}}"#), 3);
        assert_eq!(rejected(br#"{"partialSuccess":{"rejectedSpans":4}}"#), 4);
        for none in ["", "{}", "[]", "null", r#"{"partialSuccess":{}}"#, "\u{0}"] {
            assert_eq!(rejected(none.as_bytes()), 0, "{none}");
        }
    }
}
