//! The durable progress of runs, as readers see it.
//!
//! The truth is `(run, seq)`: a reader that has everything up to `seq` misses nothing by asking for
//! what comes [`after`]. The global position only says which runs moved, also on other replicas.
//! Positions are given out before their transactions commit, so a reader asks again for those that
//! it missed of the last few seconds.

use super::deltas::{StoredDelta, Stream};
use super::runs::storable;
use super::{Columns, Sql};
use crate::error::Result;
use crate::proof::{May, Read};
use crate::sql;
use crate::store::runs::Run;
use postgres::Row;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// An event that is about to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Its kind.
    pub kind: &'static str,
    /// Its data, an object.
    pub data: Value,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Its number in the run, from 1 without gaps: the SSE `id`.
    pub seq: i64,
    /// Its kind, such as `step.completed`.
    pub kind: String,
    /// Its data: `runtime::progress::events` has the list.
    pub data: Value,
    /// When it was written.
    pub created_at: OffsetDateTime,
}

impl NewEvent {
    /// The event as it is read once it is written.
    pub fn stored(&self, seq: i64, created_at: OffsetDateTime) -> StoredEvent {
        StoredEvent {
            seq,
            kind: self.kind.to_owned(),
            data: storable::value(&self.data).into_owned(),
            created_at,
        }
    }
}

/// Events that follow one another.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<StoredEvent>,
    /// More follow.
    pub more: bool,
}

/// What the newest event of a step says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastStep {
    /// Its kind, such as `step.started`.
    pub kind: String,
    /// The step.
    pub step: i32,
    /// Its attempt.
    pub attempt: i32,
}

/// An event that says that its run moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The run.
    pub run_id: Uuid,
    /// The event's number in it.
    pub seq: i64,
    /// Its position.
    pub position: i64,
}

/// The events after `seq`, in order: `limit` at most, and none after the one that takes them past
/// `bytes` of data.
pub fn after(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    seq: i64,
    limit: i64,
    bytes: i64,
) -> Result<EventPage> {
    let rows = sql.query(
        sql!("events/after"),
        &[&may.tenant_id(), &may.object_id(), &seq, &limit, &bytes],
    )?;
    page_of(&rows)
}

/// As [`after`], with what the run has streamed of the step that is under way, in order, as of the same moment.
pub fn after_with_text(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    seq: i64,
    limit: i64,
    bytes: i64,
) -> Result<(EventPage, Vec<StoredDelta>)> {
    let (tenant_id, run_id) = (may.tenant_id(), may.object_id());
    let rows = sql.query(
        sql!("events/after_with_text"),
        &[&tenant_id, &run_id, &seq, &limit, &bytes],
    )?;
    // Rows of text have no number of an event.
    let mut events = 0;
    while let Some(row) = rows.get(events)
        && row.column::<Option<i64>>("seq")?.is_some()
    {
        events += 1;
    }
    let (events, text) = rows.split_at(events);
    let text = text.iter().map(|row| {
        Ok(StoredDelta {
            tenant_id,
            run_id,
            step: row.column("step")?,
            attempt: row.column("attempt")?,
            stream: Stream::of_column(row.column("is_reasoning")?),
            offset: row.column("text_offset")?,
            text: row.column("text")?,
            position: 0,
        })
    });
    Ok((page_of(events)?, text.collect::<Result<_>>()?))
}

fn page_of(rows: &[Row]) -> Result<EventPage> {
    let more = rows.last().map_or(Ok(false), |row| row.column("more"))?;
    let events = rows
        .iter()
        .map(|row| {
            Ok(StoredEvent {
                seq: row.column("seq")?,
                kind: row.column("kind")?,
                data: row.column("data")?,
                created_at: row.column("created_at")?,
            })
        })
        .collect::<Result<_>>()?;
    Ok(EventPage { events, more })
}

/// The newest event of a step among those up to `seq`.
pub fn last_step(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    seq: i64,
) -> Result<Option<LastStep>> {
    let rows = sql.query(
        sql!("events/last_step"),
        &[&may.tenant_id(), &may.object_id(), &seq],
    )?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    Ok(Some(LastStep {
        kind: row.column("kind")?,
        step: row.column("step")?,
        attempt: row.column("attempt")?,
    }))
}

/// The events after a position, `limit` of them at most and by position, and those at the positions in `missing`: a hint
/// for a reader of this process, which looks up only what its clients may read.
pub fn moved_since(
    sql: &mut impl Sql,
    position: i64,
    missing: &[i64],
    limit: i64,
) -> Result<Vec<Moved>> {
    let rows = sql.query(sql!("events/moved_since"), &[&position, &missing, &limit])?;
    rows.iter()
        .map(|row| {
            Ok(Moved {
                run_id: row.column("run_id")?,
                seq: row.column("seq")?,
                position: row.column("position")?,
            })
        })
        .collect()
}

/// The newest position given out: where a tail begins.
pub fn last_position(sql: &mut impl Sql) -> Result<i64> {
    sql.query_one(sql!("events/last_position"), &[])?
        .column("position")
}
