//! The events of approvals for reviewers, and the schema of what the `data` line holds.

use super::format::{StreamEnd, StreamReset};
use crate::ids::Timestamp;
use crate::store::approvals::ApprovalStatus;
use crate::store::approvals::log::{Happened, Logged};
use crate::store::events::StoredEvent;
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use uuid::Uuid;

/// What happened to an approval.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(rename = "ApprovalEventKind")]
enum Kind {
    /// It was opened, and waits.
    #[serde(rename = "approval.waiting")]
    Waiting,
    /// It waits, and was assigned to somebody or taken from everybody.
    #[serde(rename = "approval.assigned")]
    Assigned,
    /// It waits no more.
    #[serde(rename = "approval.closed")]
    Closed,
}

impl Kind {
    const fn of(happened: Happened) -> (Self, ApprovalStatus) {
        match happened {
            Happened::Opened => (Self::Waiting, ApprovalStatus::Waiting),
            Happened::Assigned => (Self::Assigned, ApprovalStatus::Waiting),
            Happened::Closed(status) => (Self::Closed, status),
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Waiting => "approval.waiting",
            Self::Assigned => "approval.assigned",
            Self::Closed => "approval.closed",
        }
    }
}

/// An approval, as the event left it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ApprovalChange<'a> {
    approval_id: Uuid,
    project_id: Uuid,
    run_id: Uuid,
    title: &'a str,
    /// The reviewer role that may decide.
    required_role: &'a str,
    status: ApprovalStatus,
    /// Whom it is assigned to by now, if that has changed since.
    assigned_to: Option<Uuid>,
    /// Until when it waits, if it waits.
    expires_at: Timestamp,
}

/// Something that happened to an approval.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ApprovalEvent<'a> {
    /// The place among all events of approvals; later ones have higher numbers, with gaps.
    seq: i64,
    kind: Kind,
    created_at: Timestamp,
    data: ApprovalChange<'a>,
}

/// The stream begins here: an event with a higher number comes on it, whatever has a lower one shows in the lists.
#[derive(Debug, Serialize, JsonSchema)]
struct StreamStart {
    /// The number.
    seq: i64,
}

pub(super) fn event(logged: &Logged) -> Bytes {
    let (kind, status) = Kind::of(logged.kind);
    let change = ApprovalChange {
        approval_id: logged.approval_id,
        project_id: logged.project_id,
        run_id: logged.run_id,
        title: &logged.title,
        required_role: &logged.required_role,
        status,
        assigned_to: logged.assigned_to,
        expires_at: logged.expires_at.into(),
    };
    super::format::durable(&StoredEvent {
        seq: logged.position,
        kind: kind.text().to_owned(),
        data: json!(change),
        created_at: logged.at,
    })
}

/// It has an id, so that a client that comes back before anything has happened misses nothing.
pub(super) fn start(position: i64) -> Bytes {
    let data = json!(StreamStart { seq: position });
    super::format::event(Some(position), "stream.start", &data)
}

/// What the `data` lines of a reviewer's stream hold.
pub(in crate::http) struct ApprovalStreamData;

impl JsonSchema for ApprovalStreamData {
    fn schema_name() -> Cow<'static, str> {
        "ApprovalStreamData".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "The `data` of one server-sent event. Its `event` line says what it is: `stream.start`, `stream.end`, \
                `stream.reset`, or the `kind` of what happened to an approval, whose number is then the `id`.",
            "anyOf": [
                generator.subschema_for::<ApprovalEvent<'_>>(),
                generator.subschema_for::<StreamStart>(),
                generator.subschema_for::<StreamEnd>(),
                generator.subschema_for::<StreamReset>(),
            ],
        })
    }
}
