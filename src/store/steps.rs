//! The journal of a run: what its steps were asked, what they answered, and what each model call used.
//!
//! A row stands before its step begins; its result is written with the events and the usage that
//! follow from it ([`super::runs::commit`]). Here are the shapes and the reading.

use super::page::Request;
use super::{Columns, Parameter, Sql};
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::store::runs::{Lease, Run, Tokens};
use crate::{list_sql, sql, texts};
use postgres::Row;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    /// What a step is.
    StepKind {
        /// A call of a model.
        Model = "model",
        /// A call of a tool.
        Tool = "tool",
        /// An HTTP request.
        Http = "http",
        /// A wait for a time.
        Wait = "wait",
        /// Child runs, until they have ended.
        Child = "child",
        /// An approval, until it is closed.
        Approval = "approval",
        /// Guardrails that judge a text.
        Guardrail = "guardrail",
    }
}

texts! {
    /// Where a step stands.
    StepStatus {
        /// Under way, or was when its process died.
        Running = "running",
        /// Done; never done again.
        Completed = "completed",
        /// Its newest attempt failed.
        Failed = "failed",
    }
}

texts! {
    /// What a step came to.
    StepOutcome {
        /// It did what it was begun for.
        Succeeded = "succeeded",
        /// A call was answered with an error or was not made, or a run that it began did not complete.
        Failed = "failed",
        /// A call may have taken effect: nobody got its answer.
        Unknown = "unknown",
        /// Its approval was not given.
        Refused = "refused",
    }
}

/// A page of steps ends with the one that takes it past this many bytes of results.
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// The newest form of a step that this program reads. `run_begin_step` and `run_commit` write the oldest form that says all of it:
///
/// 1. All but the following.
/// 2. Guardrails judge a text (a step of a kind that an earlier build does not know), or have judged what the step answers (an
///    earlier build would make a call that they blocked).
const FORMAT: i16 = 2;

/// A row of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its number, from 1.
    pub step: i32,
    /// What it is.
    pub kind: StepKind,
    /// The model's or the tool's name.
    pub name: String,
    /// Where it stands in the program of its run; empty in an agent's turn.
    pub path: String,
    /// Where it stands.
    pub status: StepStatus,
    /// The newest attempt, from 1.
    pub attempt: i32,
    /// How many attempts the other side failed.
    pub failures: i32,
    /// What it was asked.
    pub request: Value,
    /// What it answered, once completed.
    pub result: Option<Value>,
    /// When the newest attempt began.
    pub started_at: OffsetDateTime,
    /// When it ended.
    pub completed_at: Option<OffsetDateTime>,
}

/// A row of the journal as a list shows it: without what the step was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its number, from 1.
    pub step: i32,
    /// What it is.
    pub kind: StepKind,
    /// The model's or the tool's name.
    pub name: String,
    /// Where it stands in the program of its run; empty in an agent's turn.
    pub path: String,
    /// Where it stands.
    pub status: StepStatus,
    /// The newest attempt, from 1.
    pub attempt: i32,
    /// What it answered, once completed; nothing, once it was erased.
    pub result: Option<Value>,
    /// When the newest attempt began.
    pub started_at: OffsetDateTime,
    /// When it ended.
    pub completed_at: Option<OffsetDateTime>,
}

/// A step that begins, or begins again with a higher attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// Its number.
    pub step: i32,
    /// What it is.
    pub kind: StepKind,
    /// The model's or the tool's name.
    pub name: String,
    /// Where it stands in the program of its run; empty in an agent's turn.
    pub path: String,
    /// This attempt.
    pub attempt: i32,
    /// Attempts that the other side failed so far.
    pub failures: i32,
    /// What it is asked.
    pub request: Value,
}

/// A step that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Its number.
    pub step: i32,
    /// `completed` or `failed`.
    pub status: StepStatus,
    /// What it answered, if it completed.
    pub result: Option<Value>,
    /// Attempts that the other side failed so far.
    pub failures: i32,
}

texts! {
    /// How a model call ended.
    ModelCallOutcome {
        /// With an answer.
        Completed = "completed",
        /// With the provider's fault.
        Failed = "failed",
        /// Its process died: nobody knows what it used.
        Lost = "lost",
        /// It was cut by a cancel.
        Cancelled = "cancelled",
    }
}

/// Tokens that a provider counted. A count that it did not give is absent, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// What the model read.
    pub prompt_tokens: Option<i64>,
    /// What it wrote.
    pub completion_tokens: Option<i64>,
    /// Of the prompt: read from a cache.
    pub cache_read_tokens: Option<i64>,
    /// Of the prompt: written to a cache.
    pub cache_write_tokens: Option<i64>,
    /// Of the completion: reasoning.
    pub reasoning_tokens: Option<i64>,
}

