//! Rows of the audit: decisions, the slots of their writers, the hash chain.
//!
//! Guarantees: a batch is written whole and under the epoch of its slot, or not at all (a writer
//! with an old epoch writes nothing).
//!
//! Not here: which decisions are recorded, and in which order (`audit`). Nothing here takes a
//! proof: the audit writes, and `api/audit` reads for a tenant's admin.

pub mod pages;
pub mod purge;
pub mod snapshot;

use super::tokens::CredentialKind;
use super::{Columns, FromRow, Sql};
use crate::error::{Error, Result};
use crate::{from_row, sql, texts};
use postgres::Row as DatabaseRow;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

/// A SHA-256.
pub type Digest = [u8; 32];

texts! {
    // Specification, section 2.5.
    /// Whether the caller may.
    #[schemars(rename = "DecisionOutcome")]
    Outcome {
        /// The caller may.
        Allowed = "allowed",
        /// The caller may not.
        Denied = "denied",
    }
}

/// A decision as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its id.
    pub id: Uuid,
    /// Whose.
    pub tenant_id: Uuid,
    /// Of its writer; 0 before it is written.
    pub slot: i32,
    /// Within its slot; 0 before it is written.
    pub position: i64,
    /// When, in microseconds.
    pub decided_at: OffsetDateTime,
    /// Allowed or denied.
    pub outcome: Outcome,
    /// Who, as `user:<id>`.
    pub actor_subject: String,
    /// What was asked for.
    pub action: String,
    /// On what, as `<kind>:<id>`.
    pub resource: String,
    /// Why.
    pub reason: String,
    /// Which check decided.
    pub stage: String,
    /// The part of it that refused.
    pub failing_part: Option<String>,
    /// The check asked of the authorization server: who.
    pub check_user: Option<String>,
    /// What.
    pub check_relation: Option<String>,
    /// On what.
    pub check_object: Option<String>,
    /// In which of its stores.
    pub store_id: Option<String>,
    /// Under which model.
    pub model_id: Option<String>,
    /// How long the check took, in microseconds.
    pub duration_us: i64,
    /// The request.
    pub request_id: Option<Uuid>,
    /// Its trace.
    pub trace_id: Option<String>,
    /// The credential that it came with.
    pub key_id: Option<Uuid>,
    /// What kind of credential that is; none: a program before this one wrote it.
    pub credential_kind: Option<CredentialKind>,
    /// The route, as `METHOD /path/{parameter}`.
    pub route: Option<String>,
    /// The run that it is about.
    pub run_id: Option<Uuid>,
    /// Where it came from.
    pub client_address: Option<String>,
}

/// A writer's place, held under an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Which.
    pub slot: i32,
    /// Fences whoever held it before.
    pub epoch: i64,
    /// Of the last decision.
    pub position: i64,
    /// Of the last decision.
    pub decided_at: OffsetDateTime,
    /// Of the last batch of each chain, in the order of [`Outcome::ALL`].
    pub digests: [Digest; 2],
}

/// Decisions of one slot and outcome that were committed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Which chain.
    pub outcome: Outcome,
    /// Of its first decision.
    pub first_position: i64,
    /// Of its last decision.
    pub last_position: i64,
    /// Decisions.
    pub row_count: i32,
    /// Of its last decision.
    pub decided_at: OffsetDateTime,
    /// Over the decisions and the digest before.
    pub digest: Digest,
    /// Of the batch before; zeros before the first.
    pub previous_digest: Digest,
}

/// A digest column, whose length the table checks.
fn digest(row: &DatabaseRow, column: &str) -> Result<Digest> {
    let bytes: &[u8] = row.column(column)?;
    bytes.try_into().map_err(Error::internal)
}

/// A slot's digests, in the order of [`Outcome::ALL`].
fn digests(row: &DatabaseRow) -> Result<[Digest; 2]> {
    Ok([
        digest(row, "allowed_digest")?,
        digest(row, "denied_digest")?,
    ])
}

from_row!(Row {
    id,
    tenant_id,
    slot,
    position,
    decided_at,
    outcome,
    actor_subject,
    action,
    resource,
    reason,
    stage,
    failing_part,
    check_user,
    check_relation,
    check_object,
    store_id,
    model_id,
    duration_us,
    request_id,
    trace_id,
    key_id,
    credential_kind,
    route,
    run_id,
    client_address,
});

impl FromRow for Slot {
    fn from_row(row: &DatabaseRow) -> Result<Self> {
        Ok(Self {
            slot: row.column("slot")?,
            epoch: row.column("epoch")?,
            position: row.column("position")?,
            decided_at: row.column("decided_at")?,
            digests: digests(row)?,
        })
    }
}

/// Where each writer stands: its slot, its last position and its last time.
pub fn writers(sql: &mut impl Sql) -> Result<Vec<(i32, i64, OffsetDateTime)>> {
    let rows = sql.query(sql!("audit/writers"), &[])?;
    rows.iter()
        .map(|row| {
            Ok((
                row.column("slot")?,
                row.column("position")?,
                row.column("decided_at")?,
            ))
        })
        .collect()
}

/// Takes a slot that nobody holds and that is not ahead of its time, or makes one. None: another
/// writer made one at this moment.
pub fn claim(sql: &mut impl Sql, lease_seconds: f64) -> Result<Option<Slot>> {
    match sql.fetch_optional(sql!("audit/claim"), &[&lease_seconds])? {
        Some(slot) => Ok(Some(slot)),
        None => sql.fetch_optional(
            sql!("audit/add_slot"),
            &[&lease_seconds, &[0_u8; 32].as_slice()],
        ),
    }
}

