//! One thread a queue that writes endings, as many at once as have come in: no timer, but for those that their handlers
//! wrote themselves, which are only checked. It keeps trying while the database is away, and its bounded channel holds the
//! handlers back meanwhile.

use super::claimer::AWAY;
use super::{Core, Queue};
use crate::Result;
use crate::claimed::Batch;
use crate::protocol::{Became, Ending, Settlement, complete, settle};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::{error, warn};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A job that is through its handler.
pub(super) struct Finished {
    pub(super) batch: Arc<Batch>,
    pub(super) place: usize,
    pub(super) ending: Ending,
    pub(super) keyed: bool,
    pub(super) settled_itself: bool,
}

impl Finished {
    fn id(&self) -> i64 {
        self.batch.slots[self.place].id
    }
}

/// How long the word of handlers that settled their jobs themselves may wait, to be checked for many at once.
const GATHER: Duration = Duration::from_millis(50);

pub(super) fn run(core: &Core, queue: &Queue, finished: &Receiver<Finished>) {
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
            let (settled, others): (Vec<Finished>, Vec<Finished>) =
                all.into_iter().partition(|one| one.settled_itself);
            let (done, other): (Vec<Finished>, Vec<Finished>) = others
                .into_iter()
                .partition(|one| one.ending == Ending::Done);
            write(core, queue, &done, complete_all);
            write(core, queue, &other, settle_all);
            if keyed {
                // Places of keys came free.
                queue.wake();
            }
            themselves.extend(settled);
        }
        if themselves.is_empty() {
            due = None;
        } else if ended
            || themselves.len() >= queue.options.batch
            || due.is_some_and(|due| due <= Instant::now())
        {
            write(core, queue, &std::mem::take(&mut themselves), settle_all);
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

fn settle_all(client: &mut postgres::Client, jobs: &[Finished]) -> Result<Vec<(i64, Became)>> {
    let settlement = |one: &Finished| Settlement {
        id: one.id(),
        lease_id: one.batch.lease_id,
        ending: one.ending.clone(),
    };
    settle(client, &jobs.iter().map(settlement).collect::<Vec<_>>())
}

fn write(core: &Core, queue: &Queue, jobs: &[Finished], write_all: Write) {
    if jobs.is_empty() {
        return;
    }
    let mut failures = 0;
    loop {
        let problem = match core.database.with(|client| write_all(client, jobs)) {
            Ok(became) => return count(core, queue, jobs, became),
            Err(problem) => problem,
        };
        if problem.is_about_the_statement() {
            if let [one] = jobs {
                error!(core.log, "cannot settle a job; its lease will run out"; "queue" => &queue.name,
                    "jobId" => one.id(), "error" => %problem);
                one.batch.leave(one.place);
                return;
            }
            // One of them spoils it for all: halve until it stands alone.
            let (left, right) = jobs.split_at(jobs.len() / 2);
            write(core, queue, left, write_all);
            return write(core, queue, right, write_all);
        }
        failures += 1;
        let wait = AWAY.after(failures);
        warn!(core.log, "cannot settle jobs"; "queue" => &queue.name, "error" => %problem, "failures" => failures,
            "waitMs" => wait.as_millis() as u64);
        if core.giving_up.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

fn count(core: &Core, queue: &Queue, jobs: &[Finished], became: Vec<(i64, Became)>) {
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
                (None, _) if one.settled_itself => add(&counts.done),
                (None, _) => add(&counts.lost),
                (Some(Became::Done), _) => add(&counts.done),
                (Some(Became::Dead), _) => add(&counts.dead),
                (Some(Became::Cancelled), _) => add(&counts.cancelled),
                (Some(Became::Merged), _) => add(&counts.merged),
                (Some(Became::Waiting), Ending::Snooze { .. }) => add(&counts.snoozed),
                (Some(Became::Waiting), Ending::HandBack) => {
                    add(&core.handed_back);
                    add(&counts.handed_back)
                }
                (Some(Became::Waiting), _) => add(&counts.retried),
            };
        }
    }
    for one in jobs {
        one.batch.settled(one.place);
    }
}
