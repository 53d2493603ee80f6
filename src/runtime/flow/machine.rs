//! A run of a flow during a transition: where it stands, and what its expressions may read.
//!
//! A transition computes what comes next: from the state that was written and the step that has ended since, it finds the next
//! step and the state to be written with it, or the end of the run. It is a series of moves, which enter tasks and leave them.
//! Only its result is written, so a transition that is lost with its process is computed again.
//!
//! Not here: what makes the moves (`next`, `begin`).

use super::about::{About, moment};
use super::evaluate::Scope;
use super::limits::processor_time;
use super::raised::Raised;
use super::state::{At, Frame, State};
use super::task_events::TaskEvents;
use crate::failure::Failure;
use crate::flows::definition::graph::NodeKind;
use crate::flows::definition::tree::{Definition, For, ITEMS_MOST, Task, TaskKind, Then};
use crate::runtime::journal::decision::Next;
use crate::runtime::progress::events::{Event, TaskRef};
use crate::store::runs::End;
use expressions::Budget;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;
use time::OffsetDateTime;

/// A move: what a transition does next.
pub(super) enum Move<'a> {
    /// The task of the innermost list with this index.
    Enter(usize),
    /// The innermost task has answered. `then`: what follows, where that is not for the task to say.
    Leave { output: Value, then: Option<Then> },
    /// The innermost list is over.
    EndOfList,
    /// The transition is over: the run ends.
    End(Next),
    /// The transition is over: a step of this task begins.
    Effect(&'a Task, Next),
}

pub(super) type Moved<'a> = Result<Move<'a>, Raised>;

/// A run of a flow during a transition.
pub(super) struct Machine<'a> {
    pub(super) definition: &'a Definition,
    pub(super) about: &'a About,
    pub(super) now: OffsetDateTime,
    pub(super) state: State,
    /// When the time of the flow is over.
    pub(super) ends: Option<OffsetDateTime>,
    /// When its days are over, whatever it waits for.
    pub(super) last: Option<OffsetDateTime>,
    /// They are written with the next commit.
    pub(super) task_events: TaskEvents,
    budget: Budget,
    /// The processor time of this thread when the transition began.
    pub(super) began: Duration,
    /// `$workflow` and `$runtime`.
    workflow: Value,
    runtime: Value,
}

impl<'a> Machine<'a> {
    pub(super) fn new(
        definition: &'a Definition,
        about: &'a About,
        state: State,
        now: OffsetDateTime,
    ) -> Self {
        Self {
            definition,
            about,
            now,
            state,
            ends: None,
            last: None,
            task_events: TaskEvents::default(),
            budget: about.limits.budget(),
            began: processor_time(),
            workflow: about.workflow(definition),
            runtime: about.runtime(),
        }
    }

