//! Takes up a failed run: a new run goes on after the last step that was done.
//!
//! Steps that were done are copied and never done again. Answers of the model at the journal's end are not taken over: the
//! run failed because of them. A call of a tool whose outcome nobody knows is made again only if the caller says so. An
//! approval is for one call of one run: a call that was not done is asked for again.
//!
//! Not here: runs of flows, which have a state beside their journal.

use super::job::{Advance, StartedBy};
use super::progress::events::Event;
use super::turn::{answer, definition::AGENT_TURN};
use super::{Created, Runtime};
use crate::error::{Code, Error, Result};
use crate::proof::{May, Read, Write};
use crate::store::runs::{self, NewRetry, Origin, RequestKey, Run, Status};
use crate::store::steps::{self, Step, StepKind, StepStatus};
use crate::store::{Sql, turns};
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
        self.check(failed)?;
        let journal = steps::of_run(sql, may)?;
        if !retry.repeats_unknown {
            refuse_unknown(sql, may, failed, &journal)?;
        }
        let taken = taken_over(&journal).map_err(Error::internal)?;
        let new = NewRetry {
            run_id: retry.run_id,
            origin: retry.origin,
            created_by: retry.created_by,
            created_at: retry.created_at,
            steps: taken.last().map_or(0, |step| step.step),
        };
        let job = Advance {
            tenant_id,
            run_id: new.run_id,
            project_id: failed.project_id,
            agent_id: failed.agent.as_ref().map(|agent| agent.id),
            started_by: retry.started_by,
        };
        let events = [
            Event::RunCreated {
                flow_id: failed.flow_id.clone(),
                flow_version: failed.flow_version.clone(),
                origin: new.origin,
                dry_run: failed.dry_run,
                agent: failed.agent.clone(),
                labels: failed.labels.clone(),
            },
            Event::RunRetried {
                retry_of: failed.run_id,
                steps: new.steps,
            },
        ];
        let events = events.each_ref().map(Event::row);
        let run = runs::insert_retry(sql, may, failed, &new, &events, &job.new_job()?)?;
        Ok(Created::New(Box::new(run)))
    }

    /// Whether a run can be taken up at all.
    fn check(&self, run: &Run) -> Result<()> {
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
        let is_built_in = self.0.options.built_in.contains_key(&run.flow_id);
        if run.flow_id != AGENT_TURN && !is_built_in {
            return refuse(format!(
                "Runs of the flow {} cannot be tried again. Start a new run.",
                run.flow_id
            ));
        }
        Ok(())
    }
}

/// The steps that a new run takes over.
fn taken_over(journal: &[Step]) -> Result<&[Step], String> {
    let is_done = |step: &&Step| step.status == StepStatus::Completed;
    let done = journal.iter().take_while(is_done).count();
    let is_ended = |step: &Step| step.kind != StepKind::Approval;
    let done = journal[..done].iter().rposition(is_ended);
    let done = &journal[..done.map_or(0, |last| last + 1)];
    let answers = answer::answers(done)?;
    Ok(&done[..done.len() - answers])
}

/// Refuses where the run was cut off during a call that may have taken effect and may not be made twice.
fn refuse_unknown(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    failed: &Run,
    journal: &[Step],
) -> Result<()> {
    let open = journal
        .last()
        .filter(|last| last.kind == StepKind::Tool && last.status != StepStatus::Completed);
    let (Some(step), Some(agent)) = (open, failed.agent.as_ref()) else {
        return Ok(());
    };
    if turns::is_idempotent(sql, may, agent, &step.name)? != Some(false) {
        return Ok(());
    }
    Err(Error::new(
        Code::OutcomeUnknown,
        format!(
            "The run ended while the tool {} was being called in step {}. Nobody knows whether the call took effect, and the \
             tool is not declared idempotent. Look there first; then say repeatUnknownCall to have it called again.",
            step.name, step.step
        ),
    )
    .detail("step", step.step)
    .detail("tool", step.name.clone()))
}
