//! A tree of runs in a database, what holds them, and what must be true of them whatever happened.

use super::stepped::{Before, Stepped, transact, whole};
use crate::harness::Database;
use agent_runtime::error::Result;
use agent_runtime::ids::Clock;
use agent_runtime::proof::{Action, Kind, May};
use agent_runtime::store::events::NewEvent;
use agent_runtime::store::health;
use agent_runtime::store::runs::{
    self, Cancelled, ChildJob, ChildState, End, Held, HeldJob, Labels, NewChild, NewJob, NewRun,
    Origin, Outcome, Run, StartOptions, StepCommit, Wait, WaitingFor,
};
use agent_runtime::store::steps::{Counts, ModelCall, ModelCallOutcome, Prices};
use postgres::Client;
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

const JOB: ChildJob = ChildJob {
    queue: "runs",
    name: "run.advance",
    max_attempts: 1000,
};

/// A deadline that no test comes to.
const FAR: Duration = Duration::from_secs(24 * 3600);

/// Whoever may do everything.
struct Root(Uuid, Uuid);

impl<A: Action, K: Kind> May<A, K> for Root {
    fn tenant_id(&self) -> Uuid {
        self.0
    }

    fn object_id(&self) -> Uuid {
        self.1
    }
}

pub(super) struct World {
    pub(super) database: Database,
    pub(super) tenant_id: Uuid,
    clock: Clock,
}

pub(super) fn event(kind: &'static str) -> NewEvent {
    NewEvent {
        kind,
        data: json!({}),
    }
}

pub(super) fn end_of(end: End) -> StepCommit {
    let kind = match end {
        End::Completed { .. } => "run.completed",
        End::Failed { .. } => "run.failed",
        End::Cancelled => "run.cancelled",
    };
    StepCommit {
        events: vec![event(kind)],
        end: Some(end),
        ..StepCommit::default()
    }
}

pub(super) fn completed() -> End {
    End::Completed {
        output: json!({"ok": true}),
        message: None,
    }
}

pub(super) fn failed() -> End {
    End::Failed {
        failure: "It went wrong.".into(),
        error: None,
    }
}

impl World {
    pub(super) fn new() -> Self {
        let clock = Clock::system();
        let world = Self {
            database: Database::migrated(),
            tenant_id: clock.new_id(),
            clock,
        };
        let today = world.clock.now().date();
        whole(&mut world.client(), |sql| {
            runs::attach_partitions(sql, today)
        });
        world
    }

    pub(super) fn client(&self) -> Client {
        self.database.client()
    }

    /// A root run; nobody holds it.
    pub(super) fn root(&self, client: &mut Client) -> Uuid {
        let run = NewRun {
            run_id: self.clock.new_id(),
            project_id: self.clock.new_id(),
            flow_id: "test.parent".to_owned(),
            flow_version: "1.0.0".to_owned(),
            origin: Origin::App,
            dry_run: true,
            agent: None,
            labels: Labels::default(),
            options: StartOptions::default(),
            input: json!({}),
            message: None,
            created_by: self.clock.new_id(),
            request_id: Uuid::nil(),
            created_at: self.clock.now(),
        };
        let job = NewJob {
            queue: JOB.queue,
            name: JOB.name,
            payload: "{}".to_owned(),
            max_attempts: JOB.max_attempts,
        };
        let may = Root(self.tenant_id, run.run_id);
        whole(client, |sql| {
            let first = event("run.created");
            let environment = None;
            let begins = runs::Begins {
                first,
                job: job.clone(),
                environment,
            };
            runs::insert::<Run>(sql, &may, &run, &begins)
        });
        run.run_id
    }

    pub(super) fn new_children(&self, slots: impl IntoIterator<Item = i32>) -> Vec<NewChild> {
        let child = |slot| NewChild {
            run_id: self.clock.new_id(),
            slot,
            path: format!("/do/{slot}"),
            parent_step: None,
            branch: None,
            flow_id: "test.child".to_owned(),
            flow_version: "1.0.0".to_owned(),
            agent: None,
            turn: None,
            input: json!({"slot": slot}),
            first: event("run.created"),
            job_payload: "{}".to_owned(),
        };
        slots.into_iter().map(child).collect()
    }

