//! Purges: the start of a chain is deleted, and an anchor is stored in its place.

use super::{Digest, Outcome, digest};
use crate::error::{Error, Result};
use crate::sql;
use crate::store::{Columns, FromRow, Sql, Tx};
use postgres::Row as DatabaseRow;
use time::{Date, OffsetDateTime};

/// How far a chain was purged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Which slot.
    pub slot: i32,
    /// Which of its chains.
    pub outcome: Outcome,
    /// Of the last decision that went.
    pub through_position: i64,
    /// Of the last batch that went.
    pub digest: Digest,
    /// Decisions that went, since the chain began.
    pub rows_purged: i64,
    /// When the last of them went.
    pub purged_at: OffsetDateTime,
    /// None: there was no key at the purge.
    pub seal: Option<Seal>,
}

/// Who vouches for an anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// The key that signed the anchor (Ed25519).
    pub public_key: [u8; 32],
    /// Over all else of the anchor.
    pub signature: [u8; 64],
}

/// The end of what is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Which slot.
    pub slot: i32,
    /// Of the last decision that goes.
    pub through_position: i64,
    /// Of the last batch that goes.
    pub digest: Digest,
    /// Decisions that go.
    pub rows: i64,
}

impl FromRow for Anchor {
    fn from_row(row: &DatabaseRow) -> Result<Self> {
        let key: Option<&[u8]> = row.column("public_key")?;
        let signature: Option<&[u8]> = row.column("signature")?;
        let seal = match key.zip(signature) {
            Some((key, signature)) => Some(Seal {
                public_key: key.try_into().map_err(Error::internal)?,
                signature: signature.try_into().map_err(Error::internal)?,
            }),
            None => None,
        };
        Ok(Self {
            slot: row.column("slot")?,
            outcome: row.column("outcome")?,
            through_position: row.column("through_position")?,
            digest: digest(row, "digest")?,
            rows_purged: row.column("rows_purged")?,
            purged_at: row.column("purged_at")?,
            seal,
        })
    }
}

impl FromRow for End {
    fn from_row(row: &DatabaseRow) -> Result<Self> {
        Ok(Self {
            slot: row.column("slot")?,
            through_position: row.column("through_position")?,
            digest: digest(row, "digest")?,
            rows: row.column("rows")?,
        })
    }
}

/// Whether this transaction is the one that may purge now.
pub fn lock(tx: &mut Tx<'_>) -> Result<bool> {
    tx.query_one(sql!("audit/lock_purge"), &[])?.only()
}

/// The first days of the months that have a partition, oldest first.
pub fn months(sql: &mut impl Sql, outcome: Outcome) -> Result<Vec<Date>> {
    let rows = sql.query(sql!("audit/months"), &[&outcome])?;
    rows.iter().map(Columns::only).collect()
}

/// Where each chain ends that has something before then.
pub fn ends(sql: &mut impl Sql, outcome: Outcome, before: OffsetDateTime) -> Result<Vec<End>> {
    sql.fetch_all(sql!("audit/past_chains"), &[&outcome, &before])
}

/// Where the oldest batches of a chain end, with the time of the last; at most `most` batches.
pub fn chunk(
    sql: &mut impl Sql,
    outcome: Outcome,
    slot: i32,
    before: OffsetDateTime,
    most: i64,
) -> Result<Option<(End, OffsetDateTime)>> {
    let rows = sql.query(
        sql!("audit/past_batches"),
        &[&outcome, &slot, &before, &most],
    )?;
    rows.last()
        .map(|row| Ok((End::from_row(row)?, row.column("decided_at")?)))
        .transpose()
}

/// The chain's anchor so far.
pub fn find_anchor(sql: &mut impl Sql, slot: i32, outcome: Outcome) -> Result<Option<Anchor>> {
    sql.fetch_optional(sql!("audit/anchor"), &[&slot, &outcome])
}

/// Keeps the anchor, in place of the one before.
pub fn put_anchor(tx: &mut Tx<'_>, anchor: &Anchor) -> Result<()> {
    let seal = anchor.seal.as_ref();
    tx.execute(
        sql!("audit/put_anchor"),
        &[
            &anchor.slot,
            &anchor.outcome,
            &anchor.through_position,
            &anchor.digest.as_slice(),
            &anchor.rows_purged,
            &anchor.purged_at,
            &seal.map(|seal| seal.public_key.as_slice()),
            &seal.map(|seal| seal.signature.as_slice()),
        ],
    )?;
    Ok(())
}

/// Drops a month of one outcome.
///
/// # Errors
/// `database-unavailable`: somebody reads it just now. `internal`: the role does not own it.
pub fn drop_month(tx: &mut Tx<'_>, outcome: Outcome, month: Date) -> Result<()> {
    tx.query(sql!("audit/drop_partitions"), &[&outcome, &month])?;
    Ok(())
}

/// Deletes a chain's beginning.
pub fn delete(
    tx: &mut Tx<'_>,
    outcome: Outcome,
    end: &End,
    through: OffsetDateTime,
) -> Result<u64> {
    let deleted = tx.execute(
        sql!("audit/delete_decisions"),
        &[&outcome, &end.slot, &end.through_position, &through],
    )?;
    tx.execute(
        sql!("audit/delete_batches"),
        &[&outcome, &end.slot, &end.through_position, &through],
    )?;
    Ok(deleted)
}
