//! Purges: the beginning of a chain goes, an anchor stays in its place.

use super::{Digest, Outcome, digest};
use crate::error::{Error, Result};
use crate::sql;
use crate::store::{Sql, Tx};
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
    /// The key that signed this (Ed25519).
    pub public_key: [u8; 32],
    /// Over all of this.
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

pub(super) fn anchor(row: &DatabaseRow) -> Result<Anchor> {
    let outcome: &str = row.try_get(1)?;
    let (key, signature): (&[u8], &[u8]) = (row.try_get(6)?, row.try_get(7)?);
    Ok(Anchor {
        slot: row.try_get(0)?,
        outcome: Outcome::from_text(outcome)
            .ok_or_else(|| Error::internal(format!("an anchor is {outcome}")))?,
        through_position: row.try_get(2)?,
        digest: digest(row, 3)?,
        rows_purged: row.try_get(4)?,
        purged_at: row.try_get(5)?,
        public_key: key.try_into().map_err(Error::internal)?,
        signature: signature.try_into().map_err(Error::internal)?,
    })
}

/// Whether this transaction is the one that may purge now.
///
/// # Errors
/// `database-unavailable`.
pub fn lock(tx: &mut Tx<'_>) -> Result<bool> {
    Ok(tx.query_one(sql!("audit/lock_purge"), &[])?.get(0))
}

/// The first days of the months that have a partition, oldest first.
///
/// # Errors
/// `database-unavailable`.
pub fn months(sql: &mut impl Sql, outcome: Outcome) -> Result<Vec<Date>> {
    let rows = sql.query(sql!("audit/months"), &[&outcome.text()])?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Where each chain ends that has something before then.
///
/// # Errors
/// `database-unavailable`.
pub fn ends(sql: &mut impl Sql, outcome: Outcome, before: OffsetDateTime) -> Result<Vec<End>> {
    let rows = sql.query(sql!("audit/past_chains"), &[&outcome.text(), &before])?;
    rows.iter()
        .map(|row| {
            Ok(End {
                slot: row.try_get(0)?,
                through_position: row.try_get(1)?,
                digest: digest(row, 2)?,
                rows: row.try_get(3)?,
            })
        })
        .collect()
}

/// Where the oldest batches of a chain end, with the time of the last; at most `most` batches.
///
/// # Errors
/// `database-unavailable`.
pub fn chunk(
    sql: &mut impl Sql,
    outcome: Outcome,
    slot: i32,
    before: OffsetDateTime,
    most: i64,
) -> Result<Option<(End, OffsetDateTime)>> {
    let rows = sql.query(
        sql!("audit/past_batches"),
        &[&outcome.text(), &slot, &before, &most],
    )?;
    rows.last()
        .map(|row| {
            let end = End {
                slot: row.try_get(0)?,
                through_position: row.try_get(1)?,
                digest: digest(row, 2)?,
                rows: row.try_get(4)?,
            };
            Ok((end, row.try_get(3)?))
        })
        .transpose()
}

/// The chain's anchor so far.
///
/// # Errors
/// `database-unavailable`.
pub fn find_anchor(sql: &mut impl Sql, slot: i32, outcome: Outcome) -> Result<Option<Anchor>> {
    let row = sql.query_opt(sql!("audit/anchor"), &[&slot, &outcome.text()])?;
    row.as_ref().map(anchor).transpose()
}

/// Keeps the anchor, in place of the one before.
///
/// # Errors
/// `database-unavailable`.
pub fn put_anchor(tx: &mut Tx<'_>, anchor: &Anchor) -> Result<()> {
    tx.execute(
        sql!("audit/put_anchor"),
        &[
            &anchor.slot,
            &anchor.outcome.text(),
            &anchor.through_position,
            &anchor.digest.as_slice(),
            &anchor.rows_purged,
            &anchor.purged_at,
            &anchor.public_key.as_slice(),
            &anchor.signature.as_slice(),
        ],
    )?;
    Ok(())
}

/// Drops a month of one outcome.
///
/// # Errors
/// `database-unavailable`: somebody reads it just now. `internal`: the role does not own it.
pub fn drop_month(tx: &mut Tx<'_>, outcome: Outcome, month: Date) -> Result<()> {
    tx.query(sql!("audit/drop_partitions"), &[&outcome.text(), &month])?;
    Ok(())
}

/// Deletes a chain's beginning.
///
/// # Errors
/// `database-unavailable`.
pub fn delete(
    tx: &mut Tx<'_>,
    outcome: Outcome,
    end: &End,
    through: OffsetDateTime,
) -> Result<u64> {
    let deleted = tx.execute(
        sql!("audit/delete_decisions"),
        &[&outcome.text(), &end.slot, &end.through_position, &through],
    )?;
    tx.execute(
        sql!("audit/delete_batches"),
        &[&outcome.text(), &end.slot, &end.through_position, &through],
    )?;
    Ok(deleted)
}