    /// Goes into the list of the innermost task.
    pub(super) fn descend(&mut self, at: At) -> Move<'a> {
        if let Some(frame) = self.state.frames.last_mut() {
            frame.at = at;
            self.state.data = frame.input.clone();
        }
        Move::Enter(0)
    }

    /// Evaluates something of the innermost task, on its input.
    pub(super) fn of_innermost<T>(
        &mut self,
        task: &'a Task,
        evaluate: impl FnOnce(&Scope<'_>, &Value, &mut Budget) -> Result<T, Raised>,
    ) -> Result<T, Raised> {
        let (input, began) = self.innermost_input();
        let about = match self.state.frames.last() {
            Some(frame) => self.about_frame(task, frame),
            None => self.about_task(task, began, &input),
        };
        let (scope, budget) = self.scope(task, &about, (&input, &Value::Null));
        evaluate(&scope, &input, budget)
    }

    /// What a loop goes over.
    pub(super) fn items(&mut self, task: &'a Task, of: &For) -> Result<Vec<Value>, Raised> {
        let (most, setting) = match of.parallel {
            Some(_) => (self.about.limits.children, " (SVC_MAX_FLOW_CHILDREN)"),
            None => (ITEMS_MOST, ""),
        };
        let items = self.of_innermost(task, |scope, input, budget| {
            scope.evaluate(&of.items, input, budget)
        })?;
        match items {
            Value::Array(items) if items.len() <= most => Ok(items),
            Value::Array(items) => {
                let said = format!(
                    "The loop has {} items, and may have at most {most}{setting}",
                    items.len()
                );
                Err(Raised::too_large(said, &task.path))
            }
            _ => {
                let said = "What the loop goes over (for.in) is no array";
                Err(Raised::validation(said, &task.path))
            }
        }
    }

    /// How many of the frames are those of the parent of the branch that the run is.
    pub(super) fn branch_depth(&self) -> usize {
        let is_branch = |frame: &Frame| matches!(frame.at, At::Branch { .. });
        let innermost = self.state.frames.iter().rposition(is_branch);
        innermost.map_or(0, |depth| depth + 1)
    }

    /// Whether the innermost list is that of the branch that the run is.
    pub(super) fn is_at_branch(&self) -> bool {
        let depth = self.branch_depth();
        depth > 0 && depth == self.state.frames.len()
    }

    pub(super) fn is_in_fork(&self) -> Result<bool, Raised> {
        Ok(self.is_at_branch() && matches!(self.innermost()?.kind, TaskKind::Fork(_)))
    }

    /// The list at a depth of the stack.
    pub(super) fn list(&self, depth: usize) -> Result<&'a [Task], Raised> {
        let mut list = self.definition.tasks.as_slice();
        for frame in &self.state.frames[..depth] {
            let task = list.get(frame.index).ok_or_else(unreadable_state)?;
            list = inside(task, &frame.at).ok_or_else(unreadable_state)?;
        }
        Ok(list)
    }

    /// The innermost task.
    pub(super) fn innermost(&self) -> Result<&'a Task, Raised> {
        let depth = self.state.frames.len().checked_sub(1);
        self.task_at(depth.ok_or_else(unreadable_state)?)
    }

    /// The task at a depth of the stack.
    pub(super) fn task_at(&self, depth: usize) -> Result<&'a Task, Raised> {
        let frame = self.state.frames.get(depth).ok_or_else(unreadable_state)?;
        let list = self.list(depth)?;
        list.get(frame.index).ok_or_else(unreadable_state)
    }

    /// `$task`. `raw`: its input before `input.from`.
    pub(super) fn about_task(&self, task: &Task, began: OffsetDateTime, raw: &Value) -> Value {
        let mut about =
            json!({"name": task.name, "reference": task.path, "startedAt": moment(began)});
        let needs = self.definition.needs;
        if needs.task_definition {
            let source = self.definition.source.as_ref();
            let own = source.and_then(|source| source.pointer(&task.path));
            about["definition"] = own.cloned().unwrap_or_default();
        }
        if needs.task_input {
            about["input"] = raw.clone();
        }
        about
    }

    /// As [`Machine::about_task`], of a task under way.
    pub(super) fn about_frame(&self, task: &Task, frame: &Frame) -> Value {
        self.about_task(
            task,
            frame.began,
            frame.raw.as_ref().unwrap_or(&frame.input),
        )
    }

    /// What the innermost task was given, and when it began.
    pub(super) fn innermost_input(&self) -> (Value, OffsetDateTime) {
        let innermost = self.state.frames.last();
        innermost.map_or((Value::Null, self.now), |frame| {
            (frame.input.clone(), frame.began)
        })
    }

    /// What expressions of a task may read, and the steps that they may use.
    pub(super) fn scope<'s>(
        &'s mut self,
        task: &'s Task,
        about: &'s Value,
        (input, output): (&'s Value, &'s Value),
    ) -> (Scope<'s>, &'s mut Budget) {
        let scope = Scope {
            known: [
                &self.state.context,
                input,
                output,
                about,
                &self.workflow,
                &self.runtime,
            ],
            named: named(self.definition, &self.state.frames),
            path: &task.path,
        };
        (scope, &mut self.budget)
    }

    /// As [`Machine::scope`], of the flow itself.
    pub(super) fn scope_of_run<'s>(&'s mut self, output: &'s Value) -> (Scope<'s>, &'s mut Budget) {
        let scope = Scope {
            known: [
                &self.state.context,
                &self.about.input,
                output,
                &Value::Null,
                &self.workflow,
                &self.runtime,
            ],
            named: Vec::new(),
            path: "",
        };
        (scope, &mut self.budget)
    }
}

