//! The statements under the runner, for callers with threads of their own: claim, complete, renew,
//! watch, rescue.
//!
//! Every claim makes one lease for its whole batch. The lease's id is the fence: a completion names
//! job and lease, and changes nothing if the job is no longer under that lease. Lease ids never
//! repeat. Attempt numbers can, because a snooze takes its attempt back and a crash of PostgreSQL
//! may undo a claim; so the attempt cannot be the fence.

use crate::Result;
use crate::job::millis;
use crate::row::Columns;
use postgres::types::Type;
use postgres::{Client, GenericClient, Row};
use std::time::Duration;

/// A claimed job as it came from the database.
#[derive(Clone, Debug)]
pub struct ClaimedRow {
    pub id: i64,
    pub lease_id: i64,
    /// Counted from 1.
    pub attempt: u32,
    pub max_attempts: u32,
    pub name: String,
    pub key: Option<String>,
    /// The cap that the key had when the job was claimed.
    pub key_cap: Option<u32>,
    /// JSON text.
    pub payload: String,
    pub fairness_key: Option<String>,
}

impl ClaimedRow {
    /// Its key runs one job at a time.
    pub(crate) fn is_serial(&self) -> bool {
        self.key_cap == Some(1)
    }
}

/// The limits of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Jobs in all.
    pub jobs: usize,
    /// Of them, jobs of serial keys: those whose cap is 1.
    pub serial: usize,
}

impl From<usize> for Room {
    /// Jobs of any kind.
    fn from(jobs: usize) -> Self {
        let serial = jobs;
        Self { jobs, serial }
    }
}

/// How a running job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Done,
    /// A failed attempt: waits `after`, or dies if it was the last.
    Retry {
        after: Duration,
        reason: String,
    },
    /// Waits `after`; the attempt does not count.
    Snooze {
        after: Duration,
    },
    /// Goes to the dead at once.
    Dead {
        reason: String,
    },
    /// As if it had never been claimed.
    HandBack,
}

#[derive(Clone, Debug)]
pub struct EndedJob {
    pub id: i64,
    pub lease_id: i64,
    pub ending: Ending,
}

/// The result for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    Done,
    Waiting,
    Dead,
    /// It had been cancelled while it ran, and is removed.
    Cancelled,
    /// Another job of its unique key waits and replaces it.
    Merged,
}

const REASON_BYTES: usize = 2000;

/// Claims due jobs of a queue as one leased batch, up to the limits. `keyed_first`: whether jobs
/// with a concurrency key are considered first; alternate it.
///
/// Other claims of the queue wait for a transaction in which this has read keys: end it soon.
///
/// # Errors
/// The database's error. If the connection was lost the claim may have happened; its lease then
/// runs out.
pub fn claim(
    client: &mut impl GenericClient,
    queue: &str,
    worker: &str,
    room: impl Into<Room>,
    lease: Duration,
    keyed_first: bool,
) -> Result<Vec<ClaimedRow>> {
    let claim = Claim {
        queue,
        worker,
        room: room.into(),
        lease,
        keyed_first,
        full: &[],
        after: "",
    };
    claim_as(client, None, &claim)
}

/// What a claim is asked for.
pub(crate) struct Claim<'a> {
    pub(crate) queue: &'a str,
    /// This process, for people.
    pub(crate) worker: &'a str,
    pub(crate) room: Room,
    pub(crate) lease: Duration,
    /// Whether jobs with a concurrency key are looked at before the others.
    pub(crate) keyed_first: bool,
    /// The fairness keys that may have no more jobs.
    pub(crate) full: &'a [String],
    /// Where some are full, those behind this one come first.
    pub(crate) after: &'a str,
}

/// As [`claim`], with a lease id of [`draw_leases`]. It does not wait for the disk, so a crash of
/// PostgreSQL may undo it. `client` must not be in a transaction, because its commit would not wait
/// either.
pub(crate) fn claim_ahead(
    client: &mut Client,
    lease_id: i64,
    claim: &Claim<'_>,
) -> Result<Vec<ClaimedRow>> {
    claim_as(client, Some(lease_id), claim)
}

