//! What readers of a run are told of its tasks. The events ride in the commit of the next effect, or of the run's end.
//!
//! Guarantees: of a movement at most [`EVENTS_MOST`] are told, and of a run those of its first [`TASKS_TOLD`] tasks.

use super::raised::Raised;
use crate::runtime::progress::events::{Event, TaskError};

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
    /// Whether another event is told, of a run that has entered so many tasks. One that is not is counted.
    pub(super) fn has_room(&mut self, tasks: i32) -> bool {
        let has_room = self.events.len() < EVENTS_MOST && tasks <= TASKS_TOLD;
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
    /// As readers are told of it. The detail may hold what a server answered, and is not told.
    pub(super) fn told(&self) -> TaskError {
        TaskError {
            status: self.status,
            title: self.title.chars().take(TITLE_CHARACTERS).collect(),
            erased: false,
        }
    }
}
