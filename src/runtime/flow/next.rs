//! What a flow does next, decided from where its run stands and from its newest step alone.
//!
//! [`next`] is pure but for a bound of its processor time, so whoever takes the run up comes to the same decision. It
//! makes one transition (`machine`): it goes through tasks without an effect until one has an effect, waits, or ends the run.
//! Such tasks cost no commit.
//!
//! Guarantees: a transition ends, since the tasks of a run, the steps of its expressions and its processor time have bounds.
//!
//! Not here: what each kind of task does (`begin`), time that is over (`deadlines`), who handles an error (`unwind`), and
//! performing steps (`steps`).

use super::about::About;
use super::limits::out_of_processor_time;
use super::machine::{Machine, Move, Moved, fail, unreadable_state};
use super::raised::Raised;
use super::state::{At, Frame, State, check_kept};
use super::unanswered::is_unknown;
use crate::failure::{Authored, Failure};
use crate::flows::definition::tree::{Definition, Task, TaskKind, Then};
use crate::runtime::journal::decision::{Decision, LEVELS_MOST, Next};
use crate::runtime::journal::wait::TimerRequest;
use crate::runtime::journal::{misread, read, unreadable};
use crate::runtime::progress::events::Event;
use crate::store::flow_states::FlowState;
use crate::store::runs::End;
use crate::store::steps::{Step, StepKind};
use serde_json::Value;
use time::OffsetDateTime;

/// What a run answers is kept, too.
const OUTPUT: &str = "The output of the flow";

/// Decides what comes next. `state` and `ended`: of a run that has begun a step, which has ended.
pub(super) fn next(
    definition: &Definition,
    about: &About,
    (state, ended): (Option<&FlowState>, Option<&Step>),
    now: OffsetDateTime,
) -> Decision {
    if about.flows > LEVELS_MOST {
        let said = format!("Runs began each other more than {LEVELS_MOST} levels deep");
        let raised = Raised::too_large(said, "");
        return raised.end().into();
    }
    let stands = state.map(State::of_row).transpose();
    let Ok(stands) = stands else {
        return fail(misread(unreadable())).into();
    };
    // A run that takes up a failed one may stand before its first step.
    let begins_again = stands.as_ref().is_some_and(State::begins_again);
    if !begins_again && state.is_some() != ended.is_some() {
        return fail(misread(unreadable())).into();
    }
    let machine = Machine::new(definition, about, stands.unwrap_or_default(), now);
    machine.run(ended)
}

impl<'a> Machine<'a> {
    fn run(mut self, ended: Option<&Step>) -> Decision {
        let began = self.limit_time();
        let mut moved = began.and_then(|()| match ended {
            _ if self.state.begins_again() => self.begin_again(),
            Some(step) => self.resume(step),
            None => self.start(),
        });
        loop {
            moved = match moved {
                Ok(Move::Enter(index)) => self.enter(index),
                Ok(Move::Leave { output, then }) => self.leave(&output, then),
                Ok(Move::EndOfList) => self.end_of_list(),
                Ok(Move::Effect(task, next)) => {
                    match self.state.row(&self.about.limits, &task.path) {
                        Ok(row) => {
                            return Decision {
                                next,
                                flow_state: Some(row),
                                events: self.task_events.into_events(),
                                asked: Vec::new(),
                            };
                        }
                        Err(raised) => Err(raised),
                    }
                }
                Ok(Move::End(next)) => {
                    return Decision {
                        next,
                        flow_state: None,
                        events: self.task_events.into_events(),
                        asked: Vec::new(),
                    };
                }
                Err(raised) => self.unwind(raised),
            }
        }
    }

    /// Finds when the time of the run is over. The flow's timeout is computed anew each time, from the run's input alone.
    pub(super) fn limit_time(&mut self) -> Result<(), Raised> {
        self.last = Some(self.about.started_at + self.about.limits.life());
        if let Some(timeout) = &self.definition.timeout {
            let (input, began) = (&self.about.input, self.about.started_at);
            let (scope, budget) = self.scope_of_run(&Value::Null);
            self.ends = Some(began + scope.time(timeout, input, budget)?);
        }
        Ok(())
    }

