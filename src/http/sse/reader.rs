//! One open stream of a run: the position of its reader, and the text that it has.

use super::format::{ReasoningDelta, TextDelta};
use super::outgoing::Outgoing;
use crate::authz::RunReader;
use crate::http::door::StreamWriter;
use crate::runtime::progress::feed::Delta;
use crate::store::events::{LastStep, StoredEvent};
use bytes::Bytes;
use serde_json::Value;
use std::cmp::Ordering;
use std::time::{Duration, Instant};

/// How often text that is missing is looked up for one reader.
const FILL: Duration = Duration::from_millis(250);

/// For how long missing text is looked up: longer than its writing takes.
const GAP: Duration = Duration::from_secs(1);

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
    pub(super) out: Outgoing,
    pub(super) may: RunReader,
    /// The number of the last durable event that it was given.
    pub(super) seq: i64,
    text: Text,
    /// It is to be given what stood when it came.
    new: bool,
}

impl Reader {
    pub(super) fn new(
        writer: StreamWriter,
        may: RunReader,
        after: i64,
        buffer_bytes: usize,
    ) -> Self {
        Self {
            out: Outgoing::new(writer, buffer_bytes),
            may,
            seq: after,
            text: Text::default(),
            new: true,
        }
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

    /// A durable event, unless it was given already or too much waits for room.
    pub(super) fn durable(&mut self, event: &StoredEvent, text: &Bytes) {
        if event.seq == self.seq + 1 && self.out.has_room() {
            self.seq = event.seq;
            self.out.push(text.clone());
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
        if self.new || self.out.is_behind() || self.out.is_ending() {
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
        self.out.push(piece.event());
        TextOutcome::Done
    }

    /// Gives a piece of the reasoning of the step that is under way. A browser with a public token gets none.
    pub(super) fn reasoning(&mut self, delta: &Delta) {
        let is_now = (delta.step, delta.attempt) == self.text.begun && !self.text.over;
        if self.new
            || self.out.is_behind()
            || self.out.is_ending()
            || !is_now
            || self.may.is_public()
        {
            return;
        }
        let piece = ReasoningDelta {
            step: delta.step,
            attempt: delta.attempt,
            offset: delta.offset,
            text: &delta.text,
        };
        self.out.push(piece.event());
    }

    /// Whether missing text is to be looked up now: not for every piece after it.
    pub(super) fn may_fill(&mut self) -> bool {
        if self.text.filled_at.is_some_and(|at| at.elapsed() < FILL) {
            return false;
        }
        self.text.filled_at = Some(Instant::now());
        true
    }
}
