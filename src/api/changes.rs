//! `/v1/changes/stream`: hints that something changed.

use crate::authz::ChangeFollower;
use crate::error::Result;
use crate::http::context::Cx;
use crate::http::input::Query;
use crate::http::output::Changes;
use crate::http::route::{Method, Route, route};
use crate::ids::Id;
use crate::store::changes::ChangeKind;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Vec<Route> {
    vec![route(
        Method::Get,
        "/v1/changes/stream",
        "changes.follow",
        "Be told, as server-sent events, which of the objects change that the caller may list",
        follow,
    )]
}

/// Which changes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FollowChanges {
    /// Of this kind; given several times: of all of them. Left out: of every kind that the caller may list.
    #[serde(default)]
    #[schemars(length(max = ChangeKind::ALL.len()))]
    #[expect(dead_code, reason = "the access check reads it")]
    kind: Vec<ChangeKind>,
    /// In this project.
    #[expect(dead_code, reason = "the access check reads it")]
    project_id: Option<Id>,
    /// Taken and not read: a hint has no number, and a stream begins with hints for everything.
    #[expect(dead_code, reason = "it says nothing")]
    last_event_id: Option<String>,
}

fn follow(cx: &Cx<'_>, may: ChangeFollower, _: Query<FollowChanges>) -> Result<Changes> {
    cx.streams().follow_changes(may).map(Changes)
}
