//! One thread for each queue that writes outcomes, as many at once as have come in. It has no
//! timer, except for jobs that their handlers completed themselves: those are only checked,
//! together. While the database is unreachable it retries, and its bounded channel blocks the
//! handlers.

use super::job_end::Finished;
use super::state::{QueueState, RunnerState, warn_unless_away};
use crate::Result;
use crate::backoff::AWAY;
use crate::protocol::{Became, EndedJob, Ending, complete, end_jobs};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::error;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long jobs that their handlers ended may wait to be checked, so that many are checked at once.
const GATHER: Duration = Duration::from_millis(50);

pub(super) fn run(runner: &RunnerState, queue: &QueueState, finished: &Receiver<Finished>) {
    let mut themselves = Vec::new();
    let mut due = None;
    loop {
        let first = match due {
            None => finished.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => finished.recv_deadline(due),
        };
        let ended = matches!(first, Err(RecvTimeoutError::Disconnected));
        if let Ok(first) = first {
            let rest = finished.try_iter().take(queue.options.batch - 1);
            let all: Vec<Finished> = std::iter::once(first).chain(rest).collect();
            let keyed = all.iter().any(|one| one.keyed);
            let (ended, others): (Vec<Finished>, Vec<Finished>) =
                all.into_iter().partition(|one| one.ended_by_handler);
            let (done, other): (Vec<Finished>, Vec<Finished>) = others
                .into_iter()
                .partition(|one| one.ending == Ending::Done);
            write(runner, queue, &done, complete_all);
            write(runner, queue, &other, end_all);
            if keyed {
                // Their keys may run others now.
                queue.wake();
            }
            themselves.extend(ended);
        }
        if themselves.is_empty() {
            due = None;
        } else if ended
            || themselves.len() >= queue.options.batch
            || due.is_some_and(|due| due <= Instant::now())
        {
            write(runner, queue, &std::mem::take(&mut themselves), end_all);
            due = None;
        } else if due.is_none() {
            due = Some(Instant::now() + GATHER);
        }
        if ended {
            return;
        }
    }
}

type Write = fn(&mut postgres::Client, &[Finished]) -> Result<Vec<(i64, Became)>>;

fn complete_all(client: &mut postgres::Client, jobs: &[Finished]) -> Result<Vec<(i64, Became)>> {
    let ids: Vec<i64> = jobs.iter().map(Finished::id).collect();
    let leases: Vec<i64> = jobs.iter().map(|one| one.batch.lease_id).collect();
    Ok(complete(client, &ids, &leases)?
        .into_iter()
        .map(|id| (id, Became::Done))
        .collect())
}

fn end_all(client: &mut postgres::Client, jobs: &[Finished]) -> Result<Vec<(i64, Became)>> {
    let ended = |one: &Finished| EndedJob {
        id: one.id(),
        lease_id: one.batch.lease_id,
        ending: one.ending.clone(),
    };
    end_jobs(client, &jobs.iter().map(ended).collect::<Vec<_>>())
}

fn write(runner: &RunnerState, queue: &QueueState, jobs: &[Finished], write_all: Write) {
    if jobs.is_empty() {
        return;
    }
    let mut failures = 0;
    loop {
        let problem = match runner.database.with(|client| write_all(client, jobs)) {
            Ok(became) => return count(runner, queue, jobs, became),
            Err(problem) => problem,
        };
        if problem.is_about_the_statement() {
            if let [one] = jobs {
                error!(runner.log, "cannot end a job; its lease will run out"; "queue" => &queue.name,
                    "jobId" => one.id(), "error" => #problem);
                one.batch.leave(one.index);
                return;
            }
            // One of them spoils it for all: halve until it stands alone.
            let (left, right) = jobs.split_at(jobs.len() / 2);
            write(runner, queue, left, write_all);
            return write(runner, queue, right, write_all);
        }
        failures += 1;
        let wait = AWAY.after(failures);
        warn_unless_away!(runner, "cannot end jobs"; "queue" => &queue.name, "error" => #problem, "failures" => failures,
            "waitMs" => wait.as_millis() as u64);
        if runner.giving_up.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

fn count(runner: &RunnerState, queue: &QueueState, jobs: &[Finished], became: Vec<(i64, Became)>) {
    let counts = &queue.counts;
    let add = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
    if jobs.iter().all(|one| one.ending == Ending::Done) && became.len() == jobs.len() {
        counts.done.fetch_add(jobs.len() as u64, Ordering::Relaxed);
    } else {
        let became: HashMap<i64, Became> = became.into_iter().collect();
        let mut seen = HashSet::new();
        for one in jobs {
            // The same job may be here twice, under a lost lease and a new one: the answer is for one of them.
            let became = became.get(&one.id()).filter(|_| seen.insert(one.id()));
            match (became, &one.ending) {
                (None, _) if one.ended_by_handler => add(&counts.done),
                (None, _) => add(&counts.lost),
                (Some(Became::Done), _) => add(&counts.done),
                (Some(Became::Dead), _) => add(&counts.dead),
                (Some(Became::Cancelled), _) => add(&counts.cancelled),
                (Some(Became::Merged), _) => add(&counts.merged),
                (Some(Became::Waiting), Ending::Snooze { .. }) => add(&counts.snoozed),
                (Some(Became::Waiting), Ending::HandBack) => {
                    add(&runner.handed_back);
                    add(&counts.handed_back)
                }
                (Some(Became::Waiting), _) => add(&counts.retried),
            };
        }
    }
    for one in jobs {
        one.batch.ended(one.index);
    }
}
