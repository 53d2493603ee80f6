//! The writer: commits what waits as one batch, with no timer. It is whoever leads at the moment: a thread that waits for a
//! decision, for one attempt, or the thread `audit-writer`, which also ends what such an attempt leaves open.
//!
//! Guarantees: a ticket is told that its decision is on disk only when its commit was confirmed, or
//! was seen to have happened; a decision is written once; what the database refuses takes no other
//! decision with it.

use super::chain;
use super::queue::{Entry, Queue, Work, settle};
use super::stats::{Counters, Ending};
use super::ticket::{Reason, Settlement, Ticket};
use crate::error::{Code, Error, Result};
use crate::store::audit::{self as rows, Batch, Row, Slot};
use crate::store::{Session, Store, sql_state};
use postgres::error::SqlState;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use time::Date;

/// Decisions in one transaction, at most. The statement asks its arrays for one element after another, which costs the more
/// the further back it stands.
const BATCH: usize = 128;
/// Between two attempts on a database that is away.
const PAUSE: Duration = Duration::from_millis(50);
/// Between two words to the log about a database that is away.
const COMPLAIN: Duration = Duration::from_secs(5);
/// Attempts to make a slot while other writers make theirs.
const CLAIMS: usize = 100;

pub(super) struct Writer {
    pub(super) queue: Arc<Queue>,
    pub(super) store: Store,
    pub(super) counters: Arc<Counters>,
    pub(super) lease: Duration,
    /// A stop waits no longer than this.
    pub(super) stop_by: Arc<Mutex<Option<Instant>>>,
    pub(super) log: slog::Logger,
    pub(super) held: Held,
}

/// What the writer knows of its slot.
#[derive(Default)]
pub(super) struct Held {
    slot: Option<Slot>,
    /// The slot and epoch that it had when its connection broke: to be claimed again, so that
    /// nothing of the old connection can still be committed.
    before: Option<(i32, i64)>,
    /// The last month whose partitions were looked after.
    month: Option<Date>,
    /// When the log was last told that the database is away.
    complained_at: Option<Instant>,
}

/// Decisions that are not settled yet.
pub(super) struct Open {
    entries: Vec<Entry>,
    doubt: Option<Doubt>,
}