    /// A commit that begins children, and goes on or waits for them.
    pub(super) fn spawning(&self, children: Vec<NewChild>, wait: Option<Wait>) -> StepCommit {
        StepCommit {
            events: vec![event("step.completed")],
            children: Some((children, JOB)),
            wait,
            ..StepCommit::default()
        }
    }

    pub(super) fn wait(&self, on: WaitingFor) -> Wait {
        Wait {
            until: self.clock.now() + FAR,
            on,
            approval_id: None,
        }
    }

    /// Takes a run's job as the queue does, if it is due, and claims the run.
    pub(super) fn take(
        &self,
        client: &mut Client,
        before: Before<'_>,
        run_id: Uuid,
    ) -> Result<Option<(Run, Held)>> {
        self.claim_and(client, before, run_id, |_, run, held| Ok((run, held)))
    }

    /// Takes a run up and ends it in the transaction of its claim, as a driver does where nothing is to be performed.
    pub(super) fn take_and_end(
        &self,
        client: &mut Client,
        before: Before<'_>,
        run_id: Uuid,
        end: End,
    ) -> Result<Option<Outcome>> {
        self.claim_and(client, before, run_id, |sql, run, held| {
            let end = match run.cancel_requested_at {
                Some(_) => End::Cancelled,
                None => end,
            };
            let commit = StepCommit {
                call: Some(self.model_call()),
                ..end_of(end)
            };
            let now = self.clock.now();
            let written = runs::commit_in(sql, &held, &commit, now, |_| Ok(()))?;
            Ok(written.outcome)
        })
    }

