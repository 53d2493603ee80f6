//! Decisions that wait for the writer, in order. Bounded; what waits too long is given up.

use super::ticket::{Reason, Settlement, Ticket};
use crate::error::Result;
use crate::store::audit::Row;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A decision and who waits for it.
pub(super) struct Entry {
    pub(super) row: Row,
    pub(super) ticket: Ticket,
}

/// What the writer is to do.
pub(super) enum Work {
    /// Write these.
    Write(Vec<Entry>),
    /// Nothing has come for this long.
    Idle,
    /// Nothing more will come.
    End,
}

pub(super) struct Queue {
    limit: usize,
    state: Mutex<State>,
    /// Something came, or the queue closed: for the writer.
    filled: Condvar,
    /// Something that can become late came, or the queue ended: for the watch.
    watched: Condvar,
}

/// What the queue holds, and what it gave up.
#[derive(Clone, Copy, Default)]
pub(super) struct Load {
    pub(super) waiting: usize,
    pub(super) taken: usize,
    pub(super) late: u64,
    pub(super) overflowed: u64,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Entry>,
    /// Those that the writer has taken and not yet settled.
    taken: Vec<Ticket>,
    late: u64,
    overflowed: u64,
    /// The watch sleeps until something comes.
    is_unwatched: bool,
    is_closed: bool,
    has_ended: bool,
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            filled: Condvar::new(),
            watched: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// `audit-unavailable`: it is full or closed.
    pub(super) fn push(&self, entry: Entry) -> Result<()> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Reason::Stopping.error());
        }
        if state.waiting.len() >= self.limit {
            state.overflowed += 1;
            return Err(Reason::QueueFull.error());
        }
        let was_empty = state.waiting.is_empty();
        let was_unwatched = std::mem::take(&mut state.is_unwatched);
        state.waiting.push_back(entry);
        drop(state);
        if was_empty {
            self.filled.notify_one();
        }
        if was_unwatched {
            self.watched.notify_one();
        }
        Ok(())
    }

    pub(super) fn load(&self) -> Load {
        let state = self.lock();
        let taken = state.taken.iter().filter(|ticket| !ticket.is_settled());
        Load {
            waiting: state.waiting.len(),
            taken: taken.count(),
            late: state.late,
            overflowed: state.overflowed,
        }
    }

    /// Takes what waits, at most `most`, and waits for it at most `idle`.
    pub(super) fn take(&self, most: usize, idle: Duration) -> Work {
        let until = Instant::now() + idle;
        let mut state = self.lock();
        loop {
            state.taken.clear();
            if !state.waiting.is_empty() {
                let count = most.min(state.waiting.len());
                let entries: Vec<Entry> = state.waiting.drain(..count).collect();
                state.taken = entries.iter().map(|entry| entry.ticket.clone()).collect();
                return Work::Write(entries);
            }
            if state.is_closed {
                return Work::End;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Work::Idle;
            }
            state = self
                .filled
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Takes no more; what waits is still written.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    /// The writer has ended, or is left behind: whatever still waits has failed.
    pub(super) fn end(&self) -> usize {
        let mut state = self.lock();
        state.is_closed = true;
        state.has_ended = true;
        let mut left: Vec<Ticket> = state.waiting.drain(..).map(|entry| entry.ticket).collect();
        left.append(&mut state.taken);
        drop(state);
        self.filled.notify_all();
        self.watched.notify_all();
        settle(&left, Settlement::Failed(Reason::Stopping))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Waits until something is late, and gives it up: those that wait are not written any more,
    /// those that the writer has taken may still be. None: the queue has ended.
    pub(super) fn give_up_late(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.has_ended {
                return None;
            }
            let now = Instant::now();
            // Those taken are older than those that wait, and those in front are the oldest.
            let taken = state.taken.iter().filter(|ticket| !ticket.is_settled());
            let oldest = taken
                .map(Ticket::deadline)
                .chain(state.waiting.front().map(|entry| entry.ticket.deadline()))
                .min();
            state = match oldest {
                Some(deadline) if deadline <= now => break,
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(now);
                    let waited = self.watched.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    state.is_unwatched = true;
                    let waited = self.watched.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        let now = Instant::now();
        let late = |ticket: &Ticket| ticket.deadline() <= now;
        let taken = state.taken.iter().filter(|ticket| !ticket.is_settled());
        let mut tickets: Vec<Ticket> = taken.filter(|ticket| late(ticket)).cloned().collect();
        while state
            .waiting
            .front()
            .is_some_and(|entry| late(&entry.ticket))
        {
            tickets.extend(state.waiting.pop_front().map(|entry| entry.ticket));
        }
        state.late += u64::try_from(tickets.len()).unwrap_or(u64::MAX);
        drop(state);
        Some(settle(&tickets, Settlement::Failed(Reason::Late)))
    }
}

/// Settles each; returns how many callbacks panicked.
pub(super) fn settle(tickets: &[Ticket], settlement: Settlement) -> usize {
    tickets.iter().map(|ticket| ticket.settle(settlement)).sum()
}
