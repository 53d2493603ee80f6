//! The text of one event, and the schema of what its `data` line holds.

use crate::ids::rfc3339;
use crate::runtime::progress::events::Numbered;
use crate::store::events::StoredEvent;
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Milliseconds after which a client comes back.
const RETRY_MS: u32 = 2000;

/// The first line of every stream.
pub(super) fn retry() -> Bytes {
    Bytes::from(format!("retry: {RETRY_MS}\n\n"))
}

/// Keeps an idle connection open through proxies.
pub(super) fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}

/// An event of `data`, on one line for every reader: some split lines as Unicode does, at U+0085, U+2028 and U+2029, too.
/// JSON has them as they are, and in texts alone, where an escape is the same character.
pub(super) fn event(id: Option<i64>, kind: &str, data: &Value) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    let mut data = data.to_string();
    for (end_of_line, escape) in [
        ('\u{85}', "\\u0085"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        if data.contains(end_of_line) {
            data = data.replace(end_of_line, escape);
        }
    }
    Bytes::from(format!("{id}event: {kind}\ndata: {data}\n\n"))
}

/// A durable event: its number is the id.
pub(super) fn durable(stored: &StoredEvent) -> Bytes {
    let data = json!({
        "seq": stored.seq,
        "kind": stored.kind,
        "createdAt": rfc3339::text(stored.created_at),
        "data": stored.data,
    });
    event(Some(stored.seq), &stored.kind, &data)
}

/// A passing event: without an id, so that a client that comes back does not count it.
pub(super) fn passing(kind: &str, data: impl Serialize) -> Bytes {
    event(None, kind, &json!(data))
}

/// Text that a model is writing.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TextDelta<'a> {
    /// The step whose text it is.
    pub(super) step: i32,
    /// The attempt of the step. Text of an earlier attempt is void.
    pub(super) attempt: i32,
    /// How many characters of the attempt's text stand before it.
    pub(super) offset: i32,
    /// The characters.
    pub(super) text: &'a str,
}

impl TextDelta<'_> {
    pub(super) fn event(&self) -> Bytes {
        passing("text.delta", self)
    }
}

/// Reasoning of a model, while it thinks. Not for readers with a public token.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReasoningDelta<'a> {
    /// The step whose reasoning it is.
    pub(super) step: i32,
    /// The attempt of the step. Reasoning of an earlier attempt is void.
    pub(super) attempt: i32,
    /// How many characters of the attempt's reasoning stand before it.
    pub(super) offset: i32,
    /// The characters.
    pub(super) text: &'a str,
}

impl ReasoningDelta<'_> {
    pub(super) fn event(&self) -> Bytes {
        passing("reasoning.delta", self)
    }
}

/// Why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "StreamEndReason")]
pub(super) enum End {
    /// The run is finished and its last event was sent.
    #[serde(rename = "run-finished")]
    Finished,
    /// The credential has ended or was revoked.
    #[serde(rename = "credential-ended")]
    Credential,
    /// The reader may not read the run any more.
    #[serde(rename = "permission-denied")]
    Access,
    /// The server is stopping: come back.
    #[serde(rename = "server-stopping")]
    Stopping,
}

/// The stream ends here.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StreamEnd {
    reason: End,
}

impl End {
    pub(super) fn event(self) -> Bytes {
        passing("stream.end", StreamEnd { reason: self })
    }
}

/// Why a stream is cut.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "StreamResetReason")]
enum Reset {
    /// The reader cannot keep up.
    ReaderTooSlow,
}

/// The stream is cut here: read the run anew, or come back.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StreamReset {
    reason: Reset,
}

/// The reader cannot keep up: it is to read the run anew, or come back.
pub(super) fn reset() -> Bytes {
    let reason = Reset::ReaderTooSlow;
    passing("stream.reset", StreamReset { reason })
}

/// What the `data` lines of a stream hold.
pub(in crate::http) struct StreamData;

impl JsonSchema for StreamData {
    fn schema_name() -> Cow<'static, str> {
        "RunStreamData".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "The `data` of one server-sent event. Its `event` line says what it is: `text.delta`, `reasoning.delta`, `stream.end`, \
                `stream.reset`, or the `kind` of an event of the run, whose number is then the `id`.",
            "anyOf": [
                generator.subschema_for::<Numbered>(),
                generator.subschema_for::<TextDelta<'_>>(),
                generator.subschema_for::<ReasoningDelta<'_>>(),
                generator.subschema_for::<StreamEnd>(),
                generator.subschema_for::<StreamReset>(),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_data() {
        let event = StoredEvent {
            seq: 7,
            kind: "step.completed".to_owned(),
            data: json!({"text": "a\nb"}),
            created_at: time::OffsetDateTime::UNIX_EPOCH,
        };
        let text = String::from_utf8(durable(&event).to_vec()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["id: 7", "event: step.completed"]);
        assert!(lines[2].starts_with("data: {") && lines[2].contains("a\\nb"));
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn no_character_ends_the_line_of_data_for_any_reader() {
        let ends = "a\u{85}b\u{2028}c\u{2029}d\u{b}\u{c}\u{1c}\u{1d}\u{1e}\r\ne";
        let stored = StoredEvent {
            seq: 7,
            kind: "step.completed".to_owned(),
            data: json!({"text": ends, ends: 1}),
            created_at: time::OffsetDateTime::UNIX_EPOCH,
        };
        let delta = TextDelta {
            step: 1,
            attempt: 1,
            offset: 0,
            text: ends,
        };
        for (bytes, pointer) in [(durable(&stored), "/data/text"), (delta.event(), "/text")] {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let rest = text.replace('\n', "");
            let ends_line = |c: char| c.is_control() || "\u{2028}\u{2029}".contains(c);
            assert!(!rest.contains(ends_line), "{text:?}");
            let (_, data) = text.trim_end().split_once("data: ").unwrap();
            let read: Value = serde_json::from_str(data).unwrap();
            assert_eq!(read.pointer(pointer), Some(&json!(ends)));
        }
    }

    #[test]
    fn the_page_for_readers_has_every_way_a_stream_ends() {
        let page = include_str!("../../../docs/streaming.md");
        let ends = [End::Finished, End::Credential, End::Access, End::Stopping];
        let events = ends.map(End::event).into_iter().chain([reset()]);
        for event in events {
            let text = String::from_utf8(event.to_vec()).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            let kind = lines[0].strip_prefix("event: ").unwrap();
            let data: Value =
                serde_json::from_str(lines[1].strip_prefix("data: ").unwrap()).unwrap();
            let row = format!("| `{kind}` | `{}` |", data["reason"].as_str().unwrap());
            assert!(page.contains(&row), "docs/streaming.md has no row {row}");
        }
    }
}
