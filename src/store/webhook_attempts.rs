//! Webhook attempts in the database: their beginning and their end, many at once, and those whose
//! end was lost.
//!
//! An attempt gets a row when it has ended. The one in flight always has the number `attempts + 1`
//! of its delivery, and ends at the latest with the lease of its job. PostgreSQL's clock decides
//! when something is due or over.
//!
//! Not here: the requests (`webhooks::deliver`), and attempts as people see them
//! (`webhook_deliveries`).

use super::secrets::{self, Stored};
use super::{Columns, Sql, Tx};
use crate::error::{Error, Result};
use crate::ids::whole_ms;
use crate::sql;
use postgres::Row;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// An attempt to be begun, for the delivery's job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Whose.
    pub tenant_id: Uuid,
    /// To whom.
    pub endpoint_id: Uuid,
    /// Of what.
    pub delivery_id: Uuid,
    /// The job under which the delivery waits.
    pub job_id: i64,
    /// The lease under which that is.
    pub lease_id: i64,
}

/// An attempt that may be made.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The event.
    pub event_id: Uuid,
    /// Its number, from 1.
    pub number: i32,
    /// What is sent.
    pub body: String,
    /// The receiver.
    pub url: String,
    /// The secret that signs: environment and name.
    pub secret: (String, String),
    /// The one that signs beside it.
    pub previous_secret: Option<(String, String)>,
    /// The secret that signs as it is stored.
    pub stored: Stored,
}

/// As [`begin_all`], of one job that was claimed earlier: its lease is extended, so that the attempt is over `within` it.
///
/// # Errors
/// The database's; then it has not begun.
pub fn begin(
    tx: &mut Tx<'_>,
    wanted: Wanted,
    within: Duration,
    now: OffsetDateTime,
) -> Result<Option<Begun>> {
    if !hold_endpoint(tx, wanted.tenant_id, wanted.endpoint_id)? {
        return Ok(None);
    }
    let kept = tx.query_one(
        sql!("webhook_attempts/keep_lease"),
        &[&wanted.job_id, &wanted.lease_id, &whole_ms(within)],
    )?;
    if !kept.column("kept")? {
        return Ok(None);
    }
    let mut begun = begin_all(tx, vec![wanted], now)?;
    Ok(begun.remove(&wanted.job_id))
}

/// Begins the attempts of jobs that were just claimed, under one lease that they do not outlast, and gives them by their
/// jobs. One that is not there has not begun: its endpoint is not registered, or somebody changes it at this moment; its
/// delivery has ended or waits under another job; or the lease was lost.
///
/// # Errors
/// The database's; then none has begun.
pub fn begin_all(
    sql: &mut impl Sql,
    mut wanted: Vec<Wanted>,
    now: OffsetDateTime,
) -> Result<HashMap<i64, Begun>> {
    let Some(lease_id) = wanted.first().map(|one| one.lease_id) else {
        return Ok(HashMap::new());
    };
    let receiver = |one: &Wanted| (one.tenant_id, one.endpoint_id);
    wanted.sort_by_key(receiver);
    let (mut tenants, mut endpoints, mut firsts, mut lasts) = (vec![], vec![], vec![], vec![]);
    let mut seen = 0;
    for deliveries in wanted.chunk_by(|one, other| receiver(one) == receiver(other)) {
        let Some((tenant_id, endpoint_id)) = deliveries.first().map(receiver) else {
            continue;
        };
        tenants.push(tenant_id);
        endpoints.push(endpoint_id);
        firsts.push(seen + 1);
        seen += i32::try_from(deliveries.len()).map_err(Error::internal)?;
        lasts.push(seen);
    }
    let deliveries: Vec<Uuid> = wanted.iter().map(|one| one.delivery_id).collect();
    let jobs: Vec<i64> = wanted.iter().map(|one| one.job_id).collect();
    let rows = sql.query(
        sql!("webhook_attempts/begin_all"),
        &[
            &lease_id,
            &tenants,
            &endpoints,
            &firsts,
            &lasts,
            &deliveries,
            &jobs,
            &now,
        ],
    )?;
    let mut all = HashMap::new();
    for row in &rows {
        for (place, begun) in begun_together(row)? {
            let job_id = jobs.get(place).copied();
            let job_id =
                job_id.ok_or_else(|| Error::internal("an attempt began that was not asked for"))?;
            all.insert(job_id, begun);
        }
    }
    Ok(all)
}

