//! Takes up a failed run: a new run that has what was done of it.
//!
//! Of a failed run one retry is under way at a time, and none begins once one has completed.

use super::create::NewJob;
use super::rows::{self, Origin, Run};
use super::storable;
use crate::error::{Code, Error, Result};
use crate::proof::{May, Write};
use crate::sql;
use crate::store::Sql;
use crate::store::agents::not_started;
use crate::store::events::NewEvent;
use crate::store::flow_states::FlowState;
use serde_json::Value;
use std::ops::Range;
use time::OffsetDateTime;
use uuid::Uuid;

/// A run that takes up a failed one. What is not here is the failed run's.
#[derive(Debug, Clone)]
pub struct NewRetry {
    /// Its id.
    pub run_id: Uuid,
    /// Who began it.
    pub origin: Origin,
    /// The user that created it.
    pub created_by: Uuid,
    /// The request that created it.
    pub request_id: Uuid,
    /// When.
    pub created_at: OffsetDateTime,
    /// How many steps of the failed run it takes over, from the first.
    pub steps: i32,
    /// One of these steps, and what stands there as asked of it in the new run.
    pub request: Option<(i32, Value)>,
}

/// A run below a failed one that is taken up with it.
#[derive(Debug, Clone)]
pub struct NewChildRetry {
    /// Its id.
    pub run_id: Uuid,
    /// The new run that takes up its parent.
    pub parent_run_id: Uuid,
    /// The new run at the top.
    pub root_run_id: Uuid,
    /// The user that created that.
    pub created_by: Uuid,
    /// When.
    pub created_at: OffsetDateTime,
    /// How many of its steps are taken over, from the first.
    pub steps: i32,
    /// See [`NewRetry::request`].
    pub request: Option<(i32, Value)>,
}

/// What a run takes over beside steps that are done.
#[derive(Debug, Clone)]
pub struct TakenOver {
    /// Of a flow: where it stands.
    pub state: Option<FlowState>,
    /// The step that waits for child runs, if one does.
    pub waits: Option<Waits>,
}

/// A step that waits for child runs.
#[derive(Debug, Clone)]
pub struct Waits {
    /// Its number.
    pub step: i32,
    /// What it asks.
    pub request: Value,
    /// The slots of its children. Of those the completed ones are taken over.
    pub slots: Range<i32>,
    /// And those that failed: their errors are answers.
    pub takes_failed: bool,
}

/// Writes what the new run takes over of a failed run.
pub fn take_over(
    sql: &mut impl Sql,
    may: &impl May<Write, Run>,
    (run_id, now): (Uuid, OffsetDateTime),
    taken: &TakenOver,
) -> Result<()> {
    let TakenOver { state, waits } = taken;
    let state = state.as_ref();
    let [frames, data, context] = [
        state.map(|state| storable::value(&state.frames)),
        state.map(|state| storable::value(&state.data)),
        state.map(|state| storable::value(&state.context)),
    ];
    let waits = waits.as_ref();
    sql.execute(
        sql!("runs/take_over"),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &run_id,
            &now,
            &state.map(|state| state.format),
            &frames.as_deref(),
            &data.as_deref(),
            &context.as_deref(),
            &state.map(|state| state.tasks),
            &state.map(|state| state.slots),
            &waits.map(|waits| waits.step),
            &waits.map(|waits| &waits.request),
            &waits.map(|waits| waits.slots.start),
            &waits.map(|waits| waits.slots.end),
            &waits.is_some_and(|waits| waits.takes_failed),
        ],
    )?;
    Ok(())
}

/// Takes up a run below a failed one, in the transaction that takes that up.
///
/// # Errors
/// `conflict`, when its conversation has gone on; internal, when the run is not one that can be taken up; the database's.
pub fn insert_child_retry(
    sql: &mut impl Sql,
    may: &impl May<Write, Run>,
    failed: &Run,
    new: &NewChildRetry,
    events: &[NewEvent],
    job: &NewJob,
) -> Result<()> {
    let kinds: Vec<&str> = events.iter().map(|event| event.kind).collect();
    let data: Vec<&Value> = events.iter().map(|event| &event.data).collect();
    let request = new.request.as_ref();
    let inserted = sql.execute(
        sql!("runs/insert_child_retry"),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &new.run_id,
            &new.parent_run_id,
            &new.root_run_id,
            &new.created_by,
            &new.created_at,
            &new.steps,
            &kinds,
            &data,
            &job.queue,
            &job.name,
            &job.payload,
            &job.max_attempts,
            &request.map(|(step, _)| step),
            &request.map(|(_, request)| request),
        ],
    )?;
    let agent = failed.agent.as_ref();
    match (inserted, agent.and_then(|agent| agent.conversation_id)) {
        (1, _) => Ok(()),
        (_, Some(_)) => {
            let said = format!(
                "The conversation of the run {} below it has gone on since, or was erased. Start a new run.",
                failed.run_id
            );
            Err(Error::new(Code::Conflict, said))
        }
        (_, None) => Err(Error::internal("a run below a failed one is not there")),
    }
}

/// Creates it with its job, its first events and the steps that it takes over, in one statement.
///
/// # Errors
/// `project-archived`, `agent-archived`, `flow-archived`; `conflict` where another retry is under way or has completed, or the conversation has
/// gone on: nothing is to be committed then.
pub fn insert_retry(
    sql: &mut impl Sql,
    may: &impl May<Write, Run>,
    failed: &Run,
    new: &NewRetry,
    events: &[NewEvent],
    job: &NewJob,
) -> Result<Run> {
    let (tenant_id, origin) = (may.tenant_id(), new.origin.text());
    let kinds: Vec<&str> = events.iter().map(|event| event.kind).collect();
    let data: Vec<&Value> = events.iter().map(|event| &event.data).collect();
    let request = new.request.as_ref();
    let inserted = sql.execute(
        sql!("runs/insert_retry"),
        &[
            &tenant_id,
            &may.object_id(),
            &new.run_id,
            &origin,
            &new.created_by,
            &new.created_at,
            &new.steps,
            &kinds,
            &data,
            &job.queue,
            &job.name,
            &job.payload,
            &job.max_attempts,
            &request.map(|(step, _)| step),
            &request.map(|(_, request)| request),
            &new.request_id,
        ],
    )?;
    if inserted == 0 {
        let agent = failed.agent.as_ref();
        let otherwise = match agent.and_then(|agent| agent.conversation_id) {
            None => {
                "Another run takes this one up already: it is under way, or has completed. Lists of runs show it."
            }
            Some(_) => {
                "Another run takes this one up already, or its conversation has gone on since, or was erased. Start a new run."
            }
        };
        let agent_id = agent.map(|agent| agent.id);
        let of = (failed.project_id, agent_id, Some(&*failed.flow_id));
        return Err(not_started(sql, tenant_id, of, otherwise)?);
    }
    rows::find(sql, tenant_id, new.run_id)
}
