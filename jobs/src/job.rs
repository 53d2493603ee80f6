//! Jobs as callers write them, and enqueueing: one statement in the caller's transaction.

use crate::row::Columns;
use crate::{Error, Result};
use postgres::GenericClient;
use postgres::types::Type;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A kind of job: the type is the payload.
pub trait Job: Serialize + DeserializeOwned {
    /// Selects the handler. Never change it while jobs of that name wait.
    const NAME: &'static str;
    const QUEUE: &'static str;
    const MAX_ATTEMPTS: u32 = 10;
}

/// Jobs without a concurrency key are claimed strictly by priority: under a lasting flood of urgent ones, the others wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    Urgent = 0,
    #[default]
    Normal = 1,
    Low = 2,
    Idle = 3,
}

const NAME_BYTES: usize = 200;
const PAYLOAD_BYTES: usize = 64 * 1024 * 1024;
const ATTEMPTS: u32 = 1_000_000;
pub(crate) const CAP: u32 = 1_000_000;
const DELAY: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// A job to be enqueued.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub(crate) queue: String,
    pub(crate) name: String,
    pub(crate) payload: String,
    pub(crate) priority: Option<Priority>,
    pub(crate) delay: Duration,
    pub(crate) max_attempts: u32,
    pub(crate) key: Option<(String, u32)>,
    pub(crate) fairness_key: Option<String>,
    pub(crate) unique_key: Option<String>,
}

impl NewJob {
    /// # Errors
    /// [`Error::Payload`] if the job cannot be written as JSON.
    pub fn of<J: Job>(job: &J) -> Result<Self> {
        Ok(Self::named(J::QUEUE, J::NAME, serde_json::to_string(job)?)
            .max_attempts(J::MAX_ATTEMPTS))
    }

    /// A job by names alone; `payload` is JSON text.
    pub fn named(
        queue: impl Into<String>,
        name: impl Into<String>,
        payload: impl Into<String>,
    ) -> Self {
        Self {
            queue: queue.into(),
            name: name.into(),
            payload: payload.into(),
            priority: None,
            delay: Duration::ZERO,
            max_attempts: 10,
            key: None,
            fairness_key: None,
            unique_key: None,
        }
    }

    /// Only for jobs without a concurrency key: keys are served by how long they wait.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Runs no sooner than this after the statement, by Postgres's clock; milliseconds count, at most ten years.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How often it may fail before it is dead; at least 1.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// At most `cap` jobs of this queue and key are in flight, over all processes. The last cap
    /// wins.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>, cap: u32) -> Self {
        self.key = Some((key.into(), cap));
        self
    }

    /// For whom the job is, where a process shares its threads among them ([`crate::QueueOptions::fair`]). Then all jobs of
    /// the queue have one. Only for jobs without a concurrency key.
    #[must_use]
    pub fn fairness_key(mut self, key: impl Into<String>) -> Self {
        self.fairness_key = Some(key.into());
        self
    }

    /// While a job of this queue and unique key waits, enqueueing another one does nothing. A
    /// running one does not count, because it may not see what the caller is about to commit.
    #[must_use]
    pub fn unique(mut self, unique_key: impl Into<String>) -> Self {
        self.unique_key = Some(unique_key.into());
        self
    }

    fn check(&self) -> Result<()> {
        for (what, text) in [
            ("queue", Some(&self.queue)),
            ("name", Some(&self.name)),
            ("key", self.key.as_ref().map(|(key, _)| key)),
            ("fairness key", self.fairness_key.as_ref()),
            ("unique key", self.unique_key.as_ref()),
        ] {
            let Some(text) = text else { continue };
            if text.is_empty() || text.len() > NAME_BYTES || text.contains('\0') {
                return Err(Error::Invalid(format!(
                    "a job's {what} has 1 to {NAME_BYTES} bytes and no NUL"
                )));
            }
        }
        if self.payload.len() > PAYLOAD_BYTES || self.payload.contains('\0') {
            return Err(Error::Invalid(format!(
                "a job's payload has at most {PAYLOAD_BYTES} bytes and no NUL"
            )));
        }
        if !(1..=ATTEMPTS).contains(&self.max_attempts) {
            return Err(Error::Invalid(format!("max_attempts is 1 to {ATTEMPTS}")));
        }
        if self.delay > DELAY {
            return Err(Error::Invalid("a job's delay is at most ten years".into()));
        }
        if let Some((_, cap)) = self.key {
            if !(1..=CAP).contains(&cap) {
                return Err(Error::Invalid(format!("a key's cap is 1 to {CAP}")));
            }
            if self.priority.is_some() || self.fairness_key.is_some() {
                return Err(Error::Invalid(
                    "a job with a concurrency key takes no priority and no fairness key: keys are served by how long they wait".into(),
                ));
            }
        }
        Ok(())
    }
}

