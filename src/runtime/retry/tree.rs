//! What a run that takes up a failed one takes over, with the runs below it.
//!
//! Guarantees: a run below that completed is not run again; the new run has it among its own. One that did not complete is
//! taken up by a new run in its place. A tree is as deep as flows call each other and nest, so it is walked by loops.

use super::turns::{Lost, outcome_unknown, taken_over};
use crate::error::{Code, Error, Result};
use crate::proof::{May, Read, Write};
use crate::runtime::flow::Flow;
use crate::runtime::flow::retry::{Stand, is_unknown};
use crate::runtime::job::{Advance, StartedBy};
use crate::runtime::journal::read;
use crate::runtime::journal::wait::ChildrenRequest;
use crate::runtime::program::Program;
use crate::runtime::progress::events::Event;
use crate::runtime::services::Services;
use crate::runtime::steps::kind::unknown_call;
use crate::runtime::steps::{self, Recovery};
use crate::runtime::turn::definition::AGENT_TURN;
use crate::store::Sql;
use crate::store::events::NewEvent;
use crate::store::flow_states::FlowState;
use crate::store::runs::{
    self, ChildState, NewChildRetry, NewRetry, Origin, OwnChild, Run, Status, TakenOver, Waits,
};
use crate::store::steps::{Step, StepKind, StepStatus, of_run};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

/// Runs below that are taken up at once, at most.
const RUNS_MOST: usize = 1_000;

/// What a new run takes over.
#[derive(Default)]
pub(super) struct Taken {
    /// Steps that are done, from the first.
    pub(super) steps: i32,
    /// Of a turn: see [`NewRetry::request`].
    pub(super) request: Option<(i32, Value)>,
    /// Of a flow that has begun a step, or a turn that waits for a run.
    over: Option<TakenOver>,
    /// What its newest step waits for, until the runs below are read.
    waits_for: Option<ChildrenRequest>,
    below: Vec<Below>,
}

/// A run below that is taken up, too.
struct Below {
    run: Run,
    own: OwnChild,
    taken: Taken,
}

/// A run below, and the place of the one above it among those that were found. `None`: that is the run that is retried.
struct Found {
    above: Option<usize>,
    below: Below,
}

/// Reads a failed run and those below it.
pub(super) struct Reading<'a> {
    services: &'a Services,
    now: OffsetDateTime,
    repeats_unknown: bool,
    runs: usize,
}

impl<'a> Reading<'a> {
    pub(super) fn new(services: &'a Services, now: OffsetDateTime, repeats_unknown: bool) -> Self {
        Self {
            services,
            now,
            repeats_unknown,
            runs: 0,
        }
    }

    /// What is taken over of a run, and of those below it.
    pub(super) fn of<M: May<Write, Run> + May<Read, Run>>(
        &mut self,
        sql: &mut impl Sql,
        may: &M,
        run: &Run,
    ) -> Result<Taken> {
        let mut taken = self.alone(sql, may, run)?;
        let mut found = Vec::new();
        if let Some(request) = taken.waits_for.take() {
            self.find_below(sql, may, &request, (None, &mut found))?;
        }
        let mut at = 0;
        while at < found.len() {
            let Below { run, own, .. } = &found[at].below;
            let (run, own) = (run.clone(), *own);
            let mut taken = self.alone(sql, &own, &run)?;
            if let Some(request) = taken.waits_for.take() {
                self.find_below(sql, &own, &request, (Some(at), &mut found))?;
            }
            found[at].below.taken = taken;
            at += 1;
        }
        // Each was found after the one above it.
        while let Some(Found { above, below }) = found.pop() {
            let among = match above {
                Some(above) => &mut found[above].below.taken.below,
                None => &mut taken.below,
            };
            among.insert(0, below);
        }
        Ok(taken)
    }

    /// What is taken over of a run, without those below it.
    fn alone<M: May<Write, Run> + May<Read, Run>>(
        &self,
        sql: &mut impl Sql,
        may: &M,
        run: &Run,
    ) -> Result<Taken> {
        let (built_in, definitions) = self.services.programs();
        if run.flow_id == AGENT_TURN || built_in.contains_key(&run.flow_id) {
            return self.of_turn(sql, may, run);
        }
        let has_begun = run.last_seq > 1;
        let loaded = Flow::load(sql, definitions, (run, may, has_begun))?;
        let unknown = || {
            let flow_id = &run.flow_id;
            let said = format!("This version of the service cannot run the flow {flow_id}.");
            Error::new(Code::Conflict, said)
        };
        self.of_flow(sql, may, run, loaded.ok_or_else(unknown)?)
    }