    /// Takes a run's job as the queue does, if it is due, claims the run, and does something more in that transaction.
    fn claim_and<T>(
        &self,
        client: &mut Client,
        before: Before<'_>,
        run_id: Uuid,
        more: impl FnOnce(&mut Stepped<'_>, Run, Held) -> Result<T>,
    ) -> Result<Option<T>> {
        let (tenant_id, now) = (self.tenant_id, self.clock.now());
        before()?;
        let job = client.query_opt(
            "update job_jobs j set lease_id = nextval('job_lease_ids'), attempt = j.attempt + 1
             where j.id = (
               select due.id from job_jobs due join runs r on r.job_id = due.id
               where r.run_id = $1 and due.lease_id is null and due.run_at <= clock_timestamp()
               for update of due skip locked)
             returning j.id, j.lease_id, j.attempt - 1",
            &[&run_id],
        )?;
        let Some(job) = job else { return Ok(None) };
        let job = HeldJob {
            job_id: job.get(0),
            lease_id: job.get(1),
            attempts_before: job.get(2),
        };
        let claimed = transact(client, before, |sql| {
            match runs::claim(sql, (tenant_id, run_id), job, now)? {
                Some((run, held)) => more(sql, run, held).map(Some),
                None => Ok(None),
            }
        })?;
        if claimed.is_none() {
            // It has finished: so is its job.
            client.execute(
                "delete from job_jobs where id = $1 and lease_id = $2",
                &[&job.job_id, &job.lease_id],
            )?;
        }
        Ok(claimed)
    }

    /// As [`World::take`], of a run that must be due.
    #[track_caller]
    pub(super) fn hold(&self, client: &mut Client, run_id: Uuid) -> (Run, Held) {
        let taken = self.take(client, &mut || Ok(()), run_id).unwrap();
        taken.expect("the run's job is due")
    }

    pub(super) fn commit(
        &self,
        client: &mut Client,
        before: Before<'_>,
        held: &mut Held,
        commit: &StepCommit,
    ) -> Result<Outcome> {
        let now = self.clock.now();
        let written = transact(client, before, |sql| {
            runs::commit_in(sql, held, commit, now, |_| Ok(()))
        })?;
        held.events_written += written.events_beside;
        let outcome = written.outcome;
        if outcome == Outcome::Written {
            held.events_written += i64::try_from(commit.events.len()).unwrap();
            held.has_children |= commit.children.is_some();
        }
        Ok(outcome)
    }

    /// Ends a held run, or as cancelled if that was asked for, with one model call that cost a dollar.
    pub(super) fn end(
        &self,
        client: &mut Client,
        before: Before<'_>,
        held: &mut Held,
        end: End,
    ) -> Result<Outcome> {
        let with_call = |end| StepCommit {
            call: Some(self.model_call()),
            ..end_of(end)
        };
        match self.commit(client, before, held, &with_call(end))? {
            Outcome::CancelAsked => self.commit(client, before, held, &with_call(End::Cancelled)),
            outcome => Ok(outcome),
        }
    }

    fn model_call(&self) -> ModelCall {
        ModelCall {
            step: 1,
            attempt: 1,
            model_provider_id: self.clock.new_id(),
            model: "m".to_owned(),
            outcome: ModelCallOutcome::Completed,
            failure: None,
            counts: Counts {
                prompt_tokens: Some(1_000_000),
                ..Counts::default()
            },
            prices: Prices {
                prompt_price: Some("1".to_owned()),
                ..Prices::default()
            },
            started_at: self.clock.now(),
        }
    }

    /// What a parent's program does from wherever it stands: takes children that have ended, waits for the others, and
    /// completes after the last. Comes back when the run is parked, finished or lost.
    pub(super) fn wait_for_all(
        &self,
        client: &mut Client,
        before: Before<'_>,
        held: &mut Held,
    ) -> Result<Outcome> {
        loop {
            let lease = held.lease;
            let children = transact(client, before, |sql| {
                runs::children(sql, &lease, 0..i32::MAX, false)
            })?;
            let is_open = |child: &&runs::Child| child.state == ChildState::Started;
            let is_new = |child: &&runs::Child| !is_open(child) && !child.is_seen;
            let taken = children.iter().filter(is_new).map(|child| child.slot);
            let taken: Vec<i32> = taken.collect();
            let next = match children.iter().any(|child| is_open(&child)) {
                true => StepCommit {
                    events: vec![event("run.waiting")],
                    wait: Some(self.wait(WaitingFor::Children)),
                    ..StepCommit::default()
                },
                false => end_of(completed()),
            };
            let next = StepCommit { taken, ..next };
            match self.commit(client, before, held, &next)? {
                Outcome::NewsArrived => {}
                Outcome::CancelAsked => {
                    return self.commit(client, before, held, &end_of(End::Cancelled));
                }
                outcome => return Ok(outcome),
            }
        }
    }

    pub(super) fn cancel(
        &self,
        client: &mut Client,
        before: Before<'_>,
        run_id: Uuid,
    ) -> Result<Cancelled> {
        let (may, now) = (Root(self.tenant_id, run_id), self.clock.now());
        transact(client, before, |sql| {
            runs::cancel(sql, &may, now).map(|(cancelled, _)| cancelled)
        })
    }

    pub(super) fn run(&self, client: &mut Client, run_id: Uuid) -> Run {
        let tenant_id = self.tenant_id;
        whole(client, |sql| runs::find(sql, tenant_id, run_id))
    }

    /// Carries on what is due until the whole tree of a root has finished, and checks at each turn that nothing waits with
    /// nothing to wake it.
    #[track_caller]
    pub(super) fn drain(&self, client: &mut Client, root_run_id: Uuid) {
        loop {
            self.nothing_is_stranded(client);
            let rows = client.query(
                "select run_id from runs where root_run_id = $1 and completed_at is null order by run_id desc",
                &[&root_run_id],
            );
            let open: Vec<Uuid> = rows.unwrap().iter().map(|row| row.get(0)).collect();
            if open.is_empty() {
                return;
            }
            let carried_on = open
                .iter()
                .filter(|run_id| self.carry_on(client, **run_id))
                .count();
            assert!(carried_on > 0, "nothing wakes {open:?}");
        }
    }

    /// Takes a run up if it is due: a parent waits for its children, any other run completes.
    fn carry_on(&self, client: &mut Client, run_id: Uuid) -> bool {
        let none = &mut || Ok(());
        let Some((run, mut held)) = self.take(client, none, run_id).unwrap() else {
            return false;
        };
        if run.cancel_requested_at.is_some() {
            let cancelled = end_of(End::Cancelled);
            self.commit(client, none, &mut held, &cancelled).unwrap();
        } else if held.has_children {
            self.wait_for_all(client, none, &mut held).unwrap();
        } else {
            self.end(client, none, &mut held, completed()).unwrap();
        }
        true
    }

    #[track_caller]
    pub(super) fn nothing_is_stranded(&self, client: &mut Client) {
        let stranded = health::stranded_runs(client, Duration::ZERO).unwrap();
        assert!(
            stranded.is_empty(),
            "these wait with nothing to wake them: {stranded:?}"
        );
    }

    /// What holds of every tree that has finished.
    #[track_caller]
    pub(super) fn check(&self, client: &mut Client, root_run_id: Uuid) {
        let wrong = client.query(
            "with tree as (select * from runs where root_run_id = $1),
               own as (select t.run_id, count(m.run_id) as calls from tree t
                 left join run_model_calls m on m.run_id = t.run_id group by t.run_id),
               taken as (select t.run_id, coalesce(sum(c.calls) filter (where c.seen), 0) as calls,
                   coalesce(sum(c.cost_usd) filter (where c.seen), 0) as cost_usd
                 from tree t left join run_children c on c.parent_run_id = t.run_id group by t.run_id)
             select 'calls' as what, t.run_id from tree t join own o using (run_id) join taken k using (run_id)
               where t.calls <> o.calls + k.calls
             union all select 'cost', t.run_id from tree t where t.cost_usd <> t.calls
             union all select 'tokens', t.run_id from tree t where t.prompt_tokens <> t.calls * 1000000
             union all select 'child', c.child_run_id from run_children c join tree t on t.run_id = c.child_run_id
               where (c.state, c.calls, c.cost_usd) is distinct from (t.status, t.calls, t.cost_usd)
             union all select 'unseen', c.child_run_id from run_children c join tree t on t.run_id = c.parent_run_id
               join tree e on e.run_id = c.child_run_id
               where not c.seen and t.status = 'completed' and e.completed_at <= t.completed_at
             union all select 'events', t.run_id from tree t
               where t.last_seq <> (select count(*) from run_events e where e.run_id = t.run_id)
             union all select 'end', t.run_id from tree t
               where (select array_agg(e.kind order by e.seq) from run_events e where e.run_id = t.run_id
                 and e.kind in ('run.completed', 'run.failed', 'run.cancelled')) <> array['run.' || t.status]
             union all select 'inherited', t.run_id from tree t join runs r on r.run_id = $1
               where (t.project_id, t.created_by, t.dry_run) is distinct from (r.project_id, r.created_by, r.dry_run)
             union all select 'job', t.run_id from tree t where t.job_id is not null",
            &[&root_run_id],
        );
        let wrong: Vec<(String, Uuid)> = wrong
            .unwrap()
            .iter()
            .map(|row| (row.get(0), row.get(1)))
            .collect();
        assert!(wrong.is_empty(), "of the tree {root_run_id}: {wrong:?}");
        let jobs = client.query_one("select count(*) from job_jobs", &[]);
        assert_eq!(jobs.unwrap().get::<_, i64>(0), 0, "no job is left");
    }

    /// Model calls of a tree.
    pub(super) fn calls_of_tree(&self, client: &mut Client, root_run_id: Uuid) -> i64 {
        let row = client.query_one(
            "select count(*) from run_model_calls m join runs r using (tenant_id, run_id) where r.root_run_id = $1",
            &[&root_run_id],
        );
        row.unwrap().get(0)
    }

    /// A tree: a held root with children in slots from 1, of which each is held, or queued.
    pub(super) fn family(&self, client: &mut Client, held_children: &[bool]) -> Family {
        let root = self.root(client);
        let (_, mut held) = self.hold(client, root);
        let none = &mut || Ok(());
        let slots = 1..=i32::try_from(held_children.len()).unwrap();
        let new = self.new_children(slots);
        let ids: Vec<Uuid> = new.iter().map(|child| child.run_id).collect();
        let begin = self.spawning(new, None);
        let outcome = self.commit(client, none, &mut held, &begin).unwrap();
        assert_eq!(outcome, Outcome::Written);
        let children = ids
            .into_iter()
            .zip(held_children)
            .map(|(id, is_held)| (id, is_held.then(|| self.hold(client, id).1)))
            .collect();
        Family {
            root,
            held,
            children,
        }
    }
}

pub(super) struct Family {
    pub(super) root: Uuid,
    pub(super) held: Held,
    pub(super) children: Vec<(Uuid, Option<Held>)>,
}
