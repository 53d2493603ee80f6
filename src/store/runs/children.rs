//! Child runs: a commit of the parent creates them, and a later one takes each of them back once.
//!
//! A child's end is written on its row of `run_children`, as unseen, with its usage, under a share
//! lock on its parent's row. The parent marks it as seen and adds the usage to its own, in one
//! commit. What a child uses after its parent has ended stays on the child alone.

use super::child_turns;
use super::ended::EndedRun;
use super::lease::{Lease, OwnChild};
use super::new_child::NewChild;
use super::rows::{Agent, Parent, Run, Usage, WaitingFor, usage_of};
use super::storable;
use crate::error::{Error, Result};
use crate::proof::{May, Read, Write};
use crate::sql;
use crate::store::{Columns, Sql};
use crate::texts;
use postgres::Row;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;
use time::OffsetDateTime;
use uuid::Uuid;

/// Children that one commit begins, at most.
pub const CHILDREN_AT_ONCE: usize = 1000;

/// What children that are read together answered, their errors among it, at most, in bytes of JSON.
pub const OUTPUTS_BYTES: i64 = 8 * 1024 * 1024;

/// The job of child runs, but for its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildJob {
    /// Its queue.
    pub queue: &'static str,
    /// Its name.
    pub name: &'static str,
    /// How often it may be tried.
    pub max_attempts: i32,
}

texts! {
    /// How a child stands.
    ChildState {
        /// It has not ended.
        Started = "started",
        /// It ended with an output.
        Completed = "completed",
        /// It ended with a failure message.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

/// A child of a run, as its parent reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Its place among its parent's children.
    pub slot: i32,
    /// The run.
    pub run_id: Uuid,
    /// Where it stands in its parent's program.
    pub path: String,
    /// How it stands.
    pub state: ChildState,
    /// Whether the parent has taken its end.
    pub is_seen: bool,
    /// What it used, runs below it included, once it has ended.
    pub usage: Usage,
    /// Why it failed, where that is asked for.
    pub failure_message: Option<String>,
    /// What it answered, where that is asked for.
    pub output: Option<Value>,
    /// Of a flow, the error that it failed with, where that is asked for.
    pub error: Option<Value>,
    /// What it answered was erased.
    pub is_erased: bool,
    /// What it answered, or why it failed, is not read: it and those before it have more than [`OUTPUTS_BYTES`].
    pub is_left_out: bool,
}

/// How the children of a step stand, but for those that its run has seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Unseen {
    /// Those that have not ended, and those whose end the run has not taken.
    pub children: Vec<UnseenChild>,
    /// The slot after the last one that has begun.
    pub next_slot: i32,
    /// Whether one has failed or was cancelled, seen or not.
    pub has_failed: bool,
}

/// A child whose end its parent has not taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnseenChild {
    /// Its place among its parent's children.
    pub slot: i32,
    /// The run.
    pub run_id: Uuid,
    /// How it stands.
    pub state: ChildState,
    /// What it used, runs below it included, once it has ended.
    pub usage: Usage,
}

impl Child {
    /// As whoever may change its parent may change it. `parent`: the run that it was read of.
    pub fn own(&self, parent: &impl May<Write, Run>) -> OwnChild {
        OwnChild::new(parent, self.run_id)
    }
}

/// The children of a run in these slots, by slot.
pub fn children(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    slots: Range<i32>,
    with_outputs: bool,
) -> Result<Vec<Child>> {
    let rows = sql.query(
        sql!("runs/children"),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &slots.start,
            &slots.end,
            &with_outputs,
            &OUTPUTS_BYTES,
        ],
    )?;
    rows.iter().map(child_of).collect()
}

/// How the children of a run in these slots stand. It takes as long however many of them the run has seen.
pub fn unseen_children(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    slots: Range<i32>,
) -> Result<Unseen> {
    let rows = sql.query(
        sql!("runs/unseen_children"),
        &[&may.tenant_id(), &may.object_id(), &slots.start, &slots.end],
    )?;
    let first = rows.first();
    let first = first.ok_or_else(|| Error::internal("a step's children cannot be counted"))?;
    let (next_slot, has_failed) = (first.column("next_slot")?, first.column("has_failed")?);
    let children = rows.iter().map(unseen_of).collect::<Result<Vec<_>>>()?;
    Ok(Unseen {
        children: children.into_iter().flatten().collect(),
        next_slot,
        has_failed,
    })
}

