//! Operations on jobs from outside a handler: cancel, inspect, revive.

use crate::job::CAP;
use crate::row::Columns;
use crate::{Error, Result};
use postgres::types::Type;
use postgres::{GenericClient, Row};
use std::time::Duration;

/// The result of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It waited; it is removed when the transaction commits.
    Removed,
    /// It runs. Its handler is notified, and the job is removed when the handler returns, whatever
    /// the outcome. After the commit call [`crate::Handle::cancelled`], so that a runner in this
    /// process notifies the handler immediately; other processes notice by themselves.
    Running,
    /// No such job waits or runs.
    Unknown,
}

/// Cancels one job in the caller's transaction. No claim can start it before that ends.
pub fn cancel(tx: &mut impl GenericClient, id: i64) -> Result<Cancelled> {
    Ok(cancel_all(tx, vec![id])?
        .first()
        .map_or(Cancelled::Unknown, |(_, how)| *how))
}

/// Cancels every job of a queue and unique key, running ones and scheduled retries included.
pub fn cancel_by_unique_key(
    tx: &mut impl GenericClient,
    queue: &str,
    unique_key: &str,
) -> Result<Vec<(i64, Cancelled)>> {
    let rows = tx.query_typed(
        "SELECT id FROM job_jobs WHERE queue = $1 AND unique_key = $2",
        &[(&queue, Type::TEXT), (&unique_key, Type::TEXT)],
    )?;
    let ids: Result<Vec<i64>> = rows.iter().map(|row| row.column("id")).collect();
    cancel_all(tx, ids?)
}

/// Makes a waiting job due now, in the caller's transaction. False: it runs, is due already, or
/// does not exist. After the commit call [`crate::Handle::wake`].
pub fn run_now(tx: &mut impl GenericClient, id: i64) -> Result<bool> {
    let sql = "SELECT job_run_now(p_id => $1) AS moved";
    tx.query_typed_one(sql, &[(&id, Type::INT8)])?
        .column("moved")
}

/// Sets how many jobs of a key may be in flight, in the caller's transaction. The next enqueue or
/// call with another cap replaces it. Jobs in flight continue. After the commit call
/// [`crate::Handle::wake`].
///
/// # Errors
/// [`Error::Invalid`] for the cap; the database's error.
pub fn set_cap(tx: &mut impl GenericClient, queue: &str, key: &str, cap: u32) -> Result<()> {
    if !(1..=CAP).contains(&cap) {
        return Err(Error::Invalid(format!("a key's cap is 1 to {CAP}")));
    }
    let cap = cap as i32;
    tx.query_typed(
        "INSERT INTO job_key_moves (queue, key, cap) VALUES ($1, $2, $3)",
        &[(&queue, Type::TEXT), (&key, Type::TEXT), (&cap, Type::INT4)],
    )?;
    Ok(())
}

fn cancel_all(tx: &mut impl GenericClient, ids: Vec<i64>) -> Result<Vec<(i64, Cancelled)>> {
    let rows = tx.query_typed(
        "SELECT id, running FROM job_cancel(p_ids => $1)",
        &[(&ids, Type::INT8_ARRAY)],
    )?;
    let how = |running: bool| {
        if running {
            Cancelled::Running
        } else {
            Cancelled::Removed
        }
    };
    rows.iter()
        .map(|row| Ok((row.column("id")?, how(row.column("running")?))))
        .collect()
}

/// A dead job, which will not run again by itself.
#[derive(Clone, Debug)]
pub struct DeadJob {
    pub id: i64,
    pub queue: String,
    pub name: String,
    /// JSON text.
    pub payload: String,
    pub attempt: u32,
    pub max_attempts: u32,
    pub key: Option<String>,
    pub unique_key: Option<String>,
    pub reason: String,
    /// How long ago, by PostgreSQL's clock.
    pub dead_for: Duration,
}

