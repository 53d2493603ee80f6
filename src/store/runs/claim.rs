//! Claims runs, and reads what a holder needs to know of its runs.

use super::labels::Labels;
use super::lease::{DatabaseAhead, Held, HeldJob, Lease};
use super::rows::{self, Run, Status, Usage, run_of};
use super::storable;
use crate::error::Result;
use crate::sql;
use crate::store::{Columns, Sql};
use postgres::Row;
use std::time::Instant;
use time::OffsetDateTime;
use uuid::Uuid;

/// Claims a run for the job that carries it on. `None` when it has finished. A claim ends a wait and adds its time to the
/// parked time. A run whose root was asked to end is claimed as one that was asked itself.
pub fn claim(
    sql: &mut impl Sql,
    (tenant_id, run_id): (Uuid, Uuid),
    job: HeldJob,
    now: OffsetDateTime,
) -> Result<Option<(Run, Held)>> {
    let asked = Instant::now();
    let row = sql.query_opt(sql!("runs/claim"), &[&tenant_id, &run_id, &now])?;
    let took = asked.elapsed();
    let Some(row) = row else { return Ok(None) };
    let mut run = run_of(&row)?;
    if row.column("is_root_cancelled")? {
        sql.query_one(sql!("runs/mark_cancelled"), &[&tenant_id, &run_id, &now])?;
        run.cancel_requested_at = Some(storable::moment(now));
        run.last_seq += 1;
    }
    let database_now: OffsetDateTime = row.column("database_now")?;
    let held = Held {
        lease: Lease::new(&run, row.column("lease_epoch")?),
        job,
        events_written: run.events_written(),
        has_children: row.column("has_children")?,
        waited_for: row.column("waited_for")?,
        database_ahead: DatabaseAhead {
            at_least: database_now - now - took,
            at_most: database_now - now,
        },
    };
    Ok(Some((run, held)))
}

/// Whether a run was claimed under this lease, and by nobody after it: whether a claim was written whose commit nobody confirmed.
pub fn is_claimed(sql: &mut impl Sql, lease: &Lease) -> Result<bool> {
    let row = sql.query_opt(
        sql!("runs/claimed_epoch"),
        &[&lease.tenant_id(), &lease.run_id()],
    )?;
    let epoch: Option<i64> = row.map(|row| row.only()).transpose()?;
    Ok(epoch == Some(lease.epoch()))
}

/// Reads a run of this flow that was begun just now, and the hold on it.
pub(in crate::store) fn begun_of(
    row: &Row,
    (tenant_id, run_id): (Uuid, Uuid),
    flow_id: &str,
    job: HeldJob,
    now: OffsetDateTime,
) -> Result<(Run, Held)> {
    let run = Run {
        tenant_id,
        run_id,
        project_id: row.column("project_id")?,
        flow_id: flow_id.to_owned(),
        flow_version: row.column("flow_version")?,
        status: Status::Running,
        origin: row.column("origin")?,
        parent: rows::parent_of(row)?,
        root_run_id: row.column("root_run_id")?,
        dry_run: row.column("dry_run")?,
        agent: rows::agent_of(row)?,
        retry_of: None,
        labels: Labels::of(row)?,
        failure_message: None,
        failure_summary: None,
        cancel_requested_at: None,
        created_by: row.column("created_by")?,
        created_at: row.column("created_at")?,
        started_at: Some(storable::moment(now)),
        completed_at: None,
        waiting_for: None,
        wake_at: None,
        parked_ms: 0,
        last_seq: 1,
        usage: Usage::default(),
        payload_erased_at: None,
    };
    let held = Held {
        lease: Lease::new(&run, row.column("lease_epoch")?),
        job,
        events_written: run.events_written(),
        has_children: false,
        waited_for: None,
        // A turn waits for no time until it is claimed again.
        database_ahead: DatabaseAhead::default(),
    };
    Ok((run, held))
}

/// How often in a row the holders of a run have died without progress of the run in between. `attempts_before`: see
/// [`HeldJob`].
pub fn deaths_in_a_row(
    sql: &mut impl Sql,
    (tenant_id, run_id): (Uuid, Uuid),
    attempts_before: i32,
) -> Result<i32> {
    let row = sql.query_opt(
        sql!("runs/attempts_before_progress"),
        &[&tenant_id, &run_id],
    )?;
    let counted: Option<i32> = row.map(|row| row.only()).transpose()?;
    Ok(counted.map_or(0, |counted| attempts_before.saturating_sub(counted).max(0)))
}

/// Of the runs that are held, those that should stop: cancelled, or taken over by another.
pub fn interrupted(sql: &mut impl Sql, held: &[Lease]) -> Result<Vec<Lease>> {
    let tenants: Vec<Uuid> = held.iter().map(Lease::tenant_id).collect();
    let runs: Vec<Uuid> = held.iter().map(Lease::run_id).collect();
    let epochs: Vec<i64> = held.iter().map(Lease::epoch).collect();
    let rows = sql.query(sql!("runs/interrupted"), &[&tenants, &runs, &epochs])?;
    let mut interrupted = Vec::with_capacity(rows.len());
    for row in &rows {
        let stopped: (Uuid, i64) = (row.column("run_id")?, row.column("lease_epoch")?);
        let is_it = |lease: &&Lease| (lease.run_id(), lease.epoch()) == stopped;
        interrupted.extend(held.iter().find(is_it));
    }
    Ok(interrupted)
}
