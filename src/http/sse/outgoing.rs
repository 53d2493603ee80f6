//! What one open stream is given, until its client takes it.
//!
//! Guarantees: whole events in order. The last one says why the stream ends. A slow client costs its own bounded buffer.

use super::format::{self, End};
use crate::http::door::{NotSent, StreamWriter};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The largest piece put into a stream's buffer at once; a quarter of a small buffer.
const PIECE_BYTES: usize = 16 * 1024;

/// Events are added to what waits up to this many bytes, so that a slow reader is not looked up
/// again for each of them. The last one may be longer.
const WAITING_BYTES: usize = 64 * 1024;

/// Kept free in the buffer for the reset.
const RESET_BYTES: usize = 128;

/// Where a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamState {
    /// It has been given everything there was room for.
    Open,
    /// It is over: drop it.
    Over,
}

pub(super) struct Outgoing {
    writer: StreamWriter,
    /// What it is to get and has no room for.
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    /// A part of the first that waits was sent.
    in_the_middle: bool,
    piece_bytes: usize,
    /// It ends once nothing waits.
    ending: bool,
    /// When it last took something.
    took_at: Instant,
}

impl Outgoing {
    /// It begins with the time after which a client comes back.
    pub(super) fn new(writer: StreamWriter, buffer_bytes: usize) -> Self {
        let mut outgoing = Self {
            writer,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            in_the_middle: false,
            piece_bytes: PIECE_BYTES.min(buffer_bytes / 4).max(1),
            ending: false,
            took_at: Instant::now(),
        };
        outgoing.push(format::retry());
        outgoing
    }

    /// Something waits for room.
    pub(super) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// It takes nothing more.
    pub(super) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Another event may be added to what waits.
    pub(super) fn has_room(&self) -> bool {
        self.waiting_bytes < WAITING_BYTES && !self.ending
    }

    /// Something waits, and nothing was taken for so long.
    pub(super) fn is_stalled(&self, patience: Duration) -> bool {
        self.is_behind() && self.took_at.elapsed() >= patience
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(bytes);
    }

    /// Moves what waits into the buffer, as far as there is room.
    pub(super) fn flush(&mut self) -> StreamState {
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
                Err(NotSent::Full) => return StreamState::Open,
                Err(NotSent::Gone) => return StreamState::Over,
            }
        }
        if self.ending || self.writer.is_gone() {
            return StreamState::Over;
        }
        StreamState::Open
    }

    /// A comment, if nothing was taken for so long and nothing is on its way.
    pub(super) fn comment(&mut self, every: Duration) {
        if self.took_at.elapsed() >= every && !self.is_behind() && !self.ending {
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
