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

/// Runs of a conversation that are not erased, after a run, by id.
pub fn unerased_of_conversation(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    conversation_id: Uuid,
    after: Uuid,
    most: i64,
) -> Result<Vec<Uuid>> {
    let rows = tx.query(
        sql!("runs/unerased_of_conversation"),
        &[&tenant_id, &conversation_id, &after, &most],
    )?;
    rows.iter().map(Columns::only).collect()
}

/// Locks runs that ended before a time and are not erased, after a run, by id: the oldest first.
pub fn ended_before(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    before: OffsetDateTime,
    after: Uuid,
    most: i64,
) -> Result<Vec<Uuid>> {
    // A run that ended before a time was created before it, and its id says when.
    let rows = tx.query(
        sql!("runs/ended_before"),
        &[&tenant_id, &ids::first_of(before), &before, &after, &most],
    )?;
    rows.iter().map(Columns::only).collect()
}

/// Erases those of these runs that may be erased by now, with the runs below them. How many were erased.
pub fn erase_payloads(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    ids: &[Uuid],
    now: OffsetDateTime,
) -> Result<u64> {
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
