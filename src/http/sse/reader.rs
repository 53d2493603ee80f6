//! One open stream: the position of its reader, and what waits for space in its buffer.

use super::format::{self, End, TextDelta};
use crate::authz::RunReader;
use crate::http::door::{NotSent, StreamWriter};
use crate::runtime::progress::feed::Delta;
use crate::store::events::{LastStep, StoredEvent};
use bytes::Bytes;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The largest piece put into a reader's buffer at once; a quarter of a small buffer.
const PIECE_BYTES: usize = 16 * 1024;

/// Events are added to what waits up to this many bytes, so that a slow reader is not looked up
/// again for each of them. The last one may be longer.
const WAITING_BYTES: usize = 64 * 1024;

/// Kept free in the buffer for the reset.
const RESET_BYTES: usize = 128;

/// How often text that is missing is looked up for one reader.
const FILL: Duration = Duration::from_millis(250);

/// For how long missing text is looked up: longer than its writing takes.
const GAP: Duration = Duration::from_secs(1);

/// Where a reader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has been given everything there was room for.
    Open,
    /// It is over: drop it.
    Over,
}

/// What became of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextOutcome {
    /// The reader has it, or is not to have it.
    Done,
    /// Its attempt has not begun, as far as the reader has seen.
    NotBegun,
    /// Text before it is missing: look it up.
    Fill,
}

/// The text of the newest attempt of a step that the reader has seen.
#[derive(Debug, Default)]
struct Text {
    /// Step and attempt.
    begun: (i32, i32),
    /// The attempt is over, and so is its text.
    over: bool,
    /// Code points that the reader has.
    had: i32,
    /// Since when earlier text is missing.
    gap_since: Option<Instant>,
    /// When missing text was last looked up.
    filled_at: Option<Instant>,
}

pub(super) struct Reader {
    writer: StreamWriter,
    pub(super) may: RunReader,
    /// The number of the last durable event that it was given.
    pub(super) seq: i64,
    text: Text,
    /// It is to be given what stood when it came.
    new: bool,
    /// What it is to get and has no room for.
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    /// A part of the first that waits was sent.
    in_the_middle: bool,
    piece_bytes: usize,
    /// It ends once nothing waits.
    ending: bool,
    /// When it last took something.
    pub(super) took_at: Instant,
}

impl Reader {
    pub(super) fn new(
        writer: StreamWriter,
        may: RunReader,
        after: i64,
        buffer_bytes: usize,
    ) -> Self {
        let mut reader = Self {
            writer,
            may,
            seq: after,
            text: Text::default(),
            new: true,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            in_the_middle: false,
            piece_bytes: PIECE_BYTES.min(buffer_bytes / 4).max(1),
            ending: false,
            took_at: Instant::now(),
        };
        reader.push(format::retry());
        reader
    }

    /// Something waits for room.
    pub(super) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// It takes nothing more.
    pub(super) fn is_ending(&self) -> bool {
        self.ending
    }

    /// It was not yet given what stood when it came.
    pub(super) fn is_new(&self) -> bool {
        self.new
    }

    /// Its newest step as of the event that it named is known, if there was one.
    pub(super) fn begins(&mut self, last: Option<&LastStep>) {
        if let Some(last) = last {
            self.step(&last.kind, last.step, last.attempt);
        }
    }

    /// It is given what stood when it came.
    pub(super) fn welcome(&mut self) {
        self.new = false;
    }

    fn push(&mut self, bytes: Bytes) {
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(bytes);
    }