    fn of_turn<M: May<Write, Run> + May<Read, Run>>(
        &self,
        sql: &mut impl Sql,
        may: &M,
        run: &Run,
    ) -> Result<Taken> {
        let journal = of_run(sql, may)?;
        let lost = Lost::of(run, &journal).map_err(Error::internal)?;
        let is_made = !self.repeats_unknown && !run.dry_run;
        if let Some(lost) = lost.as_ref().filter(|_| is_made) {
            lost.refuse(sql, may, run)?;
        }
        let request = lost.map(Lost::request).transpose();
        let request = request.map_err(Error::internal)?;
        let newest = journal.last();
        let waits = |newest: &&Step| {
            newest.kind == StepKind::Child && newest.status != StepStatus::Completed
        };
        if let Some(newest) = newest.filter(waits) {
            return Ok(Taken {
                request,
                ..self.waits(newest, None)?
            });
        }
        let taken = taken_over(&journal).map_err(Error::internal)?;
        Ok(Taken {
            steps: taken.last().map_or(0, |step| step.step),
            request,
            ..Taken::default()
        })
    }

    fn of_flow<M: May<Write, Run> + May<Read, Run>>(
        &self,
        sql: &mut impl Sql,
        may: &M,
        run: &Run,
        (flow, journal): (Flow, Vec<Step>),
    ) -> Result<Taken> {
        let before = flow.not_made_again(journal.last());
        if let Some(state) = flow.stands_again(self.now)? {
            let program = Program::Flow(Box::new(flow));
            self.refuse_before(run, before.as_ref(), &program)?;
            return Ok(Taken {
                steps: journal.last().map_or(0, |newest| newest.step),
                over: Some(TakenOver {
                    state: Some(state),
                    waits: None,
                }),
                ..Taken::default()
            });
        }
        let Some(newest) = journal.last() else {
            return Ok(Taken::default());
        };
        let waits = newest.kind == StepKind::Child && has_begun(sql, may, newest)?;
        let stand = flow.stand(run.run_id, newest, waits, self.now)?;
        let program = Program::Flow(Box::new(flow));
        self.refuse_before(run, before.as_ref(), &program)?;
        let is_made_twice = || steps::recover(newest, &program) == Recovery::Unknown;
        if !self.repeats_unknown && !run.dry_run && is_unknown(newest) && is_made_twice() {
            return Err(refusal(Some(newest.step), newest));
        }
        let steps = newest.step - 1;
        let of = |steps, state| Taken {
            steps,
            over: Some(TakenOver {
                state: Some(state),
                waits: None,
            }),
            ..Taken::default()
        };
        Ok(match stand {
            Stand::After(state) => of(newest.step, state),
            Stand::Again(state) => of(steps, state),
            Stand::Waits(state) => return self.waits(newest, Some(state)),
        })
    }

    /// Of a run whose newest step waits for others: that step goes on in the new run.
    fn waits(&self, newest: &Step, state: Option<FlowState>) -> Result<Taken> {
        let mut request: ChildrenRequest = read(Some(&newest.request)).map_err(Error::internal)?;
        let moved = self.now - newest.started_at;
        request.until = request.until.map(|until| until + moved);
        let waits = Some(Waits {
            step: newest.step,
            request: json!(request),
            slots: request.slots(),
            takes_failed: request.takes_failed(),
        });
        Ok(Taken {
            steps: newest.step - 1,
            over: Some(TakenOver { state, waits }),
            waits_for: Some(request),
            ..Taken::default()
        })
    }

    /// Refuses what a run did not come to make again, if it may have taken effect and may not be made twice.
    fn refuse_before(&self, run: &Run, before: Option<&Step>, program: &Program) -> Result<()> {
        let is_made = !self.repeats_unknown && !run.dry_run;
        let is_made_twice = |step: &&Step| steps::recover(step, program) == Recovery::Unknown;
        match before.filter(|_| is_made).filter(is_made_twice) {
            Some(before) => Err(refusal(None, before)),
            None => Ok(()),
        }
    }

    /// Finds the runs of a step that have begun and gave no answer.
    fn find_below(
        &mut self,
        sql: &mut impl Sql,
        may: &(impl May<Write, Run> + May<Read, Run>),
        request: &ChildrenRequest,
        (above, found): (Option<usize>, &mut Vec<Found>),
    ) -> Result<()> {
        let tenant_id = May::<Write, Run>::tenant_id(may);
        for child in runs::children(sql, may, request.slots(), false)? {
            let is_answer = child.state == ChildState::Completed
                || child.state == ChildState::Failed && request.takes_failed();
            if is_answer {
                continue;
            }
            self.runs += 1;
            let run = runs::find(sql, tenant_id, child.run_id)?;
            if let Some(why) = refused(&run, self.runs) {
                return Err(Error::new(Code::Conflict, why));
            }
            let own = child.own(may);
            let taken = Taken::default();
            let below = Below { run, own, taken };
            found.push(Found { above, below });
        }
        Ok(())
    }
}

