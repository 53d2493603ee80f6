//! The queue beside a model of it, driven by random steps in which processes die at every point: after a claim, after
//! the handler and before its end, in the middle of the transaction that ends a job, after its commit and before
//! anybody heard of it; leases run out, late ends come, jobs are cancelled in every state.

use crate::harness::schema;
use jobs::protocol::{Became, ClaimedRow, EndedJob, Ending, claim, end_jobs, rescue};
use jobs::{Cancelled, NewJob, cancel, dead_jobs, enqueue};
use postgres::Client;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(300);
const CAP: u32 = 2;

#[derive(Clone, Debug)]
enum Step {
    Enqueue {
        key: Option<u8>,
        unique: Option<u8>,
        max_attempts: u32,
    },
    Claim {
        limit: usize,
        keyed_first: bool,
    },
    /// Ends a claim, which may be lost by now; `again` is the retry of an end whose answer was lost.
    End {
        which: prop::sample::Index,
        ending: u8,
        again: bool,
    },
    /// The handler ends the job in its own transaction and dies before the commit.
    DieWhileEnding {
        which: prop::sample::Index,
    },
    /// The lease runs out, and somebody rescues. The holder does not know: what it says later comes late.
    Expire {
        which: prop::sample::Index,
    },
    Cancel {
        which: prop::sample::Index,
        commit: bool,
    },
    TimePasses,
}

