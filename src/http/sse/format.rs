//! The text of one event.

use crate::ids::rfc3339;
use crate::store::events::StoredEvent;
use bytes::Bytes;
use serde_json::{Value, json};

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

/// A durable event: its number is the id.
pub(super) fn durable(event: &StoredEvent) -> Bytes {
    let data = json!({
        "seq": event.seq,
        "kind": event.kind,
        "createdAt": rfc3339::text(event.created_at),
        "data": event.data,
    });
    Bytes::from(format!(
        "id: {}\nevent: {}\ndata: {data}\n\n",
        event.seq, event.kind
    ))
}

/// A passing event: without an id, so that a client that comes back does not count it.
pub(super) fn passing(kind: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))
}

/// Why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The run is finished and its last event was sent.
    Finished,
    /// The credential has ended or was revoked.
    Credential,
    /// The reader may not read the run any more.
    Access,
    /// The server is stopping: come back.
    Stopping,
}

impl End {
    pub(super) fn event(self) -> Bytes {
        let reason = match self {
            Self::Finished => "run-finished",
            Self::Credential => "credential-ended",
            Self::Access => "permission-denied",
            Self::Stopping => "server-stopping",
        };
        passing("stream.end", &json!({"reason": reason}))
    }
}

/// The reader cannot keep up: it is to read the run anew, or come back.
pub(super) fn reset() -> Bytes {
    passing("stream.reset", &json!({"reason": "reader-too-slow"}))
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