    /// The begin of the run.
    fn start(&mut self) -> Moved<'a> {
        if self.about.branch.is_some() {
            return self.start_branch();
        }
        let (shape, input) = (&self.definition.input, &self.about.input);
        let (scope, budget) = self.scope_of_run(&Value::Null);
        scope.check(shape, input)?;
        self.state.data = scope.shaped(shape, input, budget)?;
        Ok(Move::Enter(0))
    }

    /// The step of the innermost task has ended.
    pub(super) fn resume(&mut self, ended: &Step) -> Moved<'a> {
        // A wait is over by PostgreSQL's clock, too, where this server's is behind: what cut it short is over then.
        if ended.kind == StepKind::Wait
            && let Ok(timer) = read::<TimerRequest>(Some(&ended.request))
        {
            self.now = self.now.max(timer.until);
        }
        self.keep_unanswered(ended)?;
        self.check_deadlines(self.answered_at(ended))
            .map_err(|late| match is_unknown(ended) {
                true => late.with_unknown_outcome(),
                false => late,
            })?;
        let task = self.innermost()?;
        let frame = self.state.frames.last().ok_or_else(unreadable_state)?;
        match (&frame.at, &task.kind) {
            (At::Pause(tries), TaskKind::Try(of)) => {
                let tries = *tries;
                self.begin_try(task, of, tries)
            }
            (At::Effect, _) => self.answered(task, ended),
            (At::Parallel { .. }, TaskKind::For(of)) => self.gathered(task, of, ended),
            _ => Err(unreadable_state()),
        }
    }

    /// Begins a task of the innermost list.
    fn enter(&mut self, index: usize) -> Moved<'a> {
        let Some(task) = self.list(self.state.frames.len())?.get(index) else {
            return Ok(Move::EndOfList);
        };
        self.check_deadlines(self.now)?;
        self.state.tasks += 1;
        let most = self.about.limits.tasks;
        if self.state.tasks > most {
            return Ok(Move::End(fail(Failure::of(&[
                &"The run entered more than ",
                &most,
                &" tasks (SVC_MAX_FLOW_TASKS), the last one ",
                &Authored(&task.path),
                &". Look for a loop without an end.",
            ]))));
        }
        if let Some(said) = out_of_processor_time(self.began) {
            return Ok(Move::End(fail(said)));
        }
        let prepared = self.prepared(task, index);
        if !matches!(prepared, Ok(None)) {
            self.add_event(task, Event::TaskStarted);
        }
        match prepared {
            Ok(Some(frame)) => {
                self.state.frames.push(frame);
                self.begin(task)
            }
            Ok(None) => {
                self.add_event(task, Event::TaskSkipped);
                self.follow(Then::Continue, index)
            }
            Err(raised) => {
                self.add_faulted(task, &raised);
                Err(raised)
            }
        }
    }

    /// A task as it begins; none whose condition does not hold.
    fn prepared(&mut self, task: &'a Task, index: usize) -> Result<Option<Frame>, Raised> {
        let data = std::mem::take(&mut self.state.data);
        let (now, about) = (self.now, self.about_task(task, self.now, &data));
        let (scope, budget) = self.scope(task, &about, (&data, &Value::Null));
        if let Some(condition) = &task.condition
            && !scope.is_true(condition, &data, budget)?
        {
            self.state.data = data;
            return Ok(None);
        }
        scope.check(&task.input, &data)?;
        let input = scope.shaped(&task.input, &data, budget)?;
        let timeout = task.timeout.as_ref();
        let timeout = timeout.map(|timeout| scope.time(timeout, &input, budget));
        let until = timeout.transpose()?.map(|timeout| now + timeout);
        let keeps_raw = self.definition.needs.task_input && task.input.template.is_some();
        Ok(Some(Frame {
            index,
            input,
            raw: keeps_raw.then_some(data),
            began: now,
            until,
            unanswered: Vec::new(),
            at: At::Effect,
        }))
    }

    /// Ends the innermost task.
    fn leave(&mut self, answer: &Value, then: Option<Then>) -> Moved<'a> {
        let task = self.innermost()?;
        let Some(frame) = self.state.frames.pop() else {
            return Err(unreadable_state());
        };
        match self.answer_of(task, &frame, answer) {
            Ok(output) => {
                self.add_event(task, Event::TaskCompleted);
                self.state.data = output;
                self.follow(then.unwrap_or(task.then), frame.index)
            }
            Err(raised) => {
                self.add_faulted(task, &raised);
                Err(raised)
            }
        }
    }

    /// What a task answers, from what its effect did. It exports that, too.
    fn answer_of(
        &mut self,
        task: &'a Task,
        frame: &Frame,
        answer: &Value,
    ) -> Result<Value, Raised> {
        let about = self.about_frame(task, frame);
        let (scope, budget) = self.scope(task, &about, (&frame.input, answer));
        let output = scope.shaped(&task.output, answer, budget)?;
        scope.check(&task.output, &output)?;
        if task.export.template.is_some() || task.export.schema.is_some() {
            let (scope, budget) = self.scope(task, &about, (&frame.input, &output));
            let context = scope.shaped(&task.export, &output, budget)?;
            scope.check(&task.export, &context)?;
            self.state.context = context;
        }
        Ok(output)
    }

    /// What follows the task of the innermost list with this index.
    fn follow(&mut self, then: Then, index: usize) -> Moved<'a> {
        match then {
            // A branch is one task.
            Then::Continue | Then::Task(_) if self.is_in_fork()? => self.finish(),
            Then::Continue => Ok(Move::Enter(index + 1)),
            Then::Task(target) => Ok(Move::Enter(target)),
            Then::End => self.finish(),
            Then::Exit if self.state.frames.is_empty() => self.finish(),
            Then::Exit => self.leave_list(),
        }
    }

    fn end_of_list(&mut self) -> Moved<'a> {
        if self.state.frames.is_empty() {
            return self.finish();
        }
        let task = self.innermost()?;
        if let (TaskKind::For(of), Some(frame)) = (&task.kind, self.state.frames.last_mut())
            && let At::For { items, at } = &mut frame.at
        {
            let (items, next) = (std::mem::take(items), *at + 1);
            return self.iterate(task, of, items, next);
        }
        self.leave_list()
    }

    /// Ends the task of the innermost list.
    fn leave_list(&mut self) -> Moved<'a> {
        if self.is_at_branch() {
            return self.finish();
        }
        let task = self.innermost()?;
        let then = match (&task.kind, self.state.frames.last().map(|frame| &frame.at)) {
            (TaskKind::Try(of), Some(At::Catch { .. })) => of.catch.then,
            _ => None,
        };
        let output = std::mem::take(&mut self.state.data);
        Ok(Move::Leave { output, then })
    }

    /// The end of the run: of the whole flow, or of the branch that the run is.
    fn finish(&mut self) -> Moved<'a> {
        if self.about.branch.is_some() {
            check_kept((OUTPUT, &self.state.data), "")?;
            return Ok(Move::End(Next::End(End::Completed {
                output: std::mem::take(&mut self.state.data),
                message: None,
            })));
        }
        self.state.frames.clear();
        let shape = &self.definition.output;
        let data = std::mem::take(&mut self.state.data);
        let (scope, budget) = self.scope_of_run(&data);
        let output = scope.shaped(shape, &data, budget)?;
        scope.check(shape, &output)?;
        check_kept((OUTPUT, &output), "")?;
        Ok(Move::End(Next::End(End::Completed {
            output,
            message: None,
        })))
    }
}