/// Whether a step began runs that can be taken up. Of a turn whose conversation did not take it there is nothing to take up, nor
/// of a run that a dry run has an answer for: such a step begins again.
fn has_begun(
    sql: &mut impl Sql,
    may: &(impl May<Write, Run> + May<Read, Run>),
    newest: &Step,
) -> Result<bool> {
    let request: Result<ChildrenRequest, String> = read(Some(&newest.request));
    let Some(request) = request.ok().filter(|request| request.refused.is_none()) else {
        return Ok(false);
    };
    let children = runs::children(sql, may, request.slots(), false)?;
    let [child] = children.as_slice() else {
        return Ok(true);
    };
    let run = runs::find(sql, May::<Write, Run>::tenant_id(may), child.run_id)?;
    Ok(run.status != Status::Failed || run.started_at.is_some())
}

/// The job of the run that takes up a failed one.
pub(super) fn job_of(failed: &Run, run_id: Uuid, started_by: StartedBy) -> Advance {
    Advance {
        tenant_id: failed.tenant_id,
        run_id,
        project_id: failed.project_id,
        agent_id: failed.agent.as_ref().map(|agent| agent.id),
        started_by,
    }
}

/// The first events of a run that takes up another.
pub(super) fn events(failed: &Run, origin: Origin, steps: i32) -> [NewEvent; 2] {
    let created = Event::RunCreated {
        flow_id: failed.flow_id.clone(),
        flow_version: failed.flow_version.clone(),
        origin,
        dry_run: failed.dry_run,
        agent: failed.agent.clone(),
        labels: failed.labels.clone(),
        streaming: None,
    };
    let retried = Event::RunRetried {
        retry_of: failed.run_id,
        steps,
    };
    [created.row(), retried.row()]
}

/// Why a run below cannot be taken up.
fn refused(run: &Run, runs: usize) -> Option<String> {
    if !run.status.is_finished() {
        return Some(format!(
            "The run {} below it has not ended yet. Try again in a moment.",
            run.run_id
        ));
    }
    if run.payload_erased_at.is_some() {
        return Some("What runs below it were given was erased. Start a new run.".to_owned());
    }
    (runs > RUNS_MOST)
        .then(|| format!("More than {RUNS_MOST} runs below it would be taken up. Start a new run."))
}

fn refusal(number: Option<i32>, call: &Step) -> Error {
    outcome_unknown(number, &call.name, unknown_call(call.kind, &call.name))
}

impl Taken {
    /// Writes it for a new run, with the runs below.
    pub(super) fn write(
        &self,
        sql: &mut impl Sql,
        may: &impl May<Write, Run>,
        root: (&Services, &NewRetry, &StartedBy),
        run_id: Uuid,
    ) -> Result<()> {
        let (services, new, started_by) = root;
        self.write_alone(sql, may, new, run_id)?;
        let mut left: Vec<(Uuid, &Below)> = Vec::new();
        left.extend(self.below.iter().rev().map(|below| (run_id, below)));
        while let Some((parent_run_id, Below { run, own, taken })) = left.pop() {
            let job = job_of(run, services.clock.new_id(), started_by.clone());
            let child = NewChildRetry {
                run_id: job.run_id,
                parent_run_id,
                root_run_id: new.run_id,
                created_by: new.created_by,
                created_at: new.created_at,
                steps: taken.steps,
                request: taken.request.clone(),
            };
            let events = events(run, run.origin, taken.steps);
            runs::insert_child_retry(sql, own, run, &child, &events, &job.new_job()?)?;
            taken.write_alone(sql, own, new, job.run_id)?;
            left.extend(taken.below.iter().rev().map(|below| (job.run_id, below)));
        }
        Ok(())
    }

    /// Writes it for a new run, without the runs below.
    fn write_alone(
        &self,
        sql: &mut impl Sql,
        may: &impl May<Write, Run>,
        new: &NewRetry,
        run_id: Uuid,
    ) -> Result<()> {
        match &self.over {
            Some(over) => runs::take_over(sql, may, (run_id, new.created_at), over),
            None => Ok(()),
        }
    }
}