/// Dead jobs of a queue by id, after the given id (0 for the first page), at most `limit` (1 to 1000).
///
/// # Errors
/// [`Error::Invalid`] for the limit; the database's error.
pub fn dead_jobs(
    tx: &mut impl GenericClient,
    queue: &str,
    after_id: i64,
    limit: u32,
) -> Result<Vec<DeadJob>> {
    if !(1..=1000).contains(&limit) {
        return Err(Error::Invalid("limit is 1 to 1000".into()));
    }
    let rows = tx.query_typed(
        "SELECT id, queue, name, payload::text AS payload, attempt, max_attempts, key, unique_key, reason,
                greatest(0, extract(epoch FROM clock_timestamp() - died_at) * 1000)::bigint AS dead_for_ms
         FROM job_dead WHERE queue = $1 AND id > $2 ORDER BY id LIMIT $3",
        &[
            (&queue, Type::TEXT),
            (&after_id, Type::INT8),
            (&i64::from(limit), Type::INT8),
        ],
    )?;
    rows.iter().map(read_dead).collect()
}

fn read_dead(row: &Row) -> Result<DeadJob> {
    let dead_for_ms: i64 = row.column("dead_for_ms")?;
    Ok(DeadJob {
        id: row.column("id")?,
        queue: row.column("queue")?,
        name: row.column("name")?,
        payload: row.column("payload")?,
        attempt: row.count("attempt")?,
        max_attempts: row.count("max_attempts")?,
        key: row.column("key")?,
        unique_key: row.column("unique_key")?,
        reason: row.column("reason")?,
        dead_for: Duration::from_millis(dead_for_ms.unsigned_abs()),
    })
}

/// Returns dead jobs to the queue, due now, with their old ids and all their attempts. Returns the
/// ids that were dead.
pub fn revive(tx: &mut impl GenericClient, ids: &[i64]) -> Result<Vec<i64>> {
    let rows = tx.query_typed(
        "SELECT id FROM job_revive(p_ids => $1) AS r (id)",
        &[(&ids, Type::INT8_ARRAY)],
    )?;
    rows.iter().map(|row| row.column("id")).collect()
}

/// Deletes at most `limit` jobs that have been dead for longer than `older_than`. Returns how many.
pub fn purge_dead(tx: &mut impl GenericClient, older_than: Duration, limit: u32) -> Result<u64> {
    let older_than_ms = crate::job::millis(older_than);
    let sql = "DELETE FROM job_dead WHERE id = ANY (ARRAY(
                   SELECT id FROM job_dead WHERE died_at < clock_timestamp() - $1 * interval '1 millisecond'
                   ORDER BY died_at LIMIT $2 FOR UPDATE SKIP LOCKED))";
    Ok(tx.execute_typed(
        sql,
        &[
            (&older_than_ms, Type::INT8),
            (&i64::from(limit), Type::INT8),
        ],
    )?)
}

/// How full a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    pub running: u64,
    /// Waiting and due.
    pub due: u64,
    /// Waiting for a later time.
    pub later: u64,
    /// How long the oldest due job has been waiting.
    pub oldest_due: Duration,
}

/// Counts a queue's jobs. It reads every one of them: use it for a page or a scrape, not in a loop.
pub fn depth(client: &mut impl GenericClient, queue: &str) -> Result<Depth> {
    let row = client.query_typed_one(
        "SELECT count(*) FILTER (WHERE lease_id IS NOT NULL) AS running,
                count(*) FILTER (WHERE lease_id IS NULL AND run_at <= now()) AS due,
                count(*) FILTER (WHERE lease_id IS NULL AND run_at > now()) AS later,
                coalesce(extract(epoch FROM now() - min(run_at) FILTER (WHERE lease_id IS NULL AND run_at <= now())) * 1000, 0)::bigint
                    AS oldest_due_ms
         FROM job_jobs WHERE queue = $1",
        &[(&queue, Type::TEXT)],
    )?;
    let count = |name: &str| row.column(name).map(i64::unsigned_abs);
    Ok(Depth {
        running: count("running")?,
        due: count("due")?,
        later: count("later")?,
        oldest_due: Duration::from_millis(count("oldest_due_ms")?),
    })
}
