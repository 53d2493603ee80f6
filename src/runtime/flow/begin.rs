//! What each kind of task does when it begins, and what the answer of its step means.

use super::approvals::decided;
use super::calls::is_simulated;
use super::guardrails::judged;
use super::machine::{Machine, Move, Moved, unreadable_state};
use super::raised::Raised;
use super::state::{At, Tries};
use super::unanswered::keep_key;
use crate::flows::definition::tree::{
    Call, Case, ErrorTemplate, For, Task, TaskKind, Template, Then, Time, Try,
};
use crate::runtime::journal::call::AskedAgain;
use crate::runtime::journal::decision::Next;
use crate::store::steps::{Step, StepKind};
use serde_json::Value;
use std::time::Duration;

impl<'a> Machine<'a> {
    /// Begins what the innermost task does.
    pub(super) fn begin(&mut self, task: &'a Task) -> Moved<'a> {
        match &task.kind {
            TaskKind::Do(_) => Ok(self.descend(At::Do)),
            TaskKind::Try(of) => {
                let tries = Tries {
                    attempt: 1,
                    first: self.now,
                    until: None,
                };
                self.begin_try(task, of, tries)
            }
            TaskKind::Set(template) => {
                let output = self.of_innermost(task, |scope, input, budget| {
                    scope.fill(template, input, budget)
                })?;
                Ok(Move::Leave { output, then: None })
            }
            TaskKind::Switch(cases) => {
                let then = self.chosen(task, cases)?;
                let (output, _) = self.innermost_input();
                Ok(Move::Leave { output, then })
            }
            TaskKind::Raise(error) => Err(self.raised(task, error)?),
            TaskKind::Wait(time) => self.wait(task, time),
            TaskKind::For(of) if of.parallel.is_none() => self.begin_loop(task, of),
            TaskKind::For(of) => self.begin_parallel(task, of),
            TaskKind::Fork(branches) => Ok(self.begin_fork(task, branches)),
            TaskKind::Call(call) => match call {
                Call::Tool(tool) => self.begin_tool(task, tool),
                Call::Http(http) => self.begin_http(task, http),
                Call::Agent(agent) => self.begin_agent(task, agent),
                Call::Approval(approval) => self.begin_approval(task, approval),
                Call::Guardrail(guardrail) => self.begin_guardrail(task, guardrail),
            },
            TaskKind::Run(flow) => self.begin_subflow(task, flow),
        }
    }

    /// Begins the innermost task again.
    pub(super) fn begin_again(&mut self) -> Moved<'a> {
        let task = self.innermost()?;
        let frame = self.state.frames.last_mut().ok_or_else(unreadable_state)?;
        let At::Again { unanswered, tries } = std::mem::replace(&mut frame.at, At::Effect) else {
            return Err(unreadable_state());
        };
        if let (TaskKind::Try(of), Some(tries)) = (&task.kind, tries) {
            return self.begin_try(task, of, tries);
        }
        let mut moved = self.begin(task)?;
        match (unanswered, &mut moved, &task.kind) {
            (Some(unanswered), Move::Effect(_, Next::Begin(step)), _) => {
                keep_key(&mut step.request, unanswered, None);
            }
            (
                Some(unanswered),
                Move::Effect(_, Next::Ask { again, .. }),
                TaskKind::Call(Call::Tool(tool)),
            ) => {
                let tool = tool.tool.clone();
                *again = Some(Box::new(AskedAgain { tool, unanswered }));
            }
            _ => {}
        }
        Ok(moved)
    }