/// Lease ids that are never used elsewhere, even after a crash of PostgreSQL, because they are on
/// disk. Call it outside a transaction.
pub(crate) fn draw_leases(client: &mut Client) -> Result<Vec<i64>> {
    // More than the 32 that a sequence gives for one entry in the log: so this transaction makes an entry, and with its
    // own commit everybody's earlier ones are flushed.
    let rows = client.query_typed(
        "SELECT nextval('job_lease_ids') AS lease_id FROM generate_series(1, 1000)",
        &[],
    )?;
    rows.iter().map(|row| row.column("lease_id")).collect()
}

fn claim_as(
    client: &mut impl GenericClient,
    lease_id: Option<i64>,
    claim: &Claim<'_>,
) -> Result<Vec<ClaimedRow>> {
    let count = |jobs: usize| i32::try_from(jobs).unwrap_or(i32::MAX);
    let rows = client.query_typed(
        "SELECT id, lease_id, attempt, max_attempts, name, key, payload, key_cap, fairness_key
         FROM job_claim(p_queue => $1, p_worker => $2, p_lease => $3, p_limit => $4, p_serial => $5, p_lease_ms => $6,
             p_keyed_first => $7, p_full => $8, p_after => $9)",
        &[
            (&claim.queue, Type::TEXT),
            (&claim.worker, Type::TEXT),
            (&lease_id, Type::INT8),
            (&count(claim.room.jobs), Type::INT4),
            (&count(claim.room.serial), Type::INT4),
            (&millis(claim.lease), Type::INT8),
            (&claim.keyed_first, Type::BOOL),
            (&claim.full, Type::TEXT_ARRAY),
            (&claim.after, Type::TEXT),
        ],
    )?;
    rows.iter().map(read_claimed).collect()
}

fn read_claimed(row: &Row) -> Result<ClaimedRow> {
    let key_cap: Option<i32> = row.column("key_cap")?;
    Ok(ClaimedRow {
        id: row.column("id")?,
        lease_id: row.column("lease_id")?,
        attempt: row.count("attempt")?,
        max_attempts: row.count("max_attempts")?,
        name: row.column("name")?,
        key: row.column("key")?,
        key_cap: key_cap.map(i32::unsigned_abs),
        payload: row.column("payload")?,
        fairness_key: row.column("fairness_key")?,
    })
}

/// Deletes done jobs. Returns the ids that were still under their lease.
pub fn complete(client: &mut impl GenericClient, ids: &[i64], leases: &[i64]) -> Result<Vec<i64>> {
    let rows = client.query_typed(
        "SELECT id FROM job_complete(p_ids => $1, p_leases => $2) AS c (id)",
        &[(&ids, Type::INT8_ARRAY), (&leases, Type::INT8_ARRAY)],
    )?;
    rows.iter().map(|row| row.column("id")).collect()
}

