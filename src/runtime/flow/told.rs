//! What readers of a run are told of its tasks. The events ride in the commit of the next effect, or of the run's end.
//!
//! Guarantees: of a movement at most [`EVENTS_MOST`] are told, and of a run those of its first [`TASKS_TOLD`] tasks.

use super::machine::Machine;
use super::raised::Raised;
use super::state::At;
use crate::flows::definition::graph::NodeKind;
use crate::flows::definition::tree::Task;
use crate::runtime::progress::events::{Event, TaskError, TaskRef};

/// Events of tasks that a movement tells.
const EVENTS_MOST: usize = 200;
/// Tasks that a run tells of.
const TASKS_TOLD: i32 = 5_000;
/// How much of an error's title is told, in characters.
const TITLE_CHARACTERS: usize = 200;

/// What a movement tells.
#[derive(Default)]
pub(super) struct Told {
    events: Vec<Event>,
    omitted: usize,
}

impl Told {
    /// In their order. The last one says how many were left out.
    pub(super) fn into_events(mut self) -> Vec<Event> {
        if self.omitted > 0 {
            let count = self.omitted;
            self.events.push(Event::EventsOmitted { count });
        }
        self.events
    }
}

impl Machine<'_> {
    /// Tells of a task of the innermost list.
    pub(super) fn tell(&mut self, task: &Task, event: impl FnOnce(TaskRef) -> Event) {
        if self.told.events.len() >= EVENTS_MOST || self.state.tasks > TASKS_TOLD {
            self.told.omitted += 1;
            return;
        }
        let iteration = match self.state.frames.last().map(|frame| &frame.at) {
            Some(At::For { at, .. } | At::Branch { at, item: Some(_) }) => Some(*at),
            _ => None,
        };
        self.told.events.push(event(TaskRef {
            path: task.path.clone(),
            kind: NodeKind::of(task),
            iteration,
        }));
    }

    /// Tells that a task of the innermost list ended with an error.
    pub(super) fn tell_faulted(&mut self, task: &Task, raised: &Raised) {
        self.tell(task, |task| Event::TaskFaulted {
            task,
            error: raised.told(),
            will_retry: false,
        });
    }

    /// Ends the tasks from this depth of the stack, innermost first.
    pub(super) fn cut(&mut self, depth: usize, raised: &Raised) {
        while self.state.frames.len() > depth {
            let task = self.innermost();
            self.state.frames.pop();
            if let Ok(task) = task {
                self.tell_faulted(task, raised);
            }
        }
    }
}

impl Raised {
    /// As readers are told of it. The detail may hold what a server answered, and is not told.
    pub(super) fn told(&self) -> TaskError {
        TaskError {
            status: self.status,
            title: self.title.chars().take(TITLE_CHARACTERS).collect(),
            erased: false,
        }
    }
}
