//! How attempts end: for many at once, their rows, what becomes of their deliveries, the jobs of the next
//! attempts and the endpoints' figures, in one transaction with their jobs' completion.
//!
//! Guarantees: each attempt is written once; where that fails, its job was claimed without being given
//! back, and whoever gets it finds it so; a database that is away is waited for, while the job's lease is kept.
//!
//! Not here: who writes them, and with which others (`group`); how an attempt is made (`deliver`).

use super::deliver::Deliver;
use super::reason::Reason;
use super::{Inner, PACE, schedule};
use crate::error::{Code, Error, Result};
use crate::store::webhook_attempts::{self as rows, Becomes, Ended, Over};
use crate::store::{Sql, Tx, queue_error};
use jobs::{Claimed, Outcome};
use std::time::{Duration, Instant};

/// The wait before a write that the database did not answer is tried again, and its longest.
pub(super) const WRITE_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WRITE_WAIT: Duration = Duration::from_secs(2);
/// How long a database that is away is waited for with an answer in hand.
const LONGEST_ABSENCE: Duration = Duration::from_secs(600);

/// Which attempt of its delivery, and when it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    pub(super) number: i32,
    pub(super) at: Instant,
}

/// An attempt that is over.
#[derive(Debug)]
pub(super) struct Made {
    job: Deliver,
    job_id: i64,
    lease_id: i64,
    key_cap: Option<u32>,
    begun: Begun,
    ended: Ended,
    /// How long a wait the receiver asks for.
    asked: Option<Duration>,
}

/// Who is told how the writing of an attempt's end went.
pub(super) struct Told {
    pub(super) token: jobs::CancelToken,
    pub(super) later: Option<jobs::Later>,
    pub(super) log: slog::Logger,
}

impl Told {
    fn ended(self, outcome: Outcome) {
        if let Some(later) = self.later {
            later.ended(outcome);
        }
    }

    fn failed(self, error: &Error) {
        slog::warn!(self.log, "A delivery could not be worked on; it will be tried again"; crate::log::ErrorValue(error));
        self.ended(Outcome::retry(error.to_string()));
    }
}

impl Made {
    pub(super) fn of(
        claimed: &Claimed,
        job: &Deliver,
        begun: Begun,
        ended: Ended,
        asked: Option<Duration>,
    ) -> Self {
        Self {
            job: *job,
            job_id: claimed.id(),
            lease_id: claimed.lease_id(),
            key_cap: claimed.key_cap(),
            begun,
            ended,
            asked,
        }
    }

    fn failed(&self) -> bool {
        self.ended.reason.is_some()
    }

    /// The cap of the endpoint's key, where it is not what it is to be: whoever emits may have said
    /// another, from what the endpoint was long before it committed.
    pub(super) fn new_cap(&self, inner: &Inner) -> Option<u32> {
        let cap = inner.cap(!self.failed() && !self.ended.is_slow);
        (self.key_cap != Some(cap)).then_some(cap)
    }

    fn over(&self, becomes: Becomes) -> Over<'_> {
        Over {
            tenant_id: self.job.tenant_id,
            endpoint_id: self.job.endpoint_id,
            delivery_id: self.job.delivery_id,
            number: self.begun.number,
            job_id: self.job_id,
            lease_id: self.lease_id,
            begun_ago: self.begun.at.elapsed(),
            ended: &self.ended,
            becomes,
        }
    }
}

/// The job is no longer this claim's, and nothing of the attempt was written.
pub(super) fn anothers() -> Error {
    Error::new(Code::Conflict, "The delivery's job is another's now.")
}

/// Writes how attempts ended, again and again while the database is away and `is_lost` is not so; what
/// it came to, and whether the database was away.
fn settle<T>(is_lost: impl Fn() -> bool, write: impl Fn() -> Result<T>) -> (Result<T>, bool) {
    let gives_up_at = Instant::now() + LONGEST_ABSENCE;
    let mut wait = WRITE_WAIT;
    let mut was_away = false;
    loop {
        match write() {
            Err(error)
                if error.code() == Code::DatabaseUnavailable
                    && !is_lost()
                    && Instant::now() <= gives_up_at => {}
            written => return (written, was_away),
        }
        was_away = true;
        std::thread::sleep(wait);
        wait = (wait * 2).min(LONGEST_WRITE_WAIT);
    }
}

impl Inner {
    /// How long after each other ends are written at the soonest. Where several processes have jobs in hand, each has fewer
    /// ends, and what a transaction costs the database would be for few of them.
    pub(super) fn ends_apart(&self) -> Duration {
        let queue = self.queue.get();
        queue.map_or(Duration::ZERO, |queue| queue.apart(PACE))
    }