/// Takes one's own slot again, under a new epoch. None: it was lost.
pub fn claim_again(
    sql: &mut impl Sql,
    held: (i32, i64),
    lease_seconds: f64,
) -> Result<Option<Slot>> {
    sql.fetch_optional(
        sql!("audit/claim_again"),
        &[&held.0, &held.1, &lease_seconds],
    )
}

/// Holds it longer. False: it was lost.
pub fn renew(sql: &mut impl Sql, held: (i32, i64), lease_seconds: f64) -> Result<bool> {
    let touched = sql.execute(sql!("audit/renew"), &[&held.0, &held.1, &lease_seconds])?;
    Ok(touched == 1)
}

/// Gives it back.
pub fn free(sql: &mut impl Sql, held: (i32, i64)) -> Result<()> {
    sql.execute(sql!("audit/free"), &[&held.0, &held.1])?;
    Ok(())
}

/// Whether this very batch is written.
pub fn has_batch(sql: &mut impl Sql, slot: i32, batch: &Batch) -> Result<bool> {
    let row = sql.query_one(
        sql!("audit/has_batch"),
        &[
            &slot,
            &batch.outcome,
            &batch.first_position,
            &batch.decided_at,
            &batch.digest.as_slice(),
        ],
    )?;
    row.only()
}

/// Writes the decisions and their batches. `after` is the slot as it stands then. False: the slot
/// was lost, and nothing is written.
///
/// # Errors
/// `database-unavailable`: it may be written all the same. `internal`: a row cannot be kept.
pub fn write(
    sql: &mut impl Sql,
    after: &Slot,
    batches: &[Batch],
    rows: &[&mut Row],
    lease_seconds: f64,
) -> Result<bool> {
    if let ([batch], [row]) = (batches, rows) {
        return write_one(sql, after, batch, row, lease_seconds);
    }
    let rows: Vec<&Row> = rows.iter().map(|row| &**row).collect();
    let rows = rows.as_slice();
    let text = |take: fn(&Row) -> &Option<String>| each(rows, move |row| take(row).as_deref());
    let written = sql.execute(
        sql!("audit/write"),
        &[
            &after.slot,
            &after.epoch,
            &after.position,
            &after.decided_at,
            &after.digests[0].as_slice(),
            &after.digests[1].as_slice(),
            &lease_seconds,
            &each(batches, |batch| batch.outcome),
            &each(batches, |batch| batch.first_position),
            &each(batches, |batch| batch.last_position),
            &each(batches, |batch| batch.row_count),
            &each(batches, |batch| batch.decided_at),
            &each(batches, |batch| batch.digest.as_slice()),
            &each(batches, |batch| batch.previous_digest.as_slice()),
            &each(rows, |row| row.tenant_id),
            &each(rows, |row| row.position),
            &each(rows, |row| row.decided_at),
            &each(rows, |row| row.outcome),
            &each(rows, |row| row.id),
            &each(rows, |row| row.actor_subject.as_str()),
            &each(rows, |row| row.action.as_str()),
            &each(rows, |row| row.resource.as_str()),
            &each(rows, |row| row.reason.as_str()),
            &each(rows, |row| row.stage.as_str()),
            &text(|row| &row.failing_part),
            &text(|row| &row.check_user),
            &text(|row| &row.check_relation),
            &text(|row| &row.check_object),
            &text(|row| &row.store_id),
            &text(|row| &row.model_id),
            &each(rows, |row| row.duration_us),
            &each(rows, |row| row.request_id),
            &text(|row| &row.trace_id),
            &each(rows, |row| row.key_id),
            &text(|row| &row.route),
            &each(rows, |row| row.run_id),
            &text(|row| &row.client_address),
            &each(rows, |row| row.credential_kind),
        ],
    )?;
    Ok(written > 0)
}

/// What most requests leave while few come at once.
fn write_one(
    sql: &mut impl Sql,
    after: &Slot,
    batch: &Batch,
    row: &Row,
    lease_seconds: f64,
) -> Result<bool> {
    let written = sql.execute(
        sql!("audit/write_one"),
        &[
            &after.slot,
            &after.epoch,
            &after.position,
            &after.decided_at,
            &after.digests[0].as_slice(),
            &after.digests[1].as_slice(),
            &lease_seconds,
            &row.outcome,
            &row.position,
            &row.decided_at,
            &batch.digest.as_slice(),
            &batch.previous_digest.as_slice(),
            &row.tenant_id,
            &row.id,
            &row.actor_subject,
            &row.action,
            &row.resource,
            &row.reason,
            &row.stage,
            &row.failing_part,
            &row.check_user,
            &row.check_relation,
            &row.check_object,
            &row.store_id,
            &row.model_id,
            &row.duration_us,
            &row.request_id,
            &row.trace_id,
            &row.key_id,
            &row.route,
            &row.run_id,
            &row.client_address,
            &row.credential_kind,
        ],
    )?;
    Ok(written > 0)
}

fn each<'a, S, T>(all: &'a [S], take: impl Fn(&'a S) -> T) -> Vec<T> {
    all.iter().map(take).collect()
}

/// Makes the partitions that are not there yet: two months ahead.
///
/// # Errors
/// `database-unavailable`; `internal` where the role may not make tables.
pub fn attach_partitions(sql: &mut impl Sql, today: Date) -> Result<()> {
    sql.query(sql!("audit/attach_partitions"), &[&today])?;
    Ok(())
}
