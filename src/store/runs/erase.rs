//! Erasing what runs were given, said and answered. The rows stay: what was used, when, and how it ended.
//!
//! A run is erased with the runs below it, and only once all of them have ended: a parent may still read what its child
//! answered. Text is deleted or replaced in every table that holds it; a test looks for it in a dump of the database.
//!
//! Not here: which conversation, and how old (`runtime::erasure`, `runtime::maintenance`).

use crate::error::Result;
use crate::ids;
use crate::sql;
use crate::store::{Columns, Sql, Tx};
use time::OffsetDateTime;
use uuid::Uuid;

/// Erases a batch of a conversation's runs. How many runs were erased, and whether any is left.
pub fn erase_of_conversation(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    conversation_id: Uuid,
    most: i64,
    now: OffsetDateTime,
) -> Result<(u64, bool)> {
    let rows = tx.query(
        sql!("runs/unerased_of_conversation"),
        &[&tenant_id, &conversation_id, &most],
    )?;
    let ids: Vec<Uuid> = rows.iter().map(Columns::only).collect::<Result<_>>()?;
    Ok((erase(tx, tenant_id, &ids, now)?, !ids.is_empty()))
}

/// Erases a batch of runs that ended before a time, the oldest first. How many.
pub fn erase_ended_before(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    before: OffsetDateTime,
    most: i64,
    now: OffsetDateTime,
) -> Result<u64> {
    // A run that ended before a time was created before it, and its id says when.
    let rows = tx.query(
        sql!("runs/ended_before"),
        &[&tenant_id, &ids::first_of(before), &before, &most],
    )?;
    let ids: Vec<Uuid> = rows.iter().map(Columns::only).collect::<Result<_>>()?;
    erase(tx, tenant_id, &ids, now)
}

fn erase(tx: &mut Tx<'_>, tenant_id: Uuid, ids: &[Uuid], now: OffsetDateTime) -> Result<u64> {
    if ids.is_empty() {
        return Ok(0);
    }
    let erased: i64 = tx
        .query_one(sql!("runs/erase_payloads"), &[&tenant_id, &ids, &now])?
        .only()?;
    Ok(u64::try_from(erased).unwrap_or(0))
}

/// Notes the event that tells webhooks why a run failed.
pub fn note_webhook_event(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    run_id: Uuid,
    event_id: Uuid,
) -> Result<()> {
    sql.execute(
        sql!("runs/note_webhook_event"),
        &[&tenant_id, &run_id, &event_id],
    )?;
    Ok(())
}
