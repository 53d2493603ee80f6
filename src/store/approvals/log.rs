//! What happened to approvals, in the order of its positions: the events that reviewers get.
//!
//! A position is given out before its transaction commits. So a later one may be seen first, and one whose transaction broke
//! off never comes. Every transaction that takes a position has written before, and so has a number of its own by then:
//! whoever misses a position asks for the number of a later transaction ([`transaction`]). Once all before that one are over,
//! what is not there will never be.
//!
//! Not here: which reviewers may see what (`authz`).

use super::ApprovalStatus;
use crate::error::Result;
use crate::store::{Columns, Sql};
use crate::{from_row, sql, text_column};
use time::OffsetDateTime;
use uuid::Uuid;

/// What happened to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It was opened, and waits.
    Opened,
    /// It waits, and was assigned to somebody or taken from everybody.
    Assigned,
    /// It waits no more.
    Closed(ApprovalStatus),
}

impl Happened {
    const fn text(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Assigned => "assigned",
            Self::Closed(status) => status.text(),
        }
    }

    /// What this version does not know has closed the approval.
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "opened" => Self::Opened,
            "assigned" => Self::Assigned,
            closed => Self::Closed(ApprovalStatus::parse(closed).unwrap_or(ApprovalStatus::Voided)),
        })
    }
}

text_column!(Happened, text, parse);

/// Something that happened to an approval, with the approval as it stands.
#[derive(Debug, Clone)]
pub struct Logged {
    /// The tenant.
    pub tenant_id: Uuid,
    /// Its place among all that happened to approvals.
    pub position: i64,
    /// What happened.
    pub kind: Happened,
    /// When.
    pub at: OffsetDateTime,
    /// The approval.
    pub approval_id: Uuid,
    /// Its project.
    pub project_id: Uuid,
    /// The run that waits for it.
    pub run_id: Uuid,
    /// The role that may decide.
    pub required_role: String,
    /// What a reviewer reads first.
    pub title: String,
    /// Whom it is assigned to now.
    pub assigned_to: Option<Uuid>,
    /// Until when it waits.
    pub expires_at: OffsetDateTime,
    /// The oldest transaction that is under way.
    pub oldest_transaction: i64,
}

from_row!(Logged {
    tenant_id,
    position,
    kind,
    at,
    approval_id,
    project_id,
    run_id,
    required_role,
    title,
    assigned_to,
    expires_at,
    oldest_transaction
});

/// What happened after a position to approvals of any tenant, by position, `limit` of it at most: for readers of this process,
/// each of whom gets what it may see.
pub fn since(sql: &mut impl Sql, position: i64, limit: i64) -> Result<Vec<Logged>> {
    sql.fetch_all(sql!("approvals/log_since"), &[&position, &limit])
}

/// What happened to approvals of a tenant after a position and up to another, by position, `limit` of it at most.
pub fn of_tenant(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    (after, to): (i64, i64),
    limit: i64,
) -> Result<Vec<Logged>> {
    sql.fetch_all(
        sql!("approvals/log_of_tenant"),
        &[&tenant_id, &after, &to, &limit],
    )
}

/// Where positions have come to.
#[derive(Debug, Clone, Copy)]
pub struct Newest {
    /// The newest that was given out.
    pub position: i64,
    /// The oldest transaction that is under way.
    pub oldest_transaction: i64,
}

from_row!(Newest {
    position,
    oldest_transaction
});

/// Where positions have come to.
pub fn newest(sql: &mut impl Sql) -> Result<Newest> {
    sql.fetch_one(sql!("approvals/log_position"), &[])
}

/// The number of a transaction later than all that have begun to write.
pub fn transaction(sql: &mut impl Sql) -> Result<i64> {
    sql.query_one(sql!("approvals/transaction"), &[])?.only()
}