/// The attempts at one receiver, by their places in the arrays that were handed over, from 0.
fn begun_together(row: &Row) -> Result<Vec<(usize, Begun)>> {
    let Some(places) = row.column::<Option<Vec<i32>>>("places")? else {
        return Ok(Vec::new());
    };
    let events: Vec<Uuid> = row.column("event_ids")?;
    let numbers: Vec<i32> = row.column("attempts")?;
    let bodies: Vec<String> = row.column("bodies")?;
    let attempts = places.into_iter().zip(events).zip(numbers).zip(bodies);
    let begun = attempts.map(|(((place, event_id), number), body)| {
        let place = usize::try_from(place - 1).map_err(Error::internal)?;
        Ok((place, begun(row, event_id, number, body)?))
    });
    begun.collect()
}

/// An attempt of the event, at the receiver of the row.
fn begun(row: &Row, event_id: Uuid, number: i32, body: String) -> Result<Begun> {
    let previous: Option<String> = row.column("previous_environment")?;
    let previous_name: Option<String> = row.column("previous_name")?;
    Ok(Begun {
        event_id,
        number,
        body,
        url: row.column("url")?,
        secret: (
            row.column("secret_environment")?,
            row.column("secret_name")?,
        ),
        previous_secret: previous.zip(previous_name),
        stored: secrets::stored(row)?,
    })
}

/// Holds an endpoint: no unregistering goes past it. False: it is not registered.
pub fn hold_endpoint(tx: &mut Tx<'_>, tenant_id: Uuid, endpoint_id: Uuid) -> Result<bool> {
    let row = tx.query_opt(
        sql!("webhook_attempts/hold_endpoint"),
        &[&tenant_id, &endpoint_id],
    )?;
    Ok(row.is_some())
}

/// A delivery that waits, locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The attempts that have ended.
    pub attempts: i32,
    /// Its event was not dropped.
    pub has_event: bool,
    /// How long ago the next attempt was due.
    pub due_ago: Duration,
}

/// Locks a delivery that waits under this job. `None`: it has ended, or waits under another.
pub fn take(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    delivery_id: Uuid,
    job_id: i64,
) -> Result<Option<Waiting>> {
    let row = tx.query_opt(
        sql!("webhook_attempts/take"),
        &[&tenant_id, &delivery_id, &job_id],
    )?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Waiting {
        attempts: row.column("attempts")?,
        has_event: row.column("has_event")?,
        due_ago: milliseconds(row.column("due_ago_ms")?),
    }))
}

fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}

/// How an attempt ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// How long it took; unknown after a crash.
    pub duration: Option<Duration>,
    /// That was long.
    pub is_slow: bool,
    /// Why it failed.
    pub reason: Option<&'static str>,
    /// What the receiver answered with.
    pub status: Option<i16>,
    /// What went wrong, for a person.
    pub message: Option<String>,
    /// Whom it connected to, or tried.
    pub address: Option<IpAddr>,
    /// The beginning of the answer's body.
    pub answer: Option<Vec<u8>>,
}

/// What becomes of a delivery whose attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// It is delivered.
    Delivered,
    /// It failed for good.
    Failed,
    /// It is tried again by a new job.
    Waits {
        /// That job.
        job_id: i64,
        /// After this time.
        wait: Duration,
    },
}

impl AttemptOutcome {
    fn state(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Waits { .. } => "being-sent",
        }
    }

    fn next(self) -> Option<(i64, i64)> {
        match self {
            Self::Waits { job_id, wait } => Some((job_id, whole_ms(wait))),
            Self::Delivered | Self::Failed => None,
        }
    }
}

/// An attempt that is over, and its job, as it was claimed.
#[derive(Debug, Clone, Copy)]
pub struct Finished<'a> {
    /// Whose.
    pub tenant_id: Uuid,
    /// To whom.
    pub endpoint_id: Uuid,
    /// Of what.
    pub delivery_id: Uuid,
    /// Its number.
    pub number: i32,
    /// The delivery's job.
    pub job_id: i64,
    /// The lease under which the job is.
    pub lease_id: i64,
    /// How long ago it began.
    pub begun_ago: Duration,
    /// How it ended.
    pub ended: &'a Ended,
    /// What becomes of the delivery.
    pub outcome: AttemptOutcome,
}

