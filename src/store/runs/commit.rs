//! What the holder of a run writes: one commit at a time, under the fence, whole or not at all.
//!
//! Guarantees: a commit is written once, however often it is repeated, and whether or not the event of an escalation was
//! written meanwhile. A run does not wait for its children while one has ended that it has not seen, nor for an approval that
//! was closed (`no-lost-wake-up`). Locks are taken in one order (`locks-from-root-to-leaf`).
//!
//! A commit is one statement if it needs no more: most ends of steps do not, nor does the end of a run that has no children
//! and of which no endpoint is notified. Callers do not see the difference.
//!
//! Not here: which commit comes next (`runtime`).

use super::cancel::{Others, cancel_children};
use super::children::{self, ChildJob};
use super::end::End;
use super::ended::{EndedRun, Totals, cancelled_at, totals_of};
use super::lease::{Held, job_lost};
use super::new_child::NewChild;
use super::rows::{Parent, Status, WaitingFor};
use super::storable;
use crate::error::{Error, Result};
use crate::sql;
use crate::store::approvals::{self, Opening};
use crate::store::events::NewEvent;
use crate::store::flow_states::FlowState;
use crate::store::run_checks::Checks;
use crate::store::steps::{Begun, Ended, ModelCall, Prices};
use crate::store::{Columns, Parameter, Sql, Store, Tx, on_violation, sql_state};
use postgres::Row;
use postgres::error::SqlState;
use serde_json::{Value, json};
use std::borrow::Cow;
use time::OffsetDateTime;
use uuid::Uuid;

/// The longest wait, in milliseconds: 400 days. A run whose wait is longer wakes then, and waits again.
const LONGEST_WAIT_MS: i64 = 400 * 24 * 60 * 60 * 1000;

/// One commit of a held run. Everything in it is written, or nothing.
#[derive(Debug, Clone, Default)]
pub struct StepCommit {
    /// What readers see, in order; at least one.
    pub events: Vec<NewEvent>,
    /// The model call that ended: see [`ModelCall`].
    pub call: Option<ModelCall>,
    /// Streamed text of the run may have been written, which is dropped. What is overlooked is swept once
    /// the run has finished.
    pub has_text: bool,
    /// The step that ended.
    pub ended: Option<Ended>,
    /// The step that begins, or begins again.
    pub begun: Option<Begun>,
    /// Of a run of a flow: where it stands with the step that begins.
    pub flow_state: Option<FlowState>,
    /// Of a run of a flow below another: the error that it fails with.
    pub flow_error: Option<Value>,
    /// Slots of children that have ended, whose ends the run has seen with this: their usage is added to its own.
    pub taken: Vec<i32>,
    /// Child runs that begin.
    pub children: Option<(Vec<NewChild>, ChildJob)>,
    /// The approvals that are opened, for the step that begins or for steps after it.
    pub approvals: Vec<Opening>,
    /// What guardrails decided.
    pub checks: Checks,
    /// The run now waits, and its job with it.
    pub wait: Option<Wait>,
    /// The run ends, with the last of the events, and its job with it. Runs below it that are under way are cancelled. Once
    /// a cancel was asked for no other commit is written than one that ends so.
    pub end: Option<End>,
}

/// A run that holds nothing until something wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When it goes on at the latest; at most 400 days ahead.
    pub until: OffsetDateTime,
    /// What wakes it before.
    pub on: WaitingFor,
    /// Of a run that waits for one: the approval.
    pub approval_id: Option<Uuid>,
}

/// What a fenced write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is written, by this call or by an earlier one whose answer was lost.
    Written,
    /// A child has ended that the run has not seen, or the approval was closed: nothing is written, and the run does not
    /// wait. Only for a commit that waits for one of these.
    NewsArrived,
    /// A cancel was asked for: nothing is written. Only for a commit that does not end the run so.
    CancelAsked,
    /// The run is another's or has finished: nothing is written.
    Lost,
}

/// What a commit came to, with what the log and the metrics tell of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Whether it is written.
    pub outcome: Outcome,
    /// What its model call cost, where that is known.
    pub cost_usd: Option<f64>,
    /// Of a run that ended with it.
    pub totals: Option<Totals>,
    /// How many events of the run others have written that its holder has not counted yet.
    pub events_beside: i64,
    /// Runs below that ended with it: those that nobody held, where the run itself ended and they were cancelled for that; and
    /// those that could not begin.
    pub ended_below: Vec<EndedRun>,
}