/// The result of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    pub id: i64,
    /// False if a job of the same unique key was waiting: `id` is that job's.
    pub added: bool,
}

/// Enqueues one job in the caller's transaction. After the commit, call [`crate::Handle::wake`].
///
/// # Errors
/// [`Error::Invalid`] before anything is sent; the database's error.
pub fn enqueue(tx: &mut impl GenericClient, job: NewJob) -> Result<Enqueued> {
    let added = enqueue_many(tx, std::slice::from_ref(&job))?;
    Ok(added[0])
}

/// Enqueues many jobs with one statement (two if some have unique keys). The results are in the
/// given order.
///
/// # Errors
/// As [`enqueue`]; then nothing was added, provided that the caller rolls back.
pub fn enqueue_many(tx: &mut impl GenericClient, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    for job in jobs {
        job.check()?;
    }
    let mut places: Vec<usize> = (0..jobs.len()).collect();
    // Unique keys are locked one after another: always in one order.
    places.sort_by(|a, b| {
        let order = |place: usize| (&jobs[place].unique_key, &jobs[place].queue, place);
        order(*a).cmp(&order(*b))
    });
    let plain = places.partition_point(|place| jobs[*place].unique_key.is_none());
    let mut answer = vec![
        Enqueued {
            id: 0,
            added: false
        };
        jobs.len()
    ];
    for (places, unique) in [(&places[..plain], false), (&places[plain..], true)] {
        if places.is_empty() {
            continue;
        }
        let chosen: Vec<&NewJob> = places.iter().map(|place| &jobs[*place]).collect();
        for (place, enqueued) in places.iter().zip(insert(tx, &chosen, unique)?) {
            answer[*place] = enqueued;
        }
    }
    Ok(answer)
}

fn insert(tx: &mut impl GenericClient, jobs: &[&NewJob], unique: bool) -> Result<Vec<Enqueued>> {
    let queues: Vec<&str> = jobs.iter().map(|job| job.queue.as_str()).collect();
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let payloads: Vec<&str> = jobs.iter().map(|job| job.payload.as_str()).collect();
    let priorities: Vec<i16> = jobs
        .iter()
        .map(|job| job.priority.unwrap_or_default() as i16)
        .collect();
    let delays_ms: Vec<i64> = jobs.iter().map(|job| millis(job.delay)).collect();
    let attempts: Vec<i32> = jobs.iter().map(|job| job.max_attempts as i32).collect();
    let keys: Vec<Option<&str>> = jobs
        .iter()
        .map(|job| job.key.as_ref().map(|(key, _)| key.as_str()))
        .collect();
    let caps: Vec<Option<i32>> = jobs
        .iter()
        .map(|job| job.key.as_ref().map(|(_, cap)| *cap as i32))
        .collect();
    let fairness_keys: Vec<Option<&str>> =
        jobs.iter().map(|job| job.fairness_key.as_deref()).collect();
    let mut params: Vec<(&(dyn postgres::types::ToSql + Sync), Type)> = vec![
        (&queues, Type::TEXT_ARRAY),
        (&names, Type::TEXT_ARRAY),
        (&payloads, Type::TEXT_ARRAY),
        (&priorities, Type::INT2_ARRAY),
        (&delays_ms, Type::INT8_ARRAY),
        (&attempts, Type::INT4_ARRAY),
        (&keys, Type::TEXT_ARRAY),
        (&caps, Type::INT4_ARRAY),
        (&fairness_keys, Type::TEXT_ARRAY),
    ];
    if !unique {
        let rows = tx.query_typed(
            "SELECT id FROM job_enqueue(p_queue => $1, p_name => $2, p_payload => $3, p_priority => $4,
                 p_delay_ms => $5, p_max_attempts => $6, p_key => $7, p_key_cap => $8, p_fairness_key => $9) id",
            &params,
        )?;
        return rows
            .iter()
            .map(|row| {
                let id = row.column("id")?;
                Ok(Enqueued { id, added: true })
            })
            .collect();
    }
    let unique_keys: Vec<Option<&str>> = jobs.iter().map(|job| job.unique_key.as_deref()).collect();
    params.push((&unique_keys, Type::TEXT_ARRAY));
    let rows = tx.query_typed(
        "SELECT id, added FROM job_enqueue_unique(p_queue => $1, p_name => $2, p_payload => $3, p_priority => $4,
             p_delay_ms => $5, p_max_attempts => $6, p_key => $7, p_key_cap => $8, p_fairness_key => $9,
             p_unique_key => $10)",
        &params,
    )?;
    rows.iter()
        .map(|row| {
            let (id, added) = (row.column("id")?, row.column("added")?);
            Ok(Enqueued { id, added })
        })
        .collect()
}

/// Whole milliseconds, rounded up, so that a short wait is never zero.
pub(crate) fn millis(wait: Duration) -> i64 {
    i64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
