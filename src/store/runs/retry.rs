//! Takes up a failed run: a new run that has what was done of it.
//!
//! Of a failed run one retry is under way at a time, and none begins once one has completed.

use super::create::NewJob;
use super::rows::{self, Origin, Run};
use crate::error::Result;
use crate::proof::{May, Write};
use crate::sql;
use crate::store::Sql;
use crate::store::agents::not_started;
use crate::store::events::NewEvent;
use serde_json::Value;
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
    /// When.
    pub created_at: OffsetDateTime,
    /// How many steps of the failed run it takes over, from the first.
    pub steps: i32,
}

/// Creates it with its job, its first events and the steps that it takes over, in one statement.
///
/// # Errors
/// `project-archived`, `agent-archived`; `conflict` where another retry is under way or has completed, or the conversation has
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
        let of = (failed.project_id, agent.map(|agent| agent.id));
        return Err(not_started(sql, tenant_id, of, otherwise)?);
    }
    rows::find(sql, tenant_id, new.run_id)
}