/// What the statement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Written,
    Repeated,
    News,
    CancelAsked,
    /// An event that another wrote is not counted yet.
    Overtaken,
    Lost,
    /// It takes more than the one statement; nothing is written.
    More,
}

/// An answer of the statement, with what follows from it.
struct Stated {
    answer: Answer,
    cost_usd: Option<f64>,
    totals: Option<Totals>,
    events_beside: i64,
    ended: Vec<EndedRun>,
}

impl Stated {
    /// None: it takes more than the statement.
    fn written(self) -> Option<Written> {
        let outcome = match self.answer {
            Answer::Written | Answer::Repeated => Outcome::Written,
            Answer::News => Outcome::NewsArrived,
            Answer::CancelAsked => Outcome::CancelAsked,
            Answer::Lost | Answer::Overtaken => Outcome::Lost,
            Answer::More => return None,
        };
        Some(Written {
            outcome,
            cost_usd: self.cost_usd,
            totals: self.totals,
            events_beside: self.events_beside,
            ended_below: self.ended,
        })
    }
}

/// Tells the world of a run's end, in the transaction that writes it.
pub type Announce<'a> = &'a dyn Fn(&mut Tx<'_>) -> Result<()>;

/// Writes a commit under the fence, in a transaction of its own. `announce` is called in the transaction that ends a run
/// that has no parent, or that opens an approval, last. None: no endpoint is notified.
///
/// # Errors
/// `conflict` when the job of a run that waits or ends is another's; then nothing is written. Those of `announce`.
pub fn commit(
    store: &Store,
    held: &Held,
    commit: &StepCommit,
    now: OffsetDateTime,
    announce: Option<Announce<'_>>,
) -> Result<Written> {
    let mut session = store.session()?;
    if commit.is_one_statement(held) {
        // A child's end has no webhook event.
        let is_announced =
            commit.end.is_some() && announce.is_some() && held.lease.parent().is_none();
        let statement = Statement {
            form: Form::Whole { is_announced },
            looks_at_root: true,
        };
        if let Some(written) = write_whole(&mut session, held, commit, now, statement)? {
            return Ok(written);
        }
    }
    session.transact(|tx| {
        write_with_more(tx, held, commit, (now, true), |tx| {
            announce.map_or(Ok(()), |announce| announce(tx))
        })
    })
}

/// As [`commit`], in the caller's transaction, in which nothing was written before but the run's claim.
///
/// # Errors
/// As [`commit`].
pub fn commit_in<S: Sql>(
    sql: &mut S,
    held: &Held,
    commit: &StepCommit,
    now: OffsetDateTime,
    announce: impl FnOnce(&mut S) -> Result<()>,
) -> Result<Written> {
    if commit.end.is_some() && held.lease.parent().is_some() && commit.is_one_statement(held) {
        let statement = Statement {
            form: Form::Whole {
                is_announced: false,
            },
            looks_at_root: false,
        };
        let written = write_whole(sql, held, commit, now, statement)?;
        return written.ok_or_else(lacking);
    }
    // The claim has looked.
    write_with_more(sql, held, commit, (now, false), announce)
}

/// A commit that takes more than one statement.
fn write_with_more<S: Sql>(
    sql: &mut S,
    held: &Held,
    commit: &StepCommit,
    (now, looks_at_root): (OffsetDateTime, bool),
    announce: impl FnOnce(&mut S) -> Result<()>,
) -> Result<Written> {
    let lease = &held.lease;
    let mut jobs = Others::default();
    let mut parent = None;
    if let Some(end) = &commit.end {
        if let Some(found) = lease.parent() {
            let due = children::lock_parent(sql, lease.tenant_id(), found)?;
            jobs.due.extend(due);
            parent = Some(found);
        }
        let is_cancelled = *end == End::Cancelled;
        while held.has_children && cancel_children(sql, held, is_cancelled, now, &mut jobs)? {}
    }
    let statement = Statement {
        form: Form::First,
        looks_at_root,
    };
    let mut stated = write(sql, held, commit, now, statement)?;
    let is_new = stated.answer == Answer::Written;
    if is_new && let Some((children, job)) = &commit.children {
        stated.ended = children::insert(sql, lease, (children, *job), now)?;
    }
    if is_new {
        for opening in &commit.approvals {
            approvals::open(sql, lease, opening, now)?;
        }
    }
    if is_new && let Some(wait) = &commit.wait {
        put_off(sql, held, wait, now)?;
    }
    if stated.totals.is_some() && held.has_children {
        stated.ended = match is_new {
            true => EndedRun::of(sql, lease.tenant_id(), &jobs.ended)?,
            // The answer was lost, and with it which runs these were.
            false => cancelled_at(sql, lease, now)?,
        };
        let is_below = |ended: &EndedRun| ended.run.run_id != lease.run_id();
        stated.ended.retain(is_below);
    }
    if is_new && commit.end.is_some() {
        finish(sql, held, parent, &jobs, announce)?;
    } else if is_new && !commit.approvals.is_empty() {
        announce(sql)?;
    }
    stated.written().ok_or_else(lacking)
}

fn lacking() -> Error {
    Error::internal("a commit was not written")
}

/// What an end takes beside the run's own rows.
fn finish<S: Sql>(
    sql: &mut S,
    held: &Held,
    parent: Option<Parent>,
    jobs: &Others,
    announce: impl FnOnce(&mut S) -> Result<()>,
) -> Result<()> {
    if let Some(parent) = parent {
        children::record_end(sql, &held.lease, parent)?;
    }
    update_jobs(sql, Some(held), jobs)?;
    match parent {
        Some(_) => Ok(()),
        // Last, since the endpoint's row may be held from here to the commit.
        None => announce(sql),
    }
}

/// Puts the run's job off until the end of a wait.
fn put_off(sql: &mut impl Sql, held: &Held, wait: &Wait, now: OffsetDateTime) -> Result<()> {
    let delay = wait.until - now;
    // Rounded up: a run that is taken up within the last millisecond would wait once more.
    let delay_ms = (delay.whole_nanoseconds() + 999_999).div_euclid(1_000_000);
    let delay_ms = delay_ms.clamp(0, LONGEST_WAIT_MS.into());
    let delay_ms = i64::try_from(delay_ms).unwrap_or(LONGEST_WAIT_MS);
    let job = held.job;
    let row = sql.query_opt(
        sql!("runs/put_off"),
        &[&job.job_id, &job.lease_id, &delay_ms],
    )?;
    let became: Option<String> = row.map(|row| row.column("became")).transpose()?;
    match became.as_deref() {
        Some("waiting") => Ok(()),
        _ => Err(job_lost()),
    }
}

/// Completes the job of the run that ended, and moves others.
fn update_jobs(sql: &mut impl Sql, ended: Option<&Held>, others: &Others) -> Result<()> {
    let job = ended.map(|held| held.job);
    if job.is_none() && others.removed.is_empty() && others.due.is_empty() {
        return Ok(());
    }
    let row = sql.query_one(
        sql!("runs/update_jobs"),
        &[
            &job.map(|job| job.job_id),
            &job.map(|job| job.lease_id),
            &others.removed,
            &others.due,
        ],
    )?;
    match row.column("ended")? {
        true => Ok(()),
        false => Err(job_lost()),
    }
}

/// The commit as one statement, with the job of a run that ends. `None`: it takes more, and nothing is written.
fn write_whole(
    sql: &mut impl Sql,
    held: &Held,
    commit: &StepCommit,
    now: OffsetDateTime,
    statement: Statement,
) -> Result<Option<Written>> {
    let stated = write(sql, held, commit, now, statement);
    match on_violation(stated, &SqlState::from_code("AR001"), job_lost) {
        Ok(stated) => Ok(stated.written()),
        Err(error) if sql_state(&error).is_some_and(|state| state.code() == "AR002") => Ok(None),
        Err(error) => Err(error),
    }
}

/// How a commit is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Statement {
    form: Form,
    /// Whether a run below another looks at its root, whose cancel is its own; no, where the transaction has looked.
    looks_at_root: bool,
}