fn step() -> impl Strategy<Value = Step> {
    let which = || any::<prop::sample::Index>();
    prop_oneof![
        4 => (prop::option::of(0..3_u8), prop::option::weighted(0.3, 0..2_u8), 1..4_u32)
            .prop_map(|(key, unique, max_attempts)| Step::Enqueue { key, unique, max_attempts }),
        4 => (1..4_usize, any::<bool>()).prop_map(|(limit, keyed_first)| Step::Claim { limit, keyed_first }),
        5 => (which(), 0..5_u8, any::<bool>()).prop_map(|(which, ending, again)| Step::End { which, ending, again }),
        1 => which().prop_map(|which| Step::DieWhileEnding { which }),
        2 => which().prop_map(|which| Step::Expire { which }),
        2 => (which(), any::<bool>()).prop_map(|(which, commit)| Step::Cancel { which, commit }),
        1 => Just(Step::TimePasses),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running { lease_id: i64 },
    Done,
    Dead,
    Cancelled,
    Merged,
}

#[derive(Clone, Debug)]
struct ModelJob {
    state: State,
    asked_to_end: bool,
    attempt: u32,
    max_attempts: u32,
    key: Option<u8>,
    unique: Option<u8>,
}

#[derive(Default)]
struct Model {
    jobs: BTreeMap<i64, ModelJob>,
    /// Every claim ever made: the lost ones too.
    claims: Vec<ClaimedRow>,
}

impl Model {
    fn apply(&mut self, client: &mut Client, step: &Step) {
        match step {
            Step::Enqueue {
                key,
                unique,
                max_attempts,
            } => self.enqueue(client, *key, *unique, *max_attempts),
            Step::Claim { limit, keyed_first } => self.claim(client, *limit, *keyed_first),
            Step::TimePasses => time_passes(client),
            Step::Cancel { which, commit } if !self.jobs.is_empty() => {
                let ids: Vec<i64> = self.jobs.keys().copied().collect();
                self.cancel(client, *which.get(&ids), *commit);
            }
            Step::End {
                which,
                ending,
                again,
            } if !self.claims.is_empty() => {
                let row = which.get(&self.claims).clone();
                self.end(client, &row, *ending);
                if *again {
                    let id = row.id;
                    let ended = EndedJob {
                        id,
                        lease_id: row.lease_id,
                        ending: ending_of(*ending),
                    };
                    assert!(
                        end_jobs(client, &[ended]).unwrap().is_empty(),
                        "ended twice: {id}"
                    );
                }
            }
            Step::DieWhileEnding { which } if !self.claims.is_empty() => {
                let row = which.get(&self.claims);
                let mut tx = client.transaction().unwrap();
                let ended = EndedJob {
                    id: row.id,
                    lease_id: row.lease_id,
                    ending: Ending::Done,
                };
                end_jobs(&mut tx, &[ended]).unwrap();
                tx.rollback().unwrap();
            }
            Step::Expire { which } if !self.claims.is_empty() => {
                let lease_id = which.get(&self.claims).lease_id;
                self.expire(client, lease_id);
            }
            _ => {}
        }
    }

    fn enqueue(
        &mut self,
        client: &mut Client,
        key: Option<u8>,
        unique: Option<u8>,
        max_attempts: u32,
    ) {
        let mut job = NewJob::named("q", "n", "0").max_attempts(max_attempts);
        if let Some(key) = key {
            job = job.key(format!("k{key}"), CAP);
        }
        if let Some(unique) = unique {
            job = job.unique(format!("u{unique}"));
        }
        let enqueued = enqueue(client, job).unwrap();
        let same = |one: &ModelJob| {
            unique.is_some() && one.unique == unique && one.state == State::Waiting
        };
        assert_eq!(enqueued.added, !self.jobs.values().any(same));
        if enqueued.added {
            let job = ModelJob {
                state: State::Waiting,
                asked_to_end: false,
                attempt: 0,
                max_attempts,
                key,
                unique,
            };
            assert!(self.jobs.insert(enqueued.id, job).is_none());
        } else {
            assert!(same(&self.jobs[&enqueued.id]));
        }
    }

    fn claim(&mut self, client: &mut Client, limit: usize, keyed_first: bool) {
        let rows = claim(client, "q", "w", limit, LEASE, keyed_first).unwrap();
        assert!(rows.len() <= limit);
        for row in &rows {
            let job = self.jobs.get_mut(&row.id).unwrap();
            assert_eq!(
                job.state,
                State::Waiting,
                "job {} was not to be claimed",
                row.id
            );
            job.state = State::Running {
                lease_id: row.lease_id,
            };
            job.attempt += 1;
            assert_eq!(
                (row.attempt, row.max_attempts),
                (job.attempt, job.max_attempts)
            );
        }
        for key in 0..3 {
            let running = |job: &&ModelJob| {
                job.key == Some(key) && matches!(job.state, State::Running { .. })
            };
            assert!(
                self.jobs.values().filter(running).count() <= CAP as usize,
                "key {key} is over its cap"
            );
        }
        self.claims.extend(rows);
    }

    fn end(&mut self, client: &mut Client, row: &ClaimedRow, ending: u8) {
        let ended = EndedJob {
            id: row.id,
            lease_id: row.lease_id,
            ending: ending_of(ending),
        };
        let became = end_jobs(client, &[ended]).unwrap();
        let job = &self.jobs[&row.id];
        if job.state
            != (State::Running {
                lease_id: row.lease_id,
            })
        {
            assert!(became.is_empty(), "a late end of {} had an effect", row.id);
            return;
        }
        let expected = match ending {
            _ if job.asked_to_end => Became::Cancelled,
            0 => Became::Done,
            1 if job.attempt >= job.max_attempts => Became::Dead,
            4 => Became::Dead,
            _ => Became::Waiting,
        };
        self.ended(row.id, became[0].1, expected, matches!(ending, 2 | 3));
    }

    fn ended(&mut self, id: i64, became: Became, expected: Became, give_back: bool) {
        let unique = self.jobs[&id].unique;
        let state = match became {
            Became::Merged => {
                let other = |(other, job): (&i64, &ModelJob)| {
                    *other != id && job.unique == unique && job.state == State::Waiting
                };
                assert!(
                    expected == Became::Waiting && unique.is_some() && self.jobs.iter().any(other),
                    "merged into nothing"
                );
                State::Merged
            }
            _ => {
                assert_eq!(became, expected);
                match became {
                    Became::Done => State::Done,
                    Became::Dead => State::Dead,
                    Became::Cancelled => State::Cancelled,
                    _ => State::Waiting,
                }
            }
        };
        let job = self.jobs.get_mut(&id).unwrap();
        job.state = state;
        if give_back {
            job.attempt -= 1;
        }
    }

    fn expire(&mut self, client: &mut Client, lease_id: i64) {
        let sql =
            "UPDATE job_leases SET expires_at = clock_timestamp() - interval '1 s' WHERE id = $1";
        client.execute(sql, &[&lease_id]).unwrap();
        let rescued = rescue(client, 10).unwrap();
        let held: Vec<i64> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.state == State::Running { lease_id })
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(rescued.len(), held.len());
        for (id, became) in rescued {
            let job = &self.jobs[&id];
            assert!(held.contains(&id));
            let expected = match job {
                job if job.asked_to_end => Became::Cancelled,
                job if job.attempt >= job.max_attempts => Became::Dead,
                _ => Became::Waiting,
            };
            self.ended(id, became, expected, false);
        }
    }

    fn cancel(&mut self, client: &mut Client, id: i64, commit: bool) {
        let mut tx = client.transaction().unwrap();
        let cancelled = cancel(&mut tx, id).unwrap();
        let job = self.jobs.get_mut(&id).unwrap();
        let expected = match job.state {
            State::Waiting => Cancelled::Removed,
            State::Running { .. } => Cancelled::Running,
            _ => Cancelled::Unknown,
        };
        assert_eq!(cancelled, expected);
        if !commit {
            return tx.rollback().unwrap();
        }
        tx.commit().unwrap();
        match cancelled {
            Cancelled::Removed => job.state = State::Cancelled,
            Cancelled::Running => job.asked_to_end = true,
            Cancelled::Unknown => {}
        }
    }

    /// All processes die; new ones must bring every job to its one end.
    fn drain(&mut self, client: &mut Client) {
        for _ in 0..self.jobs.len() + 3 {
            let mut leases: Vec<i64> = self.claims.iter().map(|row| row.lease_id).collect();
            leases.dedup();
            for lease_id in leases {
                self.expire(client, lease_id);
            }
            self.claims.clear();
            time_passes(client);
            self.claim(client, 100, true);
            for row in self.claims.clone() {
                self.end(client, &row, 0);
            }
        }
        for (id, job) in &self.jobs {
            let ended = matches!(
                job.state,
                State::Done | State::Dead | State::Cancelled | State::Merged
            );
            assert!(ended, "job {id} was never served: {job:?}");
        }
        let dead: Vec<i64> = dead_jobs(client, "q", 0, 1000)
            .unwrap()
            .iter()
            .map(|job| job.id)
            .collect();
        let expected: Vec<i64> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.state == State::Dead)
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(dead, expected);
        self.claim(client, 1, true);
        let left = "SELECT (SELECT count(*) FROM job_jobs), (SELECT coalesce(sum(abs(in_flight)), 0) FROM job_keys)::bigint";
        let row = client.query_one(left, &[]).unwrap();
        assert_eq!(
            (row.get::<_, i64>(0), row.get::<_, i64>(1)),
            (0, 0),
            "rows and places in flight at the end"
        );
    }
}

