//! One run that is followed here: its readers, and their positions.

use super::format::{self, End};
use super::outgoing::StreamState;
use super::reader::{Reader, TextOutcome};
use crate::error::{Error, Result};
use crate::proof::{May, Read};
use crate::runtime::progress::events::Event;
use crate::runtime::progress::feed::Delta;
use crate::store::events::{EventPage, StoredEvent};
use std::time::Duration;
use uuid::Uuid;

/// A run and its readers.
pub(super) struct Followed {
    pub(super) readers: Vec<Reader>,
    /// The newest event known to stand.
    pub(super) newest: i64,
    /// More may stand: to be read again.
    pub(super) moved: bool,
}

impl Followed {
    /// The run's tenant, while somebody reads it.
    pub(super) fn tenant_id(&self) -> Option<Uuid> {
        let reader = self.readers.first()?;
        Some(May::<Read, _>::tenant_id(&reader.may))
    }

    /// Whether there is work that no hint will announce.
    pub(super) fn is_restless(&self) -> bool {
        self.moved
            || self.readers.iter().any(|reader| {
                reader.is_new()
                    || reader.out.is_behind()
                    || (reader.seq < self.newest && !reader.out.is_ending())
            })
    }

    /// Where to read on, and for whom: of the readers that have room, the one that has least. None:
    /// there is nothing to read.
    pub(super) fn next(&self) -> Option<&Reader> {
        self.readers
            .iter()
            .filter(|reader| !reader.out.is_behind() && !reader.out.is_ending())
            .min_by_key(|reader| reader.seq)
            .filter(|reader| self.moved || reader.seq < self.newest)
    }

    pub(super) fn flush(&mut self) {
        for reader in &mut self.readers {
            reader.out.flush();
        }
    }

    /// Flushes, and drops readers that are finished, or were stalled for this long. Returns how many.
    pub(super) fn drop_over(&mut self, patience: Duration) -> usize {
        let before = self.readers.len();
        self.readers.retain_mut(|reader| {
            if reader.out.flush() == StreamState::Over {
                return false;
            }
            if reader.out.is_stalled(patience) {
                reader.out.reset();
                return false;
            }
            true
        });
        before - self.readers.len()
    }

    pub(super) fn deliver(&mut self, event: &StoredEvent) {
        let text = format::durable(event);
        let last = Event::is_last(&event.kind);
        self.newest = self.newest.max(event.seq);
        for reader in &mut self.readers {
            reader.durable(event, &text);
            if last && reader.seq >= event.seq {
                reader.out.end(End::Finished);
            }
            reader.out.flush();
        }
    }

    /// Gives what was read after the event `after`.
    ///
    /// # Errors
    /// `internal`: an event is missing.
    pub(super) fn take(&mut self, after: i64, page: &EventPage) -> Result<()> {
        let first = page.events.first();
        if first.is_some_and(|first| first.seq != after + 1) {
            return Err(Error::internal(
                "a run's events are not numbered without gaps",
            ));
        }
        for event in &page.events {
            self.deliver(event);
        }
        if !page.more {
            // Nothing stands after these.
            self.moved = false;
            self.newest = page.events.last().map_or(after, |event| event.seq);
        }
        Ok(())
    }

    /// Readers that came after the run's last event have nothing to wait for.
    pub(super) fn end_finished(&mut self) {
        for reader in &mut self.readers {
            let run = reader.may.run();
            if run.status.is_finished() && reader.seq >= run.last_seq {
                reader.out.end(End::Finished);
                reader.out.flush();
            }
        }
    }

    /// Sends a piece to the readers that may have it. Gives the readers that miss what is before it in its stream, and
    /// whether one does not know its attempt.
    pub(super) fn say(&mut self, delta: &Delta) -> (Vec<usize>, bool) {
        let (mut missing, mut unknown) = (Vec::new(), false);
        for (index, reader) in self.readers.iter_mut().enumerate() {
            match reader.text(delta) {
                TextOutcome::Done => {
                    reader.out.flush();
                }
                TextOutcome::NotBegun => unknown = true,
                TextOutcome::Fill => missing.push(index),
            }
        }
        (missing, unknown)
    }
}