impl Machine<'_> {
    /// Adds an event of a task of the innermost list.
    pub(super) fn add_event(&mut self, task: &Task, event: impl FnOnce(TaskRef) -> Event) {
        if !self.task_events.has_room(self.state.tasks) {
            return;
        }
        let iteration = match self.state.frames.last().map(|frame| &frame.at) {
            Some(At::For { at, .. } | At::Branch { at, item: Some(_) }) => Some(*at),
            _ => None,
        };
        self.task_events.push(event(TaskRef {
            path: task.path.clone(),
            kind: NodeKind::of(task),
            iteration,
        }));
    }

    /// Adds the event of a task of the innermost list that ended with an error.
    pub(super) fn add_faulted(&mut self, task: &Task, raised: &Raised) {
        self.add_event(task, |task| Event::TaskFaulted {
            task,
            error: raised.task_error(),
            will_retry: false,
        });
    }

    /// Ends the tasks from this depth of the stack, innermost first.
    pub(super) fn cut(&mut self, depth: usize, raised: &Raised) {
        while self.state.frames.len() > depth {
            let task = self.innermost();
            self.state.frames.pop();
            if let Ok(task) = task {
                self.add_faulted(task, raised);
            }
        }
    }
}

/// The list in which a task under way stands.
fn inside<'d>(task: &'d Task, at: &At) -> Option<&'d [Task]> {
    match (&task.kind, at) {
        (TaskKind::Do(tasks), At::Do) => Some(tasks),
        (TaskKind::For(of), At::For { .. } | At::Branch { .. }) => Some(&of.tasks),
        (TaskKind::Fork(branches), At::Branch { .. }) => Some(branches),
        (TaskKind::Try(of), At::Catch { .. }) => of.catch.tasks.as_deref().or(Some(&[])),
        (TaskKind::Try(of), At::Try(_)) => Some(&of.tasks),
        _ => None,
    }
}

/// The variables of the loops and the caught errors of a stack, outermost first.
fn named<'s>(definition: &'s Definition, frames: &'s [Frame]) -> Vec<(&'s str, Cow<'s, Value>)> {
    let mut list = definition.tasks.as_slice();
    let mut named = Vec::new();
    for frame in frames {
        let Some(task) = list.get(frame.index) else {
            break;
        };
        let item = match (&task.kind, &frame.at) {
            (TaskKind::For(of), At::For { items, at }) => Some((of, items.get(*at), at)),
            (TaskKind::For(of), At::Branch { item, at }) => Some((of, item.as_ref(), at)),
            (TaskKind::Try(of), At::Catch { error }) => {
                named.push((of.catch.variable.as_str(), Cow::Borrowed(error)));
                None
            }
            _ => None,
        };
        if let Some((of, item, at)) = item {
            let item = item.map(Cow::Borrowed).unwrap_or_default();
            named.push((of.each.as_str(), item));
            named.push((of.at.as_str(), Cow::Owned(json!(at))));
        }
        match inside(task, &frame.at) {
            Some(inner) => list = inner,
            None => break,
        }
    }
    named
}

/// The definition has no such place.
pub(super) fn unreadable_state() -> Raised {
    let said = "The state of the run cannot be read by this version of the service";
    Raised::of(("runtime", 500, "The state cannot be read"), said, "")
}

pub(super) fn fail(failure: impl Into<Failure>) -> Next {
    Next::End(End::Failed {
        failure: failure.into(),
        error: None,
    })
}
