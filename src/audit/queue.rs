//! The bounded queue of decisions that wait to be written, in order. A decision that waits too long
//! fails.
//!
//! Group commit: one thread at a time leads, and writes all decisions that wait when it starts. The
//! leader is a request thread that finds no other leader, or the writer's thread.
//!
//! Not on `store::db::group_commit`: there a part that has waited long starts a second write, and a
//! writer that panics hands on to the next. A chain has one writer at a time in any case, keeps a
//! batch whose commit is in doubt, and fails a decision at its own deadline.

use super::batch::Entry;
use super::batch::Open;
use super::ticket::{Reason, Resolution, Ticket};
use crate::error::Result;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The next task of the writer's thread.
pub(super) enum Work {
    /// Write these.
    Write(Open),
    /// Nothing came within the idle time.
    Idle,
    /// The queue is closed and empty.
    End,
}

pub(super) struct Queue {
    limit: usize,
    state: Mutex<State>,
    /// Signalled when the writer's thread has work, or the queue closes.
    called: Condvar,
    /// Signalled when the watch has a deadline to observe, or the queue ends.
    watched: Condvar,
}

/// The queue's metrics.
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
    /// Tickets of the leader's batch that have no outcome yet.
    taken: Vec<Ticket>,
    /// A batch that a request thread started and the writer's thread must finish.
    open: Option<Open>,
    /// A thread leads: it writes, or renews the slot's lease.
    is_led: bool,
    /// The writer's thread is to write the waiting decisions.
    is_called: bool,
    late: u64,
    overflowed: u64,
    /// The watch sleeps until a decision comes.
    is_unwatched: bool,
    is_closed: bool,
    has_ended: bool,
}

impl State {
    /// Takes the waiting decisions, `most` at most.
    fn lead(&mut self, most: usize) -> Vec<Entry> {
        let count = most.min(self.waiting.len());
        let entries: Vec<Entry> = self.waiting.drain(..count).collect();
        self.taken = entries.iter().map(|entry| entry.ticket.clone()).collect();
        // The rest is more than one batch; the writer's thread writes it next.
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

    /// Adds a decision. It is written once a thread leads or the writer's thread is called.
    ///
    /// # Errors
    /// `audit-unavailable`: the queue is full or closed.
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

    /// Wakes the writer's thread to write the waiting decisions, after the present leader if there
    /// is one.
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

    /// Makes the calling thread the leader of at most `most` waiting decisions; it must call
    /// [`Queue::give_back`]. None: nothing waits, or another thread leads and the writer's thread
    /// follows it.
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

    /// Ends the leadership. If `open` is left, the writer's thread finishes it.
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
        let taken = state.taken.iter().filter(|ticket| !ticket.is_resolved());
        Load {
            waiting: state.waiting.len(),
            taken: taken.count(),
            late: state.late,
            overflowed: state.overflowed,
        }
    }

    /// As [`Queue::give_back`], for the writer's thread, which looks for further work by itself.
    pub(super) fn rest(&self) {
        let mut state = self.lock();
        state.taken.clear();
        state.is_led = false;
    }

    /// The next task of the writer's thread, which leads from then on. Waits at most `idle` for
    /// decisions that it is called for. After that time, and when the queue closes, it takes all
    /// waiting decisions.
    pub(super) fn take(&self, most: usize, idle: Duration) -> Work {
        let mut until = Instant::now() + idle;
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if state.is_led && !state.has_ended {
                // Writing renews the slot's lease as well.
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

    /// Accepts no more decisions. The waiting ones are still written.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.called.notify_all();
    }

    /// The writer has ended or is abandoned: every decision that still waits has failed.
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
        resolve(&left, Resolution::Failed(Reason::Stopping))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Waits until decisions are late, and fails them. Waiting ones are then never written; those
    /// in the leader's batch may still be. None: the queue has ended.
    pub(super) fn give_up_late(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.has_ended {
                return None;
            }
            let now = Instant::now();
            // The leader's batch is older than the waiting decisions, and each list is in order of
            // age.
            let taken = state.taken.iter().filter(|ticket| !ticket.is_resolved());
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
        let taken = state.taken.iter().filter(|ticket| !ticket.is_resolved());
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
        Some(resolve(&tickets, Resolution::Failed(Reason::Late)))
    }
}

/// Gives each ticket this outcome. Returns how many callbacks panicked.
pub(super) fn resolve(tickets: &[Ticket], resolution: Resolution) -> usize {
    tickets
        .iter()
        .map(|ticket| ticket.resolve(resolution))
        .sum()
}