/// How much of a commit its statement writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All of it: of a run that ends its job too, and its place among its parent's children.
    Whole {
        /// Whether an endpoint may have to be notified of the end.
        is_announced: bool,
    },
    /// What the fence holds. The rest follows in its transaction.
    First,
}

/// Runs the statement, again after it has counted what others wrote meanwhile.
fn write(
    sql: &mut impl Sql,
    held: &Held,
    commit: &StepCommit,
    now: OffsetDateTime,
    statement: Statement,
) -> Result<Stated> {
    let mut counted = *held;
    // Each approval is escalated once, so this ends.
    loop {
        let mut stated = write_once(sql, &counted, commit, now, statement)?;
        if matches!(stated.answer, Answer::Overtaken | Answer::Repeated) {
            counted.events_written += events_beside(sql, &counted)?;
        }
        if stated.answer != Answer::Overtaken {
            stated.events_beside = counted.events_written - held.events_written;
            return Ok(stated);
        }
    }
}

fn events_beside(sql: &mut impl Sql, held: &Held) -> Result<i64> {
    let run = (held.lease.tenant_id(), held.lease.run_id());
    let row = sql.query_one(
        sql!("events/beside"),
        &[&run.0, &run.1, &held.events_written],
    )?;
    row.only()
}

fn write_once(
    sql: &mut impl Sql,
    held: &Held,
    commit: &StepCommit,
    now: OffsetDateTime,
    statement: Statement,
) -> Result<Stated> {
    if commit.events.is_empty() {
        return Err(Error::internal("a commit without an event"));
    }
    let kinds: Vec<&str> = commit.events.iter().map(|event| event.kind).collect();
    let events = commit.events.iter();
    let data: Vec<Cow<'_, Value>> = events.map(|event| storable::value(&event.data)).collect();
    let data: Vec<&Value> = data.iter().map(AsRef::as_ref).collect();
    let lease = &held.lease;
    let root = lease.root().filter(|_| statement.looks_at_root);
    let head: [Parameter<'_>; 10] = [
        &lease.tenant_id(),
        &lease.run_id(),
        &lease.epoch(),
        &held.events_written,
        &root,
        &commit.is_progress().then_some(held.job.attempts_before),
        &now,
        &commit.status().text(),
        &kinds,
        &data,
    ];
    let wait = commit.wait.as_ref();
    let wait: [Parameter<'_>; 3] = [
        &wait.map(|wait| wait.on.text()),
        &wait.map(|wait| wait.until),
        &wait.and_then(|wait| wait.approval_id),
    ];
    let children: [Parameter<'_>; 3] = [
        &commit.taken,
        &(held.has_children && commit.end.is_some()),
        &commit.children.is_some(),
    ];
    let Checks { made, input } = &commit.checks;
    let made = (!made.is_empty()).then(|| json!(made));
    let input_text = input
        .as_ref()
        .and_then(|input| input.text.as_deref().map(storable::text));
    let checks: [Parameter<'_>; 3] = [
        &made,
        &input_text.as_deref(),
        &input.as_ref().map(|input| input.is_refused),
    ];
    with_steps(commit, |steps| {
        with_call(commit.call.as_ref(), |call| {
            with_flow_state(commit.flow_state.as_ref(), |state| {
                with_end(held, commit, statement.form, |end| {
                    let has_text: [Parameter<'_>; 1] = [&commit.has_text];
                    let parts = [
                        &head, steps, call, &has_text, state, &wait, &children, end, &checks,
                    ];
                    stated_of(&sql.query_one(sql!("runs/commit"), &parts.concat())?)
                })
            })
        })
    })
}

/// The step that ends and the one that begins as parameters of a commit; nulls without one.
fn with_steps<T>(
    commit: &StepCommit,
    write: impl FnOnce(&[Parameter<'_>]) -> Result<T>,
) -> Result<T> {
    let (ended, begun) = (commit.ended.as_ref(), commit.begun.as_ref());
    let result = ended.and_then(|step| step.result.as_ref().map(storable::value));
    let name = begun.map(|step| storable::text(&step.name));
    let request = begun.map(|step| storable::value(&step.request));
    write(&[
        &ended.map(|step| step.step),
        &ended.map(|step| step.status.text()),
        &result.as_deref(),
        &ended.map(|step| step.failures),
        &begun.map(|step| step.step),
        &begun.map(|step| step.kind.text()),
        &name.as_deref(),
        &begun.map(|step| step.path.as_str()),
        &begun.map(|step| step.attempt),
        &begun.map(|step| step.failures),
        &request.as_deref(),
    ])
}

/// The run's end as parameters of a commit; nulls without one.
fn with_end<T>(
    held: &Held,
    commit: &StepCommit,
    form: Form,
    write: impl FnOnce(&[Parameter<'_>]) -> Result<T>,
) -> Result<T> {
    let (failure, output, message) = commit.end.as_ref().map_or((None, None, None), End::parts);
    let error = commit.flow_error.as_ref().map(storable::value);
    let (is_whole, is_announced) = match form {
        Form::Whole { is_announced } => (commit.end.is_some(), is_announced),
        Form::First => (false, false),
    };
    let job = is_whole.then_some(held.job);
    let parent = held.lease.parent().filter(|_| is_whole);
    write(&[
        &failure.as_deref(),
        &output.as_deref(),
        &message.as_deref(),
        &error.as_deref(),
        &job.map(|job| job.job_id),
        &job.map(|job| job.lease_id),
        &parent.map(|parent| parent.run_id),
        &parent.map(|parent| parent.slot),
        &is_announced,
    ])
}

fn stated_of(row: &Row) -> Result<Stated> {
    let answer = match row.column("outcome")? {
        "written" => Answer::Written,
        "repeated" => Answer::Repeated,
        "news" => Answer::News,
        "cancel-asked" => Answer::CancelAsked,
        "overtaken" => Answer::Overtaken,
        "lost" => Answer::Lost,
        _ => Answer::More,
    };
    Ok(Stated {
        answer,
        cost_usd: row.column("cost_usd")?,
        totals: totals_of(row)?,
        events_beside: 0,
        ended: Vec::new(),
    })
}

/// Where a flow stands as the parameters of a commit; nulls without one.
fn with_flow_state<T>(
    state: Option<&FlowState>,
    write: impl FnOnce(&[Parameter<'_>]) -> Result<T>,
) -> Result<T> {
    let [frames, data, context] = state.map_or([None, None, None], |state| {
        [&state.frames, &state.data, &state.context].map(|part| Some(storable::value(part)))
    });
    write(&[
        &state.map(|state| state.format),
        &frames.as_deref(),
        &data.as_deref(),
        &context.as_deref(),
        &state.map(|state| state.tasks),
        &state.map(|state| state.slots),
    ])
}

impl StepCommit {
    fn status(&self) -> Status {
        match &self.end {
            Some(end) => end.status(),
            None if self.wait.is_some() => Status::Waiting,
            None => Status::Running,
        }
    }

    /// Whether the run has moved on with it: a step has ended, or the run waits. A claim that begins a step once more, and may
    /// die of it once more, is none.
    fn is_progress(&self) -> bool {
        self.ended.is_some() || self.wait.is_some()
    }

    /// Whether one statement may be all of it.
    fn is_one_statement(&self, held: &Held) -> bool {
        let ends_tree = self.end.is_some() && held.has_children;
        let has_more = self.wait.is_some() || self.children.is_some() || !self.approvals.is_empty();
        !has_more && !ends_tree
    }
}

/// A model call as the parameters of a commit; nulls without one.
fn with_call<T>(
    call: Option<&ModelCall>,
    write: impl FnOnce(&[Parameter<'_>]) -> Result<T>,
) -> Result<T> {
    let failure = call.and_then(|call| call.failure.as_deref());
    let counts = call.map(|call| call.counts).unwrap_or_default();
    let none = Prices::default();
    let prices = call.map_or(&none, |call| &call.prices);
    write(&[
        &call.map(|call| call.step),
        &call.map(|call| call.attempt),
        &call.map(|call| call.model_provider_id),
        &call.map(|call| storable::text(&call.model)).as_deref(),
        &call.map(|call| call.outcome.text()),
        &failure.map(storable::text).as_deref(),
        &call.map(|call| call.started_at),
        &counts.prompt_tokens,
        &counts.completion_tokens,
        &counts.cache_read_tokens,
        &counts.cache_write_tokens,
        &counts.reasoning_tokens,
        &prices.prompt_price,
        &prices.completion_price,
        &prices.cache_read_price,
        &prices.cache_write_price,
        &prices.reasoning_price,
    ])
}