/// None: there is no such child, and the row says the rest alone.
fn unseen_of(row: &Row) -> Result<Option<UnseenChild>> {
    let Some(slot) = row.column("slot")? else {
        return Ok(None);
    };
    Ok(Some(UnseenChild {
        slot,
        run_id: row.column("child_run_id")?,
        state: row.column("state")?,
        usage: usage_of(row)?,
    }))
}

fn child_of(row: &Row) -> Result<Child> {
    Ok(Child {
        slot: row.column("slot")?,
        run_id: row.column("child_run_id")?,
        path: row.column("path")?,
        state: row.column("state")?,
        is_seen: row.column("seen")?,
        usage: usage_of(row)?,
        failure_message: row.column("failure_message")?,
        output: row.column("output")?,
        error: row.column("error")?,
        is_erased: row.column("is_erased")?,
        is_left_out: row.column("is_left_out")?,
    })
}

/// Begins child runs, in the transaction of their parent's commit and after it. Says which of them ended so: turns whose
/// conversations do not take them.
pub(super) fn insert(
    sql: &mut impl Sql,
    lease: &Lease,
    (children, job): (&[NewChild], ChildJob),
    now: OffsetDateTime,
) -> Result<Vec<EndedRun>> {
    if children.len() > CHILDREN_AT_ONCE {
        return Err(Error::internal("a commit begins too many child runs"));
    }
    let mut rows: Vec<Cow<'_, NewChild>> = children.iter().map(Cow::Borrowed).collect();
    let mut turns = Vec::new();
    for (child, row) in children.iter().zip(&mut rows) {
        if let Some(turn) = &child.turn {
            let taken = child_turns::take(sql, lease, row.to_mut(), turn)?;
            turns.push((child, turn, taken));
        }
    }
    insert_rows(sql, lease, (&rows, job), now)?;
    let ended = turns
        .iter()
        .map(|(child, turn, taken)| child_turns::finish(sql, lease, (child, turn), taken, now));
    let ended: Result<Vec<_>> = ended.collect();
    Ok(ended?.into_iter().flatten().collect())
}

fn insert_rows(
    sql: &mut impl Sql,
    lease: &Lease,
    (children, job): (&[Cow<'_, NewChild>], ChildJob),
    now: OffsetDateTime,
) -> Result<()> {
    let agents: Vec<Option<&Agent>> = each(children, |child| child.agent.as_ref());
    let inputs: Vec<Cow<'_, Value>> = each(children, |child| storable::value(&child.input));
    let events: Vec<Cow<'_, Value>> = each(children, |child| storable::value(&child.first.data));
    sql.execute(
        sql!("runs/insert_children"),
        &[
            &lease.tenant_id(),
            &lease.run_id(),
            &now,
            &each(children, |child| child.run_id),
            &each(children, |child| child.slot),
            &each(children, |child| child.path.as_str()),
            &each(children, |child| child.parent_step),
            &each(children, |child| child.branch.as_deref()),
            &each(children, |child| child.flow_id.as_str()),
            &each(children, |child| child.flow_version.as_str()),
            &each(&agents, |agent| agent.map(|agent| agent.id)),
            &each(&agents, |agent| agent.map(|agent| agent.version.as_str())),
            &each(&agents, |agent| agent.map(|agent| agent.via.text())),
            &each(&inputs, AsRef::as_ref),
            &each(children, |child| child.first.kind),
            &each(&events, AsRef::as_ref),
            &each(children, |child| child.job_payload.as_str()),
            &job.queue,
            &job.name,
            &job.max_attempts,
            &each(&agents, |agent| {
                agent.and_then(|agent| agent.conversation_id)
            }),
        ],
    )?;
    Ok(())
}

fn each<'a, T, U>(all: &'a [T], of: impl FnMut(&'a T) -> U) -> Vec<U> {
    all.iter().map(of).collect()
}

/// A share of the parent's row: see [`super`]. Says the job that is to run once the child has ended, if the parent waits for
/// that.
pub(super) fn lock_parent(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    parent: Parent,
) -> Result<Option<i64>> {
    let row = sql.query_opt(sql!("runs/lock_parent"), &[&tenant_id, &parent.run_id])?;
    let Some(row) = row else { return Ok(None) };
    Ok(match row.column("waiting_for")? {
        Some(WaitingFor::Children) => row.column("job_id")?,
        _ => None,
    })
}

/// Writes the end of a held child on its row among its parent's children.
pub(super) fn record_end(sql: &mut impl Sql, lease: &Lease, parent: Parent) -> Result<()> {
    sql.query_one(
        sql!("runs/record_end"),
        &[
            &lease.tenant_id(),
            &parent.run_id,
            &parent.slot,
            &lease.run_id(),
        ],
    )?;
    Ok(())
}
