//! One open stream of a run: the position of its reader, and the text and reasoning that it has.

use super::format::{ReasoningDelta, TextDelta};
use super::outgoing::Outgoing;
use crate::authz::RunReader;
use crate::http::door::StreamWriter;
use crate::runtime::progress::feed::Delta;
use crate::store::deltas::Stream;
use crate::store::events::{LastStep, StoredEvent};
use bytes::Bytes;
use serde_json::Value;
use std::cmp::Ordering;
use std::time::{Duration, Instant};

/// How often what is missing of a stream is looked up for one reader.
const FILL: Duration = Duration::from_millis(250);

/// For how long it is looked up: longer than its writing takes.
const GAP: Duration = Duration::from_secs(1);

/// What became of a piece of text or reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextOutcome {
    /// The reader has it, or is not to have it.
    Done,
    /// Its attempt has not begun, as far as the reader has seen.
    NotBegun,
    /// What is before it is missing: look it up.
    Fill,
}

/// What was streamed of the newest attempt of a step that the reader has seen.
#[derive(Debug, Default)]
struct Text {
    /// Step and attempt.
    begun: (i32, i32),
    /// The attempt is over, and so is its text.
    over: bool,
    /// Of its text.
    said: Had,
    /// Of its reasoning.
    thought: Had,
    /// When what is missing was last looked up.
    filled_at: Option<Instant>,
}

/// What a reader has of a stream.
#[derive(Debug, Default)]
struct Had {
    /// Code points.
    points: i32,
    /// Since when something before the newest piece is missing.
    gap_since: Option<Instant>,
}

impl Had {
    /// Takes a piece: where what is new of it begins, and that. None: what is before it is missing, and may still come.
    fn take(&mut self, delta: &Delta) -> Option<(i32, String)> {
        if delta.offset > self.points {
            let since = *self.gap_since.get_or_insert_with(Instant::now);
            if since.elapsed() < GAP {
                return None;
            }
            // It was lost: the offset says so.
            self.points = delta.offset;
        }
        self.gap_since = None;
        let had = self.points;
        let known = usize::try_from(had - delta.offset).unwrap_or(0);
        let fresh: String = delta.text.chars().skip(known).collect();
        let count = i32::try_from(fresh.chars().count()).unwrap_or(i32::MAX);
        self.points = had.saturating_add(count);
        Some((had, fresh))
    }
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

    /// Gives the part of a piece that the reader does not have. Pieces come between their attempt's beginning and its end, and
    /// to a reader for which nothing waits. A browser with a public token gets no reasoning.
    pub(super) fn text(&mut self, delta: &Delta) -> TextOutcome {
        let is_hidden = delta.stream == Stream::Reasoning && self.may.is_public();
        if self.new || self.out.is_behind() || self.out.is_ending() || is_hidden {
            return TextOutcome::Done;
        }
        match (delta.step, delta.attempt).cmp(&self.text.begun) {
            Ordering::Less => return TextOutcome::Done,
            Ordering::Equal if self.text.over => return TextOutcome::Done,
            Ordering::Equal => {}
            Ordering::Greater => return TextOutcome::NotBegun,
        }
        let had = match delta.stream {
            Stream::Text => &mut self.text.said,
            Stream::Reasoning => &mut self.text.thought,
        };
        let Some((offset, fresh)) = had.take(delta) else {
            return TextOutcome::Fill;
        };
        if fresh.is_empty() {
            return TextOutcome::Done;
        }
        let (step, attempt, text) = (delta.step, delta.attempt, fresh.as_str());
        self.out.push(match delta.stream {
            Stream::Text => TextDelta {
                step,
                attempt,
                offset,
                text,
            }
            .event(),
            Stream::Reasoning => ReasoningDelta {
                step,
                attempt,
                offset,
                text,
            }
            .event(),
        });
        TextOutcome::Done
    }

    /// Whether what is missing is to be looked up now: not for every piece after it.
    pub(super) fn may_fill(&mut self) -> bool {
        if self.text.filled_at.is_some_and(|at| at.elapsed() < FILL) {
            return false;
        }
        self.text.filled_at = Some(Instant::now());
        true
    }
}