/// Writes attempts that are over and completes their jobs; whether each was. Not if its job is another's now, if it is
/// not the delivery's next attempt, or if the delivery has ended.
///
/// # Errors
/// The database's; then none was.
pub fn finish(sql: &mut impl Sql, all: &[Finished<'_>]) -> Result<Vec<bool>> {
    let duration_ms = |one: &Finished<'_>| {
        let duration = one.ended.duration?;
        Some(i32::try_from(duration.as_millis()).unwrap_or(i32::MAX))
    };
    let tenants: Vec<Uuid> = all.iter().map(|one| one.tenant_id).collect();
    let endpoints: Vec<Uuid> = all.iter().map(|one| one.endpoint_id).collect();
    let deliveries: Vec<Uuid> = all.iter().map(|one| one.delivery_id).collect();
    let numbers: Vec<i32> = all.iter().map(|one| one.number).collect();
    let jobs: Vec<i64> = all.iter().map(|one| one.job_id).collect();
    let leases: Vec<i64> = all.iter().map(|one| one.lease_id).collect();
    let ago: Vec<i64> = all.iter().map(|one| whole_ms(one.begun_ago)).collect();
    let durations: Vec<Option<i32>> = all.iter().map(duration_ms).collect();
    let slow: Vec<bool> = all.iter().map(|one| one.ended.is_slow).collect();
    let reasons: Vec<Option<&str>> = all.iter().map(|one| one.ended.reason).collect();
    let statuses: Vec<Option<i16>> = all.iter().map(|one| one.ended.status).collect();
    let messages: Vec<Option<&str>> = all.iter().map(|one| one.ended.message.as_deref()).collect();
    let addresses: Vec<Option<IpAddr>> = all.iter().map(|one| one.ended.address).collect();
    let answers: Vec<Option<&[u8]>> = all.iter().map(|one| one.ended.answer.as_deref()).collect();
    let states: Vec<&str> = all.iter().map(|one| one.outcome.state()).collect();
    let next: Vec<Option<(i64, i64)>> = all.iter().map(|one| one.outcome.next()).collect();
    let (next_jobs, waits): (Vec<Option<i64>>, Vec<Option<i64>>) =
        next.into_iter().map(Option::unzip).unzip();
    let rows = sql.query(
        sql!("webhook_attempts/finish"),
        &[
            &tenants,
            &endpoints,
            &deliveries,
            &numbers,
            &jobs,
            &leases,
            &ago,
            &durations,
            &slow,
            &reasons,
            &statuses,
            &messages,
            &addresses,
            &answers,
            &states,
            &next_jobs,
            &waits,
        ],
    )?;
    let mut ended = vec![false; all.len()];
    for row in &rows {
        let place: i64 = row.column("place")?;
        let place = usize::try_from(place - 1).map_err(Error::internal)?;
        if let Some(one) = ended.get_mut(place) {
            *one = true;
        }
    }
    Ok(ended)
}

/// An endpoint that attempts end at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointState {
    /// Which.
    pub endpoint_id: Uuid,
    /// The receiver.
    pub url: String,
    /// Its newest attempt that ended before failed.
    pub is_failing: bool,
}

/// How endpoints are doing, as of now.
pub fn endpoint_states(
    tx: &mut Tx<'_>,
    tenant_ids: &[Uuid],
    endpoint_ids: &[Uuid],
) -> Result<Vec<EndpointState>> {
    let rows = tx.query(
        sql!("webhook_attempts/endpoint_states"),
        &[&tenant_ids, &endpoint_ids],
    )?;
    let state = |row: &Row| {
        Ok(EndpointState {
            endpoint_id: row.column("endpoint_id")?,
            url: row.column("url")?,
            is_failing: row.column("is_failing")?,
        })
    };
    rows.iter().map(state).collect()
}

/// Waits for whoever else is turning this endpoint from working to failing, or back, and keeps others from it until the
/// transaction ends.
pub fn lock_state(tx: &mut Tx<'_>, endpoint_id: Uuid) -> Result<()> {
    tx.query_one(sql!("webhook_attempts/lock_state"), &[&endpoint_id])?;
    Ok(())
}

/// For how long an attempt at the endpoint may still be in flight; zero: none is.
pub fn in_flight(sql: &mut impl Sql, endpoint_id: Uuid) -> Result<Duration> {
    let row = sql.query_one(sql!("webhook_attempts/in_flight"), &[&endpoint_id])?;
    Ok(milliseconds(row.column("left_ms")?))
}