/// Ends jobs in any way. A job that is missing from the result was no longer under its lease.
///
/// # Errors
/// The database's error; then nothing was changed.
pub fn end_jobs(client: &mut impl GenericClient, ended: &[EndedJob]) -> Result<Vec<(i64, Became)>> {
    let ids: Vec<i64> = ended.iter().map(|one| one.id).collect();
    let leases: Vec<i64> = ended.iter().map(|one| one.lease_id).collect();
    let (mut kinds, mut delays_ms, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for one in ended {
        let (kind, after, reason) = match &one.ending {
            Ending::Done => ("done", Duration::ZERO, None),
            Ending::Retry { after, reason } => ("retry", *after, Some(reason)),
            Ending::Snooze { after } => ("snooze", *after, None),
            Ending::Dead { reason } => ("dead", Duration::ZERO, Some(reason)),
            Ending::HandBack => ("handback", Duration::ZERO, None),
        };
        kinds.push(kind);
        delays_ms.push(millis(after).min(millis(LONGEST_WAIT)));
        reasons.push(reason.map(|text| bounded(text)));
    }
    let rows = client.query_typed(
        "SELECT id, became FROM job_end(p_ids => $1, p_leases => $2, p_kinds => $3, p_delays_ms => $4, p_reasons => $5)",
        &[
            (&ids, Type::INT8_ARRAY),
            (&leases, Type::INT8_ARRAY),
            (&kinds, Type::TEXT_ARRAY),
            (&delays_ms, Type::INT8_ARRAY),
            (&reasons, Type::TEXT_ARRAY),
        ],
    )?;
    rows.iter().map(read_ended).collect()
}

const LONGEST_WAIT: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

fn read_ended(row: &Row) -> Result<(i64, Became)> {
    let became = match row.column::<&str>("became")? {
        "done" => Became::Done,
        "dead" => Became::Dead,
        "cancelled" => Became::Cancelled,
        "merged" => Became::Merged,
        _ => Became::Waiting,
    };
    Ok((row.column("id")?, became))
}

/// Extends leases (never shortens one), and drops those without unfinished jobs. Returns the ids
/// that are still valid. A lease that has run out and that nobody has taken yet is extended like
/// any other.
pub fn renew(
    client: &mut impl GenericClient,
    leases: &[i64],
    lease: Duration,
    finished: &[i64],
) -> Result<Vec<i64>> {
    let rows = client.query_typed(
        "WITH dropped AS (DELETE FROM job_leases WHERE id = ANY ($3))
         UPDATE job_leases SET expires_at = greatest(expires_at, clock_timestamp() + $2 * interval '1 millisecond')
         WHERE id = ANY ($1) RETURNING id",
        &[
            (&leases, Type::INT8_ARRAY),
            (&millis(lease), Type::INT8),
            (&finished, Type::INT8_ARRAY),
        ],
    )?;
    rows.iter().map(|row| row.column("id")).collect()
}

/// Of the running jobs given, each with its lease, those that were cancelled (`true`) or are no longer under that
/// lease (`false`).
pub fn watch(
    client: &mut impl GenericClient,
    ids: &[i64],
    leases: &[i64],
) -> Result<Vec<(i64, i64, bool)>> {
    let rows = client.query_typed(
        "SELECT u.id, u.lease_id, j.id IS NOT NULL AS cancelled FROM unnest($1, $2) u (id, lease_id)
         LEFT JOIN LATERAL (SELECT id, cancelled FROM job_jobs j WHERE j.id = u.id AND j.lease_id = u.lease_id) j ON true
         WHERE j.id IS NULL OR j.cancelled",
        &[(&ids, Type::INT8_ARRAY), (&leases, Type::INT8_ARRAY)],
    )?;
    rows.iter()
        .map(|row| {
            let (id, lease_id) = (row.column("id")?, row.column("lease_id")?);
            Ok((id, lease_id, row.column("cancelled")?))
        })
        .collect()
}

/// Returns the jobs of at most `limit` expired leases to the queue, or marks them dead if that was
/// their last attempt.
pub fn rescue(client: &mut impl GenericClient, limit: usize) -> Result<Vec<(i64, Became)>> {
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let rows = client.query_typed(
        "SELECT id, became FROM job_rescue(p_limit => $1)",
        &[(&limit, Type::INT4)],
    )?;
    rows.iter().map(read_ended).collect()
}

/// Vacuums one of the queue's tables, if it has at most so many pages with its indexes and belongs
/// to the caller's role. False: it does not. A table that somebody else has locked is skipped. Not
/// within a transaction.
pub(crate) fn vacuum(client: &mut Client, table: &'static str, pages: u64) -> Result<bool> {
    let pages = i64::try_from(pages).unwrap_or(i64::MAX);
    let fits = client.query_typed(
        "SELECT FROM pg_class WHERE oid = $1::regclass AND pg_has_role(relowner, 'USAGE')
         AND pg_total_relation_size(oid) / current_setting('block_size')::int <= $2",
        &[(&table, Type::TEXT), (&pages, Type::INT8)],
    )?;
    if fits.is_empty() {
        return Ok(false);
    }
    client.batch_execute(&format!(
        "VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON, TRUNCATE OFF, PARALLEL 0) {table}"
    ))?;
    Ok(true)
}

/// PostgreSQL stores no NUL, and a reason is for people.
fn bounded(reason: &str) -> String {
    let end = (0..=reason.len().min(REASON_BYTES))
        .rev()
        .find(|end| reason.is_char_boundary(*end));
    reason[..end.unwrap_or(0)].replace('\0', "\u{fffd}")
}
