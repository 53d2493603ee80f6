//! One open stream: what its reader has, and what waits for room in its buffer.

use super::format::{self, End};
use crate::authz::RunReader;
use crate::http::door::{NotSent, StreamWriter};
use crate::runtime::feed::Delta;
use bytes::Bytes;
use serde_json::json;
use std::collections::VecDeque;
use std::time::Instant;

/// The largest piece put into a reader's buffer at once.
const PIECE_BYTES: usize = 16 * 1024;

/// Where a reader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has been given everything there was room for.
    Open,
    /// It is over: drop it.
    Over,
}

pub(super) struct Reader {
    writer: StreamWriter,
    pub(super) may: RunReader,
    /// The number of the last durable event that it was given.
    pub(super) seq: i64,
    /// Step, attempt and code points of the text that it was given.
    text: (i32, i32, i32),
    /// What it is to get and has no room for. Bounded: nothing is added while something waits.
    waiting: VecDeque<Bytes>,
    /// It ends once nothing waits.
    ending: bool,
    /// When it last took something.
    pub(super) took_at: Instant,
}

impl Reader {
    pub(super) fn new(writer: StreamWriter, may: RunReader, after: i64) -> Self {
        Self {
            writer,
            may,
            seq: after,
            text: (0, 0, 0),
            waiting: VecDeque::from([format::retry()]),
            ending: false,
            took_at: Instant::now(),
        }
    }

    /// Something waits for room.
    pub(super) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// It takes nothing more.
    pub(super) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Moves what waits into the buffer, as far as there is room.
    pub(super) fn flush(&mut self) -> Standing {
        while let Some(next) = self.waiting.front_mut() {
            let piece = next.slice(..next.len().min(PIECE_BYTES));
            match self.writer.try_send(piece.clone()) {
                Ok(()) => {
                    self.took_at = Instant::now();
                    if piece.len() == next.len() {
                        self.waiting.pop_front();
                    } else {
                        *next = next.slice(piece.len()..);
                    }
                }
                Err(NotSent::Full) => return Standing::Open,
                Err(NotSent::Gone) => return Standing::Over,
            }
        }
        if self.ending || self.writer.is_gone() {
            return Standing::Over;
        }
        Standing::Open
    }

    /// A durable event, unless it was given already or earlier ones wait for room.
    pub(super) fn durable(&mut self, seq: i64, event: &Bytes) {
        if seq == self.seq + 1 && !self.is_behind() && !self.ending {
            self.seq = seq;
            self.waiting.push_back(event.clone());
        }
    }

    /// The part of a piece of text that the reader does not have. False: a part before it is
    /// missing.
    pub(super) fn text(&mut self, delta: &Delta) -> bool {
        if self.is_behind() || self.ending {
            return true;
        }
        let (step, attempt, had) = self.text;
        let had = match (delta.step, delta.attempt).cmp(&(step, attempt)) {
            std::cmp::Ordering::Less => return true,
            std::cmp::Ordering::Equal => had,
            std::cmp::Ordering::Greater => 0,
        };
        if delta.offset > had {
            return false;
        }
        let known = usize::try_from(had - delta.offset).unwrap_or(0);
        let fresh: String = delta.text.chars().skip(known).collect();
        if fresh.is_empty() {
            return true;
        }
        let count = i32::try_from(fresh.chars().count()).unwrap_or(i32::MAX);
        self.text = (delta.step, delta.attempt, had.saturating_add(count));
        self.waiting.push_back(format::passing(
            "text.delta",
            &json!({"step": delta.step, "attempt": delta.attempt, "offset": had, "text": fresh}),
        ));
        true
    }

    /// A comment, if nothing else is on its way.
    pub(super) fn comment(&mut self) {
        if !self.is_behind() && !self.ending {
            self.waiting.push_back(format::comment());
        }
    }

    /// The last event: nothing is given after it.
    pub(super) fn end(&mut self, why: End) {
        if !self.ending {
            self.ending = true;
            self.waiting.push_back(why.event());
        }
    }

    /// The reader took nothing for too long: what waits is dropped for a reset, if that has room.
    pub(super) fn reset(&mut self) {
        // A piece of an event may have been sent: an empty line ends it before the reset.
        let _ = self.writer.try_send(Bytes::from_static(b"\n\n"));
        let _ = self.writer.try_send(format::reset());
    }
}