impl Open {
    fn is_settled(&self) -> bool {
        self.entries.iter().all(|entry| entry.ticket.is_settled())
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

/// What one step has brought.
enum Step {
    /// Nobody waits for any of them any more.
    Settled,
    /// The next step may be taken at once.
    Next,
    /// The database is away.
    Wait(Error),
    /// It does not take them.
    Refused(Error),
}

/// A batch whose commit was not confirmed.
struct Doubt {
    slot: i32,
    batch: Batch,
}

/// What became of an attempt.
enum Attempt {
    Committed,
    /// Nothing was written: the slot had been lost.
    SlotLost,
    /// It cannot be known yet.
    Unknown(Doubt, Error),
    /// Nothing was written; the database is away.
    Away(Error),
    /// Nothing was written; the database has no room on its disk.
    Full(Error),
    /// Nothing was written: it does not take this.
    Refused(Error),
}

/// A writer that several threads may lead, one at a time. It is gone when its thread has ended.
pub(super) struct Shared {
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    idle: Duration,
    writer: Mutex<Writer>,
}

impl Shared {
    pub(super) fn new(writer: Writer) -> Self {
        Self {
            queue: Arc::clone(&writer.queue),
            counters: Arc::clone(&writer.counters),
            idle: writer.lease / 3,
            writer: Mutex::new(writer),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until the queue is closed and empty, or a stop has waited long enough.
    pub(super) fn run(&self) {
        let _ending = Ending(&self.counters.turn);
        loop {
            let work = self.queue.take(BATCH, self.idle);
            self.counters.turn.begin();
            let mut writer = self.lock();
            match work {
                Work::Write(open) => writer.write(open),
                Work::Idle => writer.renew(),
                Work::End => break,
            }
            if writer.is_over() {
                break;
            }
            drop(writer);
            self.counters.turn.rest();
            self.queue.rest();
        }
        let mut writer = self.lock();
        writer.free();
        writer.noted(self.queue.end());
    }
}

/// Writes what waits on the calling thread, unless another is at it: one attempt. What that leaves open is the writer's
/// thread's, and so is what has been called for meanwhile. A panic leaves the lead where it is, and the audit stuck.
pub(super) fn lead(shared: &Weak<Shared>) {
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let Some(entries) = shared.queue.lead(BATCH) else {
        return;
    };
    let open = shared.lock().attempt_once(entries);
    shared.counters.turn.rest();
    shared.queue.give_back(open);
}

impl Writer {
    fn is_over(&self) -> bool {
        let by = *self
            .stop_by
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        self.queue.has_ended() || by.is_some_and(|by| by <= Instant::now())
    }

    fn lease_seconds(&self) -> f64 {
        self.lease.as_secs_f64()
    }

    /// Writes these, however long it takes, unless nobody waits for them any more.
    fn write(&mut self, mut open: Open) {
        loop {
            match self.step(&mut open) {
                Step::Settled => return,
                Step::Next => {}
                Step::Wait(error) => self.wait(&error),
                Step::Refused(error) => return self.refused(open.entries, &error),
            }
        }
    }

    /// Writes these at once, or gives back what is not settled.
    fn attempt_once(&mut self, entries: Vec<Entry>) -> Option<Open> {
        let mut open = Open::from(entries);
        match self.step(&mut open) {
            Step::Wait(error) => self.tell_away(&error),
            Step::Refused(error) if !is_split_for(&open.entries, &error) => {
                self.fail(&open.entries, Reason::Refused, &error);
            }
            // In the middle of a stop nothing is settled: that is the writer's thread's.
            Step::Settled | Step::Next | Step::Refused(_) => {}
        }
        (!open.is_settled()).then_some(open)
    }

    fn step(&mut self, open: &mut Open) -> Step {
        self.counters.turn.begin();
        if let Some(doubt) = &open.doubt {
            match self.was_committed(doubt) {
                Ok(true) => return self.committed(&open.entries),
                Ok(false) => open.doubt = None,
                Err(_) if self.is_over() || open.is_settled() => return Step::Settled,
                Err(error) => return Step::Wait(error),
            }
        }
        open.entries.retain(|entry| !entry.ticket.is_settled());
        if open.entries.is_empty() || self.is_over() {
            return Step::Settled;
        }
        match self.attempt(&mut open.entries) {
            Attempt::Committed => self.committed(&open.entries),
            Attempt::SlotLost => {
                slog::warn!(
                    self.log,
                    "The slot of this audit writer was taken by another; it takes a new one"
                );
                Step::Next
            }
            Attempt::Unknown(doubt, error) => {
                open.doubt = Some(doubt);
                Step::Wait(error)
            }
            Attempt::Away(error) => Step::Wait(error),
            Attempt::Full(error) => {
                self.fail(&open.entries, Reason::DiskFull, &error);
                Step::Settled
            }
            Attempt::Refused(error) => Step::Refused(error),
        }
    }

    /// One transaction.
    fn attempt(&mut self, entries: &mut [Entry]) -> Attempt {
        let began = Instant::now();
        let (mut session, slot) = match self.ready() {
            Ok(ready) => ready,
            Err(error) => return self.fault(error, None),
        };
        let mut decisions: Vec<&mut Row> = entries.iter_mut().map(|entry| &mut entry.row).collect();
        let (after, batches) = chain::stamp(&slot, &mut decisions);
        if let Some(last) = batches.last() {
            self.look_after(&mut session, last.decided_at.date());
        }
        let written = rows::write(
            &mut session,
            &after,
            &batches,
            &decisions,
            self.lease_seconds(),
        );
        match written {
            Ok(true) => {
                self.held.slot = Some(after);
                self.counters.took(began.elapsed());
                Attempt::Committed
            }
            Ok(false) => {
                self.held.slot = None;
                self.held.before = None;
                Attempt::SlotLost
            }
            Err(error) => {
                let doubt = batches.into_iter().next().map(|batch| Doubt {
                    slot: slot.slot,
                    batch,
                });
                self.fault(error, doubt)
            }
        }
    }

    fn fault(&mut self, error: Error, doubt: Option<Doubt>) -> Attempt {
        // The server's own word, so the statement was rolled back and its connection is sound.
        if error.is_disk_full() {
            return Attempt::Full(error);
        }
        let away = error.code() == Code::DatabaseUnavailable;
        if away {
            self.let_go();
        }
        match doubt {
            Some(doubt) if away => Attempt::Unknown(doubt, error),
            None if away => Attempt::Away(error),
            _ => Attempt::Refused(error),
        }
    }

    /// The connection is not to be trusted: what it was doing may still be going on.
    fn let_go(&mut self) {
        if let Some(slot) = self.held.slot.take() {
            self.held.before = Some((slot.slot, slot.epoch));
        }
    }

    /// A connection, and the slot as the database has it.
    fn ready(&mut self) -> Result<(Session, Slot)> {
        let mut session = self.store.session()?;
        if let Some(slot) = &self.held.slot {
            return Ok((session, slot.clone()));
        }
        let slot = self.claim(&mut session)?;
        slog::info!(self.log, "Writing decisions"; "slot" => slot.slot, "position" => slot.position);
        self.held.slot = Some(slot.clone());
        Ok((session, slot))
    }

    fn claim(&mut self, session: &mut Session) -> Result<Slot> {
        let lease = self.lease_seconds();
        if let Some(before) = self.held.before {
            let again = rows::claim_again(session, before, lease)?;
            // Kept until now: the answer may get lost, and then it is lost for good.
            self.held.before = None;
            if let Some(slot) = again {
                return Ok(slot);
            }
        }
        for _ in 0..CLAIMS {
            if let Some(slot) = rows::claim(session, lease)? {
                return Ok(slot);
            }
        }
        Err(Error::database_unavailable(
            "no slot could be claimed: other writers were always faster",
        ))
    }

    /// Whether the batch is written after all. The slot has a new epoch first, so that the answer
    /// is final.
    fn was_committed(&mut self, doubt: &Doubt) -> Result<bool> {
        let asked = self
            .ready()
            .and_then(|(mut session, _)| rows::has_batch(&mut session, doubt.slot, &doubt.batch));
        if asked.is_err() {
            self.let_go();
        }
        asked
    }

    /// Partitions are made ahead by the keeper; this is for a clock that jumped, and for the turn
    /// of the month on a server whose keeper cannot.
    fn look_after(&mut self, session: &mut Session, today: Date) {
        let month = today.replace_day(1).unwrap_or(today);
        if self.held.month == Some(month) {
            return;
        }
        match rows::attach_partitions(session, today) {
            Ok(()) => self.held.month = Some(month),
            Err(error) => {
                slog::warn!(self.log, "The partitions of the audit could not be looked after"; crate::log::ErrorValue(&error));
            }
        }
    }

    fn wait(&mut self, error: &Error) {
        self.tell_away(error);
        std::thread::sleep(PAUSE);
    }

    fn tell_away(&mut self, error: &Error) {
        if self.may_complain() {
            slog::warn!(self.log, "The audit cannot be written; trying again"; crate::log::ErrorValue(error));
        }
    }

    fn committed(&self, entries: &[Entry]) -> Step {
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.counters.committed(count);
        self.noted(settle(&tickets(entries), Settlement::Committed));
        Step::Settled
    }

    /// Finds the decision that the database does not take.
    fn refused(&mut self, mut entries: Vec<Entry>, error: &Error) {
        if is_split_for(&entries, error) {
            let second = entries.split_off(entries.len() / 2);
            self.write(entries.into());
            return self.write(second.into());
        }
        self.fail(&entries, Reason::Refused, error);
    }

    /// Their requests are told at once: to wait would not help them.
    fn fail(&mut self, entries: &[Entry], reason: Reason, error: &Error) {
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.counters.failed.fetch_add(count, Ordering::Relaxed);
        if self.may_complain() {
            slog::error!(self.log, "The database does not take decisions; their requests fail";
                "decisions" => count, crate::log::ErrorValue(error));
        }
        self.noted(settle(&tickets(entries), Settlement::Failed(reason)));
    }

    /// Whether it is time for another word to the log.
    fn may_complain(&mut self) -> bool {
        let complained = self.held.complained_at;
        let may = complained.is_none_or(|at| at.elapsed() > COMPLAIN);
        if may {
            self.held.complained_at = Some(Instant::now());
        }
        may
    }

    fn renew(&mut self) {
        let Some(held) = self.held.slot.as_ref().map(|slot| (slot.slot, slot.epoch)) else {
            return;
        };
        let lease = self.lease_seconds();
        let renewed = self
            .store
            .session()
            .and_then(|mut session| rows::renew(&mut session, held, lease));
        match renewed {
            Ok(true) => {}
            Ok(false) => self.held.slot = None,
            // It is asked again with the next decision.
            Err(error) => {
                slog::debug!(self.log, "The audit's slot could not be held longer"; crate::log::ErrorValue(&error));
            }
        }
    }

    fn free(&mut self) {
        self.let_go();
        let Some(held) = self.held.before else {
            return;
        };
        let freed = self
            .store
            .session()
            .and_then(|mut session| rows::free(&mut session, held));
        if let Err(error) = freed {
            slog::warn!(self.log, "The audit's slot stays until its lease has run out"; crate::log::ErrorValue(&error));
        }
    }

    fn noted(&self, panics: usize) {
        if panics > 0 {
            slog::error!(self.log, "Callbacks of the audit panicked"; "panics" => panics);
        }
    }
}

fn tickets(entries: &[Entry]) -> Vec<Ticket> {
    entries.iter().map(|entry| entry.ticket.clone()).collect()
}

/// Whether the others of them may be taken when this one is found.
fn is_split_for(entries: &[Entry], error: &Error) -> bool {
    entries.len() > 1 && is_about_a_row(error)
}

/// The database says something of the values, such as a character that it cannot store, and not of
/// the table.
fn is_about_a_row(error: &Error) -> bool {
    sql_state(error).map(SqlState::code).is_some_and(|code| {
        ["22", "23", "54"]
            .iter()
            .any(|class| code.starts_with(class))
    })
}
