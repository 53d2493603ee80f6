//! Ends attempts, many at once: their rows, the new states of their deliveries, the jobs of the
//! next attempts and the endpoints' metrics, in one transaction with the completion of their jobs.
//!
//! Guarantees: each attempt is written once. If the write fails, its job stays claimed and is not
//! handed back, which the next holder of the job notices. While the database is unreachable the
//! write is retried, and the job's lease is kept.
//!
//! Not here: grouping the writes (`store::db::group_commit`), and making an attempt (`deliver`).

use super::job::Deliver;
use super::made::{Made, Waiter, anothers};
use super::reason::Reason;
use super::turns::{self, Turn};
use super::{Inner, retry_schedule};
use crate::error::{Code, Error, Result};
use crate::store::retry::retry_while_away;
use crate::store::webhook_attempts::{self as rows, AttemptOutcome};
use crate::store::{Sql, Tx, queue_error};
use jobs::Outcome;
use std::time::Duration;

impl Inner {
    /// Finishes attempts, and passes on how that went. One that the database refuses fails alone.
    pub(super) fn finish_all(&self, all: Vec<(Made, Waiter)>) {
        let (made, waiters): (Vec<Made>, Vec<Waiter>) = all.into_iter().unzip();
        let is_lost = || waiters.iter().all(|one| one.token.lost());
        let (written, was_away) = self.finish_until(is_lost, &made);
        match written {
            Ok(became) => {
                for ((made, waiter), became) in made.iter().zip(waiters).zip(became) {
                    waiter.ended(self.became(made, became, was_away));
                }
            }
            Err(error) if error.code() == Code::DatabaseUnavailable || made.len() == 1 => {
                waiters.into_iter().for_each(|one| one.failed(&error));
            }
            Err(_) => {
                for (made, waiter) in made.into_iter().zip(waiters) {
                    let one = std::slice::from_ref(&made);
                    let (written, was_away) = self.finish_until(|| waiter.token.lost(), one);
                    match written {
                        Ok(mut became) => {
                            let became = became.pop().flatten();
                            waiter.ended(self.became(&made, became, was_away));
                        }
                        Err(error) => waiter.failed(&error),
                    }
                }
            }
        }
        self.ended.notify();
    }

    /// Finishes attempts, again and again while the database is away and `is_lost` is not so; what it came to, and whether
    /// the database was away.
    fn finish_until(
        &self,
        is_lost: impl Fn() -> bool,
        made: &[Made],
    ) -> (Result<Vec<Option<AttemptOutcome>>>, bool) {
        let mut was_away = false;
        let written = retry_while_away(is_lost, |is_again| {
            was_away = is_again;
            self.finish(made)
        });
        (written, was_away)
    }

    /// The outcome for the queue. If an end was not written now, either an earlier try wrote it and its answer was lost, or the
    /// job is another's now.
    fn became(&self, made: &Made, became: Option<AttemptOutcome>, was_away: bool) -> Outcome {
        let Some(becomes) = became else {
            return match was_away {
                true => Outcome::EndedByHandler,
                false => Outcome::retry(anothers().to_string()),
            };
        };
        self.count(made.ended.reason.and_then(Reason::parse), becomes);
        Outcome::Completed
    }

    /// Finishes attempts; what becomes of their deliveries, if their jobs are still theirs.
    fn finish(&self, made: &[Made]) -> Result<Vec<Option<AttemptOutcome>>> {
        // The cap of an endpoint that fails is 1. So another cap says, without a question, that this success ends no failure.
        let is_well = |cap: u32| cap > 1 && cap == self.options.cap(true);
        let is_plain = |one: &Made| {
            !one.failed()
                && one.new_cap(&self.options).is_none()
                && one.key_cap.is_some_and(is_well)
        };
        if !made.iter().all(is_plain) {
            let (ended, turns) = self.store.transact(|tx| self.finish_in(tx, made))?;
            self.tell(&turns, made);
            return Ok(ended);
        }
        let becomes = vec![AttemptOutcome::Delivered; made.len()];
        write(&mut self.store.session()?, made, &becomes)
    }

    /// To be called once the transaction of these turns is committed.
    pub(super) fn tell(&self, turns: &[Turn], made: &[Made]) {
        turns.iter().for_each(|turn| turn.tell(&self.log, made));
    }

    /// The same with what failed attempts take beside it: the jobs of the next ones, the endpoints'
    /// caps, and what is to be told of the endpoints.
    pub(super) fn finish_in(
        &self,
        tx: &mut Tx<'_>,
        made: &[Made],
    ) -> Result<(Vec<Option<AttemptOutcome>>, Vec<Turn>)> {
        let mut turns = turns::of(tx, made)?;
        let becomes = self.becomes(tx, made)?;
        let ended = write(tx, made, &becomes)?;
        for (became, ended) in becomes.iter().zip(&ended) {
            if let (AttemptOutcome::Waits { job_id, .. }, None) = (became, ended) {
                jobs::cancel(tx.raw(), *job_id).map_err(queue_error)?;
            }
        }
        for (one, _) in made.iter().zip(&ended).filter(|(_, ended)| ended.is_some()) {
            if let Some(cap) = one.new_cap(&self.options) {
                let key = one.job.endpoint_id.to_string();
                let queue = <Deliver as jobs::Job>::QUEUE;
                jobs::set_cap(tx.raw(), queue, &key, cap).map_err(queue_error)?;
            }
        }
        turns.retain(|turn| matches!(ended.get(turn.place()), Some(Some(_))));
        Ok((ended, turns))
    }

    /// What becomes of the deliveries, with jobs for those that are tried again.
    fn becomes(&self, tx: &mut Tx<'_>, made: &[Made]) -> Result<Vec<AttemptOutcome>> {
        let wait =
            |one: &Made| retry_schedule::wait(one.begun.number, one.asked).filter(|_| one.failed());
        let waits: Vec<Option<Duration>> = made.iter().map(wait).collect();
        let mut again = Vec::new();
        for (one, wait) in made.iter().zip(&waits) {
            if let Some(wait) = wait {
                again.push(one.job.queued(self.options.cap(false))?.delay(*wait));
            }
        }
        let mut queued = jobs::enqueue_many(tx.raw(), &again)
            .map_err(queue_error)?
            .into_iter();
        let becomes = made.iter().zip(waits).map(|(one, wait)| match wait {
            None if one.failed() => Ok(AttemptOutcome::Failed),
            None => Ok(AttemptOutcome::Delivered),
            Some(wait) => {
                let job_id = queued.next().map(|job| job.id);
                let job_id = job_id.ok_or_else(|| Error::internal("a job was not written"))?;
                Ok(AttemptOutcome::Waits { job_id, wait })
            }
        });
        becomes.collect()
    }

    pub(super) fn count(&self, reason: Option<Reason>, becomes: AttemptOutcome) {
        self.counts
            .attempt(reason, becomes == AttemptOutcome::Failed);
    }
}

/// What became of those that were ended.
fn write(
    sql: &mut impl Sql,
    made: &[Made],
    becomes: &[AttemptOutcome],
) -> Result<Vec<Option<AttemptOutcome>>> {
    let finished = made
        .iter()
        .zip(becomes)
        .map(|(one, outcome)| one.finished(*outcome));
    let ended = rows::finish(sql, &finished.collect::<Vec<_>>())?;
    let became = ended.into_iter().zip(becomes);
    Ok(became
        .map(|(ended, becomes)| ended.then_some(*becomes))
        .collect())
}
