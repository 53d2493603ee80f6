//! The events of a flow's tasks. They are written in the commit of the next effect, or of the run's end.
//!
//! Guarantees: a transition writes at most [`EVENTS_MOST`] of them, and a run only those of its first [`TASKS_MOST`] tasks.

use super::raised::Raised;
use crate::runtime::progress::events::{Event, TaskError};

/// Events of tasks that a transition writes.
const EVENTS_MOST: usize = 200;
/// Tasks of a run that have events.
const TASKS_MOST: i32 = 5_000;
/// How much of an error's title an event has, in characters.
const TITLE_CHARACTERS: usize = 200;

/// The events of tasks that a transition writes.
#[derive(Default)]
pub(super) struct TaskEvents {
    events: Vec<Event>,
    omitted: usize,
}

impl TaskEvents {
    /// Whether another event is written, of a run that has entered so many tasks. One that is not is counted.
    pub(super) fn has_room(&mut self, tasks: i32) -> bool {
        let has_room = self.events.len() < EVENTS_MOST && tasks <= TASKS_MOST;
        self.omitted += usize::from(!has_room);
        has_room
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// In their order. The last one says how many were left out.
    pub(super) fn into_events(mut self) -> Vec<Event> {
        if self.omitted > 0 {
            let count = self.omitted;
            self.events.push(Event::EventsOmitted { count });
        }
        self.events
    }
}

impl Raised {
    /// As events have it. The detail may hold what a server answered, and is left out.
    pub(super) fn task_error(&self) -> TaskError {
        TaskError {
            status: self.status,
            title: self.title.chars().take(TITLE_CHARACTERS).collect(),
            erased: false,
        }
    }
}