impl From<Counts> for Tokens {
    /// A count that is absent adds nothing.
    fn from(counts: Counts) -> Self {
        Self {
            prompt: counts.prompt_tokens.unwrap_or(0),
            completion: counts.completion_tokens.unwrap_or(0),
            cache_read: counts.cache_read_tokens.unwrap_or(0),
            cache_write: counts.cache_write_tokens.unwrap_or(0),
            reasoning: counts.reasoning_tokens.unwrap_or(0),
        }
    }
}

/// US dollars for a million tokens, as decimal text: no binary fraction touches money.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    /// Of the prompt.
    pub prompt_price: Option<String>,
    /// Of the completion.
    pub completion_price: Option<String>,
    /// Of prompt tokens read from a cache; without one, the prompt's.
    pub cache_read_price: Option<String>,
    /// Of prompt tokens written to a cache; without one, the prompt's.
    pub cache_write_price: Option<String>,
    /// Of reasoning tokens; without one, the completion's.
    pub reasoning_price: Option<String>,
}

/// A model call that ended, with the prices at which it was made. Its cost is computed by Postgres.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    /// The step that made it.
    pub step: i32,
    /// The step's attempt.
    pub attempt: i32,
    /// The provider.
    pub model_provider_id: Uuid,
    /// The model.
    pub model: String,
    /// How it ended.
    pub outcome: ModelCallOutcome,
    /// Why it failed.
    pub failure: Option<String>,
    /// What the provider counted.
    pub counts: Counts,
    /// At which prices.
    pub prices: Prices,
    /// When it began.
    pub started_at: OffsetDateTime,
}

/// The journal of a run, in order.
pub fn of_run(sql: &mut impl Sql, may: &impl May<Read, Run>) -> Result<Vec<Step>> {
    journal(sql, may.tenant_id(), may.object_id())
}

/// The journal of a run that is held, in order.
pub(super) fn of_held(sql: &mut impl Sql, lease: &Lease) -> Result<Vec<Step>> {
    journal(sql, lease.tenant_id(), lease.run_id())
}

/// The end of the step under way of a run that is held, as a failure without a reason. It reads no more of the step than that
/// takes. `None`: none is under way.
pub fn end_of_step_under_way(sql: &mut impl Sql, lease: &Lease) -> Result<Option<Ended>> {
    let row = sql.query_opt(
        sql!("steps/under_way"),
        &[&lease.tenant_id(), &lease.run_id()],
    )?;
    let ended = |row: Row| {
        Ok(Ended {
            step: row.column("step")?,
            status: StepStatus::Failed,
            result: None,
            failures: row.column("failures")?,
        })
    };
    row.map(ended).transpose()
}

/// A page of the journal, and whether more steps follow. A page of long results holds fewer of them.
///
/// # Errors
/// `newer-format`, when a later version of this program wrote a step; the database's.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    page: &Request,
) -> Result<(Vec<Listed>, bool)> {
    let parameters: [Parameter<'_>; 5] = [
        &may.tenant_id(),
        &may.object_id(),
        &page.after_position(),
        &i64::from(page.limit),
        &PAGE_BYTES,
    ];
    let rows = sql.query(list_sql!("steps/list").by(page.order), &parameters)?;
    let has_more = rows.last().map_or(Ok(false), |row| row.column("more"))?;
    let steps: Result<Vec<Listed>> = rows.iter().map(listed_of).collect();
    Ok((steps?, has_more))
}

fn listed_of(row: &Row) -> Result<Listed> {
    check_format(row)?;
    Ok(Listed {
        step: row.column("step")?,
        kind: row.column("kind")?,
        name: row.column("name")?,
        path: row.column("path")?,
        status: row.column("status")?,
        attempt: row.column("attempt")?,
        result: row.column("result")?,
        started_at: row.column("started_at")?,
        completed_at: row.column("completed_at")?,
    })
}

fn journal(sql: &mut impl Sql, tenant_id: Uuid, run_id: Uuid) -> Result<Vec<Step>> {
    let rows = sql.query(sql!("steps/of_run"), &[&tenant_id, &run_id])?;
    rows.iter().map(step_of).collect()
}

/// A row of the journal.
pub(super) fn step_of(row: &Row) -> Result<Step> {
    check_format(row)?;
    Ok(Step {
        step: row.column("step")?,
        kind: row.column("kind")?,
        name: row.column("name")?,
        path: row.column("path")?,
        status: row.column("status")?,
        attempt: row.column("attempt")?,
        failures: row.column("failures")?,
        request: row.column("request")?,
        result: row.column("result")?,
        started_at: row.column("started_at")?,
        completed_at: row.column("completed_at")?,
    })
}

fn check_format(row: &Row) -> Result<()> {
    if row.column::<i16>("format")? > FORMAT {
        return Err(Error::newer_format("a step of the run"));
    }
    Ok(())
}
