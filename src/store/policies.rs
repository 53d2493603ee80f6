//! Policies: the guardrails of a tenant and of its projects, which no agent takes away.
//!
//! A policy never changes: a new version takes its place, and older ones stay for whoever reads what they decided.

use super::projects::{self, Project};
use super::run_checks::CheckOrigin;
use super::tenants::{self, Tenant};
use super::{Columns, Sql, Tx};
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, Caller, May, Read};
use crate::{from_row, sql, texts};
use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    /// When readers of a stream see text that a check at `output` applies to.
    #[schemars(rename = "GuardrailStreaming")]
    Streaming {
        /// After the verdict.
        Held = "held",
        /// As the model writes it, before the verdict.
        Unchecked = "unchecked",
    }
}

impl Streaming {
    /// What counts if nothing was said.
    pub fn held() -> Self {
        Self::Held
    }
}

/// A policy's guardrails, for a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Standing {
    /// The tenant's or the project's.
    pub origin: CheckOrigin,
    /// Its version.
    pub version: i32,
    /// The list, which is not empty.
    pub guardrails: Value,
    /// When readers see text.
    pub streaming: Streaming,
}

impl Standing {
    /// Reads those of a column.
    pub(super) fn of_column(column: Value) -> Result<Vec<Self>> {
        serde_json::from_value(column).map_err(Error::internal)
    }
}

/// The policies that stand now for a project's runs, of which the tenant's comes first.
pub fn standing(sql: &mut impl Sql, tenant_id: Uuid, project_id: Uuid) -> Result<Vec<Standing>> {
    let row = sql.query_one(sql!("policies/standing"), &[&tenant_id, &project_id])?;
    Standing::of_column(row.column("standing")?)
}

/// A version of a policy.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Its number, from 1.
    pub version: i32,
    /// Its guardrails.
    pub guardrails: Value,
    /// When readers see text that they judge.
    pub streaming: Streaming,
    /// Who made it.
    pub created_by: Uuid,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

from_row!(Policy {
    version,
    guardrails,
    streaming,
    created_by,
    created_at
});

/// A version of a policy to make.
#[derive(Debug)]
pub struct New<'a> {
    /// See [`Policy`].
    pub guardrails: &'a Value,
    /// See [`Policy`].
    pub streaming: Streaming,
    /// The version that it takes the place of, 0 for none; none: whichever is the newest.
    pub expected_version: Option<u32>,
}

/// The newest version of the tenant's policy.
pub fn of_tenant(sql: &mut impl Sql, may: &impl May<Read, Tenant>) -> Result<Option<Policy>> {
    newest(sql, may.tenant_id(), None)
}

/// The newest version of the project's policy.
pub fn of_project(sql: &mut impl Sql, may: &impl May<Read, Project>) -> Result<Option<Policy>> {
    newest(sql, may.tenant_id(), Some(may.object_id()))
}

fn newest(sql: &mut impl Sql, tenant_id: Uuid, project_id: Option<Uuid>) -> Result<Option<Policy>> {
    sql.fetch_optional(sql!("policies/newest"), &[&tenant_id, &project_id])
}

/// Makes the next version of the tenant's policy.
///
/// # Errors
/// `conflict`: the newest version is not the expected one. `database-unavailable`.
pub fn put_of_tenant(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Tenant>,
    caller: &Caller,
    new: &New<'_>,
    now: OffsetDateTime,
) -> Result<Policy> {
    // One at a time, so that each gets a number of its own.
    tenants::lock(tx, may.tenant_id())?;
    put(tx, (caller, None), new, now)
}

/// Makes the next version of the project's policy.
///
/// # Errors
/// `project-archived`, and as for [`put_of_tenant`].
pub fn put_of_project(
    tx: &mut Tx<'_>,
    may: &impl May<Admin, Project>,
    caller: &Caller,
    new: &New<'_>,
    now: OffsetDateTime,
) -> Result<Policy> {
    projects::lock_open(tx, may.tenant_id(), may.object_id())?;
    put(tx, (caller, Some(may.object_id())), new, now)
}

fn put(
    tx: &mut Tx<'_>,
    (caller, project_id): (&Caller, Option<Uuid>),
    new: &New<'_>,
    now: OffsetDateTime,
) -> Result<Policy> {
    let newest = newest(tx, caller.tenant_id, project_id)?.map_or(0, |policy| policy.version);
    if let Some(expected) = new.expected_version
        && i64::from(expected) != i64::from(newest)
    {
        let message = format!(
            "The policy's newest version is {newest}, not {expected}: somebody else changed it. Read it, and put yours again."
        );
        return Err(Error::new(Code::Conflict, message).detail("newestVersion", newest));
    }
    tx.fetch_one(
        sql!("policies/insert"),
        &[
            &caller.tenant_id,
            &project_id,
            &(newest + 1),
            &new.guardrails,
            &new.streaming,
            &caller.user_id,
            &now,
        ],
    )
}
