//! Decisions that wait to be written, in order. Bounded; what waits too long is given up.
//!
//! One leads at a time: it writes all that waits when it begins. That is whoever waits for a decision and finds nobody
//! writing, or the writer's thread.

use super::ticket::{Reason, Settlement, Ticket};
use super::writer::Open;
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

/// What the writer's thread is to do.
pub(super) enum Work {
    /// Write these.
    Write(Open),
    /// Nothing has come for this long.
    Idle,
    /// Nothing more will come.
    End,
}

pub(super) struct Queue {
    limit: usize,
    state: Mutex<State>,
    /// Something is to be written by the writer's thread, or the queue closed.
    called: Condvar,
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
    /// Those that whoever leads has taken and not yet settled.
    taken: Vec<Ticket>,
    /// What another has begun and the writer's thread is to end.
    open: Option<Open>,
    /// Somebody writes, or holds the slot longer.
    is_led: bool,
    /// What waits is to be written by the writer's thread.
    is_called: bool,
    late: u64,
    overflowed: u64,
    /// The watch sleeps until something comes.
    is_unwatched: bool,
    is_closed: bool,
    has_ended: bool,
}

impl State {
    /// Takes what waits, at most `most`.
    fn lead(&mut self, most: usize) -> Vec<Entry> {
        let count = most.min(self.waiting.len());
        let entries: Vec<Entry> = self.waiting.drain(..count).collect();
        self.taken = entries.iter().map(|entry| entry.ticket.clone()).collect();
        // What is more than one may take is written after it, whoever is among it.
        self.is_called = !self.waiting.is_empty();
        self.is_led = true;
        entries
    }
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            called: Condvar::new(),
            watched: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is written once somebody calls the writer's thread, or leads.
    ///
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
        let was_unwatched = std::mem::take(&mut state.is_unwatched);
        state.waiting.push_back(entry);
        drop(state);
        if was_unwatched {
            self.watched.notify_one();
        }
        Ok(())
    }

    /// Has the writer's thread write what waits, at once or after whoever writes now.
    pub(super) fn call(&self) {
        let mut state = self.lock();
        if state.waiting.is_empty() || std::mem::replace(&mut state.is_called, true) {
            return;
        }
        let is_led = state.is_led;
        drop(state);
        if !is_led {
            self.called.notify_one();
        }
    }

    /// Takes what waits, at most `most`, to be written by the calling thread, which then gives back the lead. None: nothing
    /// waits, or another writes and the writer's thread goes on after it.
    pub(super) fn lead(&self, most: usize) -> Option<Vec<Entry>> {
        let mut state = self.lock();
        if state.waiting.is_empty() {
            return None;
        }
        if state.is_led || state.open.is_some() {
            state.is_called = true;
            return None;
        }
        Some(state.lead(most))
    }

    /// What was taken is settled, but for what is still open: the writer's thread ends it, and writes what it was called
    /// for meanwhile.
    pub(super) fn give_back(&self, open: Option<Open>) {
        let mut state = self.lock();
        if open.is_none() {
            state.taken.clear();
        }
        state.is_led = false;
        let is_wanted = open.is_some() || state.is_called || state.is_closed;
        state.open = open.filter(|_| !state.has_ended);
        drop(state);
        if is_wanted {
            self.called.notify_one();
        }
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

    /// As [`Queue::give_back`], for the writer's thread, which looks by itself for what it was called for.
    pub(super) fn rest(&self) {
        let mut state = self.lock();
        state.taken.clear();
        state.is_led = false;
    }

    /// For the writer's thread, which has the lead from then on: takes what waits and is called for, at most `most`, and
    /// waits for that at most `idle`. After as long, and when the queue closes, it takes what nobody called for as well.
    pub(super) fn take(&self, most: usize, idle: Duration) -> Work {
        let mut until = Instant::now() + idle;
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if state.is_led && !state.has_ended {
                // Whoever writes holds the slot longer with it.
                until = now + idle;
            } else if let Some(open) = state.open.take() {
                state.is_led = true;
                return Work::Write(open);
            } else if !state.waiting.is_empty()
                && (state.is_called || state.is_closed || until <= now)
            {
                return Work::Write(state.lead(most).into());
            } else if state.is_closed || until <= now {
                state.is_led = true;
                return match state.is_closed {
                    true => Work::End,
                    false => Work::Idle,
                };
            }
            state = self
                .called
                .wait_timeout(state, until.saturating_duration_since(now))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Takes no more; what waits is still written.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.called.notify_all();
    }

    /// The writer has ended, or is left behind: whatever still waits has failed.
    pub(super) fn end(&self) -> usize {
        let mut state = self.lock();
        state.is_closed = true;
        state.has_ended = true;
        let mut left: Vec<Ticket> = state.waiting.drain(..).map(|entry| entry.ticket).collect();
        left.append(&mut state.taken);
        state.open = None;
        drop(state);
        self.called.notify_all();
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
        state.is_called &= !state.waiting.is_empty();
        state.late += u64::try_from(tickets.len()).unwrap_or(u64::MAX);
        drop(state);
        Some(settle(&tickets, Settlement::Failed(Reason::Late)))
    }
}

/// Settles each; returns how many callbacks panicked.
pub(super) fn settle(tickets: &[Ticket], settlement: Settlement) -> usize {
    tickets.iter().map(|ticket| ticket.settle(settlement)).sum()
}