    /// Ends attempts, and tells of each how that went. One that spoils it for the others fails alone.
    pub(super) fn end_all(&self, all: Vec<(Made, Told)>) {
        let (made, told): (Vec<Made>, Vec<Told>) = all.into_iter().unzip();
        let is_lost = || told.iter().all(|one| one.token.lost());
        let (written, was_away) = settle(is_lost, || self.end(&made));
        match written {
            Ok(became) => {
                for ((made, told), became) in made.iter().zip(told).zip(became) {
                    told.ended(self.became(made, became, was_away));
                }
            }
            Err(error) if error.code() == Code::DatabaseUnavailable || made.len() == 1 => {
                told.into_iter().for_each(|one| one.failed(&error));
            }
            Err(_) => {
                for (made, told) in made.into_iter().zip(told) {
                    let (written, was_away) = settle(|| told.token.lost(), || self.end_one(&made));
                    match written {
                        Ok(became) => told.ended(self.became(&made, became, was_away)),
                        Err(error) => told.failed(&error),
                    }
                }
            }
        }
        self.ended.tell();
    }

    fn end_one(&self, made: &Made) -> Result<Option<Becomes>> {
        Ok(self.end(std::slice::from_ref(made))?.pop().flatten())
    }

    /// What the queue is told. An end that was not written was so before, where an answer was lost, or
    /// the job is another's now.
    fn became(&self, made: &Made, became: Option<Becomes>, was_away: bool) -> Outcome {
        let Some(becomes) = became else {
            return match was_away {
                true => Outcome::Settled,
                false => Outcome::retry(anothers().to_string()),
            };
        };
        self.count(made.ended.reason.and_then(Reason::parse), becomes);
        Outcome::Completed
    }

    /// Ends attempts; what becomes of their deliveries, if their jobs are still theirs.
    fn end(&self, made: &[Made]) -> Result<Vec<Option<Becomes>>> {
        let is_plain = |one: &Made| !one.failed() && one.new_cap(self).is_none();
        if !made.iter().all(is_plain) {
            return self.store.transact(|tx| self.end_in(tx, made));
        }
        let becomes = vec![Becomes::Delivered; made.len()];
        write_ends(&mut self.store.session()?, made, &becomes)
    }

    /// The same with what failed attempts take beside it: the jobs of the next ones, and the endpoints'
    /// caps.
    pub(super) fn end_in(&self, tx: &mut Tx<'_>, made: &[Made]) -> Result<Vec<Option<Becomes>>> {
        let becomes = self.becomes(tx, made)?;
        let ended = write_ends(tx, made, &becomes)?;
        for (became, ended) in becomes.iter().zip(&ended) {
            if let (Becomes::Waits { job_id, .. }, None) = (became, ended) {
                jobs::cancel(tx.raw(), *job_id).map_err(queue_error)?;
            }
        }
        for (one, _) in made.iter().zip(&ended).filter(|(_, ended)| ended.is_some()) {
            if let Some(cap) = one.new_cap(self) {
                let key = one.job.endpoint_id.to_string();
                let queue = <Deliver as jobs::Job>::QUEUE;
                jobs::set_cap(tx.raw(), queue, &key, cap).map_err(queue_error)?;
            }
        }
        Ok(ended)
    }

    /// What becomes of the deliveries, with jobs for those that are tried again.
    fn becomes(&self, tx: &mut Tx<'_>, made: &[Made]) -> Result<Vec<Becomes>> {
        let wait =
            |one: &Made| schedule::wait(one.begun.number, one.asked).filter(|_| one.failed());
        let waits: Vec<Option<Duration>> = made.iter().map(wait).collect();
        let mut again = Vec::new();
        for (one, wait) in made.iter().zip(&waits) {
            if let Some(wait) = wait {
                again.push(one.job.queued(self.cap(false))?.delay(*wait));
            }
        }
        let mut queued = jobs::enqueue_many(tx.raw(), &again)
            .map_err(queue_error)?
            .into_iter();
        let becomes = made.iter().zip(waits).map(|(one, wait)| match wait {
            None if one.failed() => Ok(Becomes::Failed),
            None => Ok(Becomes::Delivered),
            Some(wait) => {
                let job_id = queued.next().map(|job| job.id);
                let job_id = job_id.ok_or_else(|| Error::internal("a job was not written"))?;
                Ok(Becomes::Waits { job_id, wait })
            }
        });
        becomes.collect()
    }

    pub(super) fn count(&self, reason: Option<Reason>, becomes: Becomes) {
        self.counts.attempt(reason, becomes == Becomes::Failed);
    }
}

/// What became of those that were ended.
fn write_ends(
    sql: &mut impl Sql,
    made: &[Made],
    becomes: &[Becomes],
) -> Result<Vec<Option<Becomes>>> {
    let over = made
        .iter()
        .zip(becomes)
        .map(|(one, becomes)| one.over(*becomes));
    let ended = rows::end(sql, &over.collect::<Vec<_>>())?;
    let became = ended.into_iter().zip(becomes);
    Ok(became
        .map(|(ended, becomes)| ended.then_some(*becomes))
        .collect())
}