    /// Moves what waits into the buffer, as far as there is room.
    pub(super) fn flush(&mut self) -> Standing {
        while let Some(next) = self.waiting.front_mut() {
            let piece = next.slice(..next.len().min(self.piece_bytes));
            let has_room = self.writer.room_bytes() >= piece.len() + RESET_BYTES;
            let sent = if has_room {
                self.writer.try_send(piece.clone())
            } else if self.writer.is_gone() {
                Err(NotSent::Gone)
            } else {
                Err(NotSent::Full)
            };
            match sent {
                Ok(()) => {
                    self.took_at = Instant::now();
                    self.waiting_bytes -= piece.len();
                    self.in_the_middle = piece.len() < next.len();
                    if self.in_the_middle {
                        *next = next.slice(piece.len()..);
                    } else {
                        self.waiting.pop_front();
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

    /// A durable event, unless it was given already or too much waits for room.
    pub(super) fn durable(&mut self, event: &StoredEvent, text: &Bytes) {
        if event.seq == self.seq + 1 && self.waiting_bytes < WAITING_BYTES && !self.ending {
            self.seq = event.seq;
            self.push(text.clone());
            let number = |name: &str| {
                let number = event.data.get(name).and_then(Value::as_i64).unwrap_or(0);
                i32::try_from(number).unwrap_or(0)
            };
            self.step(&event.kind, number("step"), number("attempt"));
        }
    }

    fn step(&mut self, kind: &str, step: i32, attempt: i32) {
        match kind {
            "step.started" => {
                self.text = Text {
                    begun: (step, attempt),
                    filled_at: self.text.filled_at,
                    ..Text::default()
                }
            }
            "step.completed" | "step.failed" | "step.restarted" => {
                self.text.begun = self.text.begun.max((step, attempt));
                self.text.over = true;
            }
            _ => {}
        }
    }

    /// Gives the part of a piece of text that the reader does not have. Text comes between its
    /// attempt's beginning and its end, and to a reader for which nothing waits.
    pub(super) fn text(&mut self, delta: &Delta) -> TextOutcome {
        if self.new || self.is_behind() || self.ending {
            return TextOutcome::Done;
        }
        match (delta.step, delta.attempt).cmp(&self.text.begun) {
            Ordering::Less => return TextOutcome::Done,
            Ordering::Equal if self.text.over => return TextOutcome::Done,
            Ordering::Equal => {}
            Ordering::Greater => return TextOutcome::NotBegun,
        }
        if delta.offset > self.text.had {
            let since = *self.text.gap_since.get_or_insert_with(Instant::now);
            if since.elapsed() < GAP {
                return TextOutcome::Fill;
            }
            // It was lost: the offset says so.
            self.text.had = delta.offset;
        }
        self.text.gap_since = None;
        let had = self.text.had;
        let known = usize::try_from(had - delta.offset).unwrap_or(0);
        let fresh: String = delta.text.chars().skip(known).collect();
        if fresh.is_empty() {
            return TextOutcome::Done;
        }
        let count = i32::try_from(fresh.chars().count()).unwrap_or(i32::MAX);
        self.text.had = had.saturating_add(count);
        let piece = TextDelta {
            step: delta.step,
            attempt: delta.attempt,
            offset: had,
            text: &fresh,
        };
        self.push(piece.event());
        TextOutcome::Done
    }

    /// Whether missing text is to be looked up now: not for every piece after it.
    pub(super) fn may_fill(&mut self) -> bool {
        if self.text.filled_at.is_some_and(|at| at.elapsed() < FILL) {
            return false;
        }
        self.text.filled_at = Some(Instant::now());
        true
    }

    /// A comment, if nothing else is on its way.
    pub(super) fn comment(&mut self) {
        if !self.is_behind() && !self.ending {
            self.push(format::comment());
        }
    }

    /// The last event: nothing is given after it.
    pub(super) fn end(&mut self, why: End) {
        if !self.ending {
            self.ending = true;
            self.push(why.event());
        }
    }

    /// The reader took nothing for too long: what waits is dropped for a reset. One that has a part
    /// of an event just ends, since whatever came now would make a whole event of it.
    pub(super) fn reset(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
        if !self.in_the_middle {
            let _ = self.writer.try_send(format::reset());
        }
    }
}
