//! Decisions on their way to the database.

use super::ticket::Ticket;
use crate::store::audit::{Batch, Row};

/// A decision and its ticket.
pub(super) struct Entry {
    pub(super) row: Row,
    pub(super) ticket: Ticket,
}

/// Decisions without an outcome.
pub(super) struct Open {
    pub(super) entries: Vec<Entry>,
    pub(super) doubt: Option<Doubt>,
}

impl Open {
    pub(super) fn is_resolved(&self) -> bool {
        self.entries.iter().all(|entry| entry.ticket.is_resolved())
    }
}

impl From<Vec<Entry>> for Open {
    fn from(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            doubt: None,
        }
    }
}

/// A batch whose commit was not confirmed.
pub(super) struct Doubt {
    pub(super) slot: i32,
    pub(super) batch: Batch,
}
