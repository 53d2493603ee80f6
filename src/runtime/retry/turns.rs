//! What is taken over of the journal of an agent's turn, or of a built-in program, and what is refused.
//!
//! Not here: flows (`tree`).

use crate::error::{Code, Error, Result};
use crate::proof::{May, Read};
use crate::runtime::turn::answer;
use crate::store::runs::Run;
use crate::store::steps::{Step, StepKind, StepStatus};
use crate::store::{Sql, turns};

/// The steps that a new run takes over.
pub(super) fn taken_over(journal: &[Step]) -> Result<&[Step], String> {
    let is_done = |step: &&Step| step.status == StepStatus::Completed;
    let done = journal.iter().take_while(is_done).count();
    let is_ended = |step: &Step| step.kind != StepKind::Approval;
    let done = journal[..done].iter().rposition(is_ended);
    let done = &journal[..done.map_or(0, |last| last + 1)];
    let answers = answer::answers(done)?;
    Ok(&done[..done.len() - answers])
}

/// Refuses where the run was cut off during a call that may have taken effect and may not be made twice.
pub(super) fn refuse_unknown(
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
    Err(outcome_unknown(
        step,
        &format!("the tool {} was being called", step.name),
        "the tool is not declared idempotent",
    ))
}

pub(super) fn outcome_unknown(step: &Step, what: &str, why: &str) -> Error {
    Error::new(
        Code::OutcomeUnknown,
        format!(
            "The run ended while {what} in step {}. Nobody knows whether the call took effect, and {why}. Look there first; \
             then say repeatUnknownCall to have it called again.",
            step.step
        ),
    )
    .detail("step", step.step)
    .detail("tool", step.name.clone())
}