    /// The step of a task has ended.
    pub(super) fn answered(&mut self, task: &'a Task, ended: &Step) -> Moved<'a> {
        if is_simulated(ended) {
            return self.simulated(task);
        }
        match &task.kind {
            TaskKind::Call(Call::Tool(tool)) if ended.kind == StepKind::Approval => {
                self.tool_decided(task, tool, ended)
            }
            TaskKind::Call(Call::Tool(_)) => self.tool_answered(task, ended),
            TaskKind::Call(Call::Http(http)) => self.http_answered(task, http, ended),
            TaskKind::Call(Call::Agent(_)) => self.of_agent(task, ended),
            TaskKind::Call(Call::Approval(approval)) => match self.about.fixtures.get(&task.path) {
                Some(_) => self.simulated(task),
                None => decided(task, approval, ended),
            },
            TaskKind::Call(Call::Guardrail(_)) => judged(task, ended),
            TaskKind::Run(_) => self.ran(task, ended),
            TaskKind::Fork(_) => self.joined(task, ended),
            TaskKind::Wait(_) => {
                let (output, _) = self.innermost_input();
                Ok(Move::Leave { output, then: None })
            }
            _ => Err(unreadable_state()),
        }
    }

    fn wait(&mut self, task: &'a Task, time: &Time) -> Moved<'a> {
        let duration = self.time_of(task, time)?;
        if self.about.is_dry_run {
            let (output, _) = self.innermost_input();
            return Ok(Move::Leave { output, then: None });
        }
        let next = Next::Wait {
            path: task.path.clone(),
            duration: self.within_deadlines(duration),
        };
        Ok(Move::Effect(task, next))
    }

    fn time_of(&mut self, task: &'a Task, time: &Time) -> Result<Duration, Raised> {
        self.of_innermost(task, |scope, input, budget| scope.time(time, input, budget))
    }

    /// What the first case that holds says.
    fn chosen(&mut self, task: &'a Task, cases: &[Case]) -> Result<Option<Then>, Raised> {
        self.of_innermost(task, |scope, input, budget| {
            for case in cases {
                let holds = match &case.when {
                    Some(when) => scope.is_true(when, input, budget)?,
                    None => true,
                };
                if holds {
                    return Ok(Some(case.then));
                }
            }
            Ok(None)
        })
    }

    fn raised(&mut self, task: &'a Task, error: &ErrorTemplate) -> Result<Raised, Raised> {
        self.of_innermost(task, |scope, input, budget| {
            let kind = scope.fill(&error.kind, input, budget)?;
            let status = scope.fill(&error.status, input, budget)?;
            let title = scope.fill_some(error.title.as_ref(), input, budget)?;
            let detail = scope.fill_some(error.detail.as_ref(), input, budget)?;
            let is_literal = matches!(error.title, None | Some(Template::Literal(_)));
            Raised::by_author(
                (&kind, &status),
                (&title, &detail),
                (&task.path, is_literal),
            )
        })
    }

    /// Begins a try of the innermost task's list.
    pub(super) fn begin_try(&mut self, task: &'a Task, of: &Try, tries: Tries) -> Moved<'a> {
        let mut ends = Vec::new();
        if let Some(retry) = &of.catch.retry {
            let limits = [
                (&retry.try_timeout, self.now),
                (&retry.timeout, tries.first),
            ];
            for (limit, from) in limits {
                if let Some(time) = limit {
                    ends.push(from + self.time_of(task, time)?);
                }
            }
        }
        let until = ends.into_iter().min();
        Ok(self.descend(At::Try(Tries { until, ..tries })))
    }

    fn begin_loop(&mut self, task: &'a Task, of: &'a For) -> Moved<'a> {
        let items = self.items(task, of)?;
        let (input, _) = self.innermost_input();
        self.state.data = input;
        self.iterate(task, of, items, 0)
    }

    /// Begins an iteration of the innermost task, or ends its loop.
    pub(super) fn iterate(
        &mut self,
        task: &'a Task,
        of: &For,
        items: Vec<Value>,
        at: usize,
    ) -> Moved<'a> {
        let is_over = at >= items.len();
        if let Some(frame) = self.state.frames.last_mut() {
            frame.at = At::For { items, at };
        }
        let data = std::mem::take(&mut self.state.data);
        if is_over {
            return Ok(Move::Leave {
                output: data,
                then: None,
            });
        }
        let frame = self.state.frames.last().ok_or_else(unreadable_state)?;
        let about = self.about_frame(task, frame);
        let (scope, budget) = self.scope(task, &about, (&data, &Value::Null));
        let goes_on = match &of.condition {
            Some(condition) => scope.is_true(condition, &data, budget)?,
            None => true,
        };
        if goes_on {
            self.state.data = data;
            return Ok(Move::Enter(0));
        }
        Ok(Move::Leave {
            output: data,
            then: None,
        })
    }
}