fn ending_of(ending: u8) -> Ending {
    match ending {
        0 => Ending::Done,
        1 => Ending::Retry {
            after: Duration::from_secs(60),
            reason: "no luck".into(),
        },
        2 => Ending::Snooze {
            after: Duration::from_secs(60),
        },
        3 => Ending::HandBack,
        _ => Ending::Dead {
            reason: "hopeless".into(),
        },
    }
}

/// Everything that waits for a time is due.
fn time_passes(client: &mut Client) {
    let sql = "UPDATE job_jobs SET run_at = clock_timestamp() WHERE run_at > clock_timestamp();
               UPDATE job_keys SET next_at = clock_timestamp() WHERE next_at > clock_timestamp() AND next_at < 'infinity'";
    client.batch_execute(sql).unwrap();
}

/// What no constraint holds: the numbers, and the columns that change together.
fn rows_are_sound(client: &mut Client) {
    let unsound = "SELECT count(*) FROM job_jobs WHERE NOT (
        attempt >= 0 AND max_attempts >= 1 AND priority BETWEEN 0 AND 3 AND coalesce(key_cap, 1) >= 1
        AND (key IS NULL) = (key_cap IS NULL)
        AND (lease_id IS NOT NULL OR NOT cancelled)
        AND (lease_id IS NULL OR attempt >= 1)
        AND (unique_held IS NULL OR (lease_id IS NULL AND unique_held = unique_key)))";
    let row = client.query_one(unsound, &[]).unwrap();
    assert_eq!(
        row.get::<_, i64>(0),
        0,
        "rows that no constraint would take"
    );
}

#[test]
fn no_step_loses_a_job_runs_one_twice_at_once_starts_a_cancelled_one_or_breaks_a_cap() {
    let schema = schema();
    let client = RefCell::new(schema.client());
    let config = Config {
        cases: 60,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let steps = prop::collection::vec(step(), 5..50);
    let run = TestRunner::new(config).run(&steps, |steps| {
        let mut client = client.borrow_mut();
        client
            .batch_execute("TRUNCATE job_jobs, job_dead, job_leases, job_keys, job_key_moves")
            .unwrap();
        let mut model = Model::default();
        for step in &steps {
            model.apply(&mut client, step);
            rows_are_sound(&mut client);
        }
        model.drain(&mut client);
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
}
