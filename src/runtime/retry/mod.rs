//! Retries a failed run: a new run continues after the last step that was done.
//!
//! Finished steps are copied and not repeated. Model answers at the end of the journal are not copied, because the run failed
//! because of them. A call with an unknown outcome is repeated only if the caller says so. An approval is for one call of one
//! run: a call that was not done asks again. If the run failed while it waited for child runs, the new run takes over those
//! that completed, and retries each of the others with a run of its own.
//!
//! Not here: where a flow goes on (`flow::retry`).

mod tree;
mod turns;

use self::tree::{Reading, events, job_of};
use super::job::StartedBy;
use super::{Created, Runtime};
use crate::error::{Code, Error, Result};
use crate::proof::{May, Read, Write};
use crate::store::Sql;
use crate::store::runs::{self, NewRetry, Origin, RequestKey, Run, Status};
use time::OffsetDateTime;
use uuid::Uuid;

/// Who takes a run up, and how.
#[derive(Debug)]
pub struct Retry {
    /// The new run's id.
    pub run_id: Uuid,
    /// Who began it.
    pub origin: Origin,
    /// The user.
    pub created_by: Uuid,
    /// When.
    pub created_at: OffsetDateTime,
    /// The request.
    pub started_by: StartedBy,
    /// A call whose outcome nobody knows is made again.
    pub repeats_unknown: bool,
}

impl Runtime {
    /// Creates the new run with its job, in the caller's transaction. After its commit call [`Runtime::wake`].
    ///
    /// # Errors
    /// `conflict`: the run has not failed, is inside another, or was erased; or see [`runs::insert_retry`].
    /// `outcome-unknown`, unless the caller allows it. Those of a start.
    pub fn retry<M: May<Write, Run> + May<Read, Run>>(
        &self,
        sql: &mut impl Sql,
        may: &M,
        failed: &Run,
        retry: Retry,
        request: Option<&RequestKey>,
    ) -> Result<Created> {
        let tenant_id = failed.tenant_id;
        if let Some(request) = request
            && let Some(earlier) =
                runs::remember_key(sql, tenant_id, request, retry.run_id, retry.created_at)?
        {
            return Ok(Created::Earlier(earlier));
        }
        check(failed)?;
        self.check_room(sql, tenant_id)?;
        let mut reading = Reading::new(&self.0, retry.created_at, retry.repeats_unknown);
        let taken = reading.of(sql, may, failed)?;
        let new = NewRetry {
            run_id: retry.run_id,
            origin: retry.origin,
            created_by: retry.created_by,
            request_id: retry.started_by.request_id,
            created_at: retry.created_at,
            steps: taken.steps,
            request: taken.request.clone(),
        };
        let job = job_of(failed, new.run_id, retry.started_by);
        let events = events(failed, new.origin, new.steps);
        let run = runs::insert_retry(sql, may, failed, &new, &events, &job.new_job()?)?;
        taken.write(sql, may, (&self.0, &new, &job.started_by), run.run_id)?;
        Ok(Created::New(Box::new(run)))
    }
}

/// Whether a run can be taken up at all.
fn check(run: &Run) -> Result<()> {
    let refuse = |why: String| Err(Error::new(Code::Conflict, why));
    if run.status != Status::Failed {
        let status = run.status.text();
        return refuse(format!(
            "Only a run that failed is tried again. This one is {status}."
        ));
    }
    if run.parent.is_some() {
        let root = run.root_run_id;
        return refuse(format!(
            "This run is part of the run {root}. Try that one again, if it failed."
        ));
    }
    if run.payload_erased_at.is_some() {
        return refuse("What this run was given was erased. Start a new run.".to_owned());
    }
    Ok(())
}
