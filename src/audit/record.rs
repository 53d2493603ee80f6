//! A decision as clients and exports see it (specification section 2.5), with what explains a
//! denial.

use crate::ids::rfc3339;
use crate::store::audit::{Outcome, Row};
use crate::store::tokens::CredentialKind;
use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

/// An access decision.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AccessDecision")]
pub struct Record {
    /// Its id.
    pub id: Uuid,
    /// When it was decided.
    #[serde(with = "rfc3339")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub timestamp: OffsetDateTime,
    /// Who, as `user:<user id>`.
    pub actor_subject: String,
    /// What was asked for: `read`, `write`, `admin` or `sign-in`.
    pub action: String,
    /// On what, as `<kind>:<id>`.
    pub resource: String,
    /// Whether the actor may.
    pub outcome: Outcome,
    /// Why, or which check refused.
    pub reason: String,
    /// Which check decided: `model`, or the name of a check before it.
    pub stage: String,
    /// The part of the check that refused.
    pub failing_part: Option<String>,
    /// What was asked of the authorization server; null if it was not asked.
    pub check: Option<CheckRecord>,
    /// How long the decision took, in milliseconds.
    pub duration_ms: f64,
    /// The request, as its answer named it.
    pub request_id: Option<String>,
    /// The request's trace (W3C Trace Context).
    pub trace_id: Option<String>,
    /// The id of the credential that the request came with.
    pub key_id: Option<Uuid>,
    /// The credential that the request came with; null where its kind was not recorded, as before there were sessions.
    pub credential: Option<CredentialRecord>,
    /// The route, as `METHOD /path/{parameter}`.
    pub route: Option<String>,
    /// The run that it is about.
    pub run_id: Option<Uuid>,
    /// The address that the request came from.
    pub client_address: Option<String>,
}

/// The credential that a request came with.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RecordedCredential")]
pub struct CredentialRecord {
    /// What it is.
    pub kind: CredentialKind,
    /// Its id; of one that was opened or minted, the new one's.
    pub id: Uuid,
}

/// What was asked of the authorization server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AccessCheck")]
pub struct CheckRecord {
    /// Who, as `user:<user id>`.
    pub user: String,
    /// What, such as `can_read`.
    pub relation: String,
    /// On what, as `<kind>:<id>`.
    pub object: String,
    /// The authorization server's store.
    pub store_id: String,
    /// The authorization model.
    pub model_id: String,
}

impl From<Row> for Record {
    fn from(row: Row) -> Self {
        let check = match (row.check_user, row.check_relation, row.check_object) {
            (Some(user), Some(relation), Some(object)) => Some(CheckRecord {
                user,
                relation,
                object,
                store_id: row.store_id.unwrap_or_default(),
                model_id: row.model_id.unwrap_or_default(),
            }),
            _ => None,
        };
        Self {
            id: row.id,
            timestamp: row.decided_at,
            actor_subject: row.actor_subject,
            action: row.action,
            resource: row.resource,
            outcome: row.outcome,
            reason: row.reason,
            stage: row.stage,
            failing_part: row.failing_part,
            check,
            duration_ms: milliseconds(row.duration_us),
            request_id: row.request_id.map(|id| format!("req-{id}")),
            trace_id: row.trace_id,
            key_id: row.key_id,
            credential: row
                .credential_kind
                .zip(row.key_id)
                .map(|(kind, id)| CredentialRecord { kind, id }),
            route: row.route,
            run_id: row.run_id,
            client_address: row.client_address,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "durations are far below what a double counts exactly"
)]
fn milliseconds(us: i64) -> f64 {
    us as f64 / 1000.0
}
