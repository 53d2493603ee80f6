//! The writer commits the waiting decisions as one batch, without a timer. Whoever leads writes: a
//! request thread for one attempt, or the thread `audit-writer`, which also finishes what such an
//! attempt leaves open.
//!
//! Guarantees: a ticket succeeds only after its commit was confirmed or was found in the database.
//! A decision is written once. A decision that the database refuses fails alone, not with its
//! batch.

use super::batch::Entry;
use super::batch::{Doubt, Open};
use super::chain;
use super::queue::{Queue, Work, resolve};
use super::stats::{Counters, Ending};
use super::ticket::{Reason, Resolution, Ticket};
use crate::error::{Code, Error, Result};
use crate::store::audit::{self as rows, Row, Slot};
use crate::store::{Session, Store, sql_state};
use postgres::error::SqlState;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use time::Date;

/// Decisions in one transaction, at most. The statement unpacks arrays element by element, and each
/// element costs more than the one before.
const BATCH: usize = 128;
/// Pause between attempts while the database is unreachable.
const PAUSE: Duration = Duration::from_millis(50);
/// Pause between two log records about an unreachable database.
const COMPLAIN: Duration = Duration::from_secs(5);
/// Attempts to claim a slot while other writers claim theirs.
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

/// The writer's slot, as far as it knows.
#[derive(Default)]
pub(super) struct Held {
    slot: Option<Slot>,
    /// Slot and epoch at the time the connection broke. The writer claims the slot again with a new
    /// epoch, so that the old connection can commit nothing more.
    before: Option<(i32, i64)>,
    /// The last month whose partitions were checked.
    month: Option<Date>,
    /// When the log last said that the database is unreachable.
    complained_at: Option<Instant>,
}

/// The result of one step.
enum Step {
    /// Every ticket has its outcome.
    Done,
    /// The next step may follow immediately.
    Next,
    /// The database is unreachable.
    Wait(Error),
    /// The database refuses the batch.
    Refused(Error),
}

/// The result of an attempt.
enum Attempt {
    Committed,
    /// Nothing was written: another writer has the slot.
    SlotLost,
    /// It is not known yet whether the commit happened.
    Unknown(Doubt, Error),
    /// Nothing was written: the database is unreachable.
    Away(Error),
    /// Nothing was written: the database's disk is full.
    Full(Error),
    /// Nothing was written: the database refuses the batch.
    Refused(Error),
}

/// A writer that several threads may lead, one at a time. Dropped when its thread ends.
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

    /// Runs until the queue is closed and empty, or the stop's deadline has passed.
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

/// Writes the waiting decisions on the calling thread, unless another thread leads. Makes one
/// attempt; the writer's thread finishes the rest. If this panics, the leadership is never given
/// back and the watchdog reports the audit as stuck.
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

    /// Writes these decisions, retrying until every ticket has its outcome.
    fn write(&mut self, mut open: Open) {
        loop {
            match self.step(&mut open) {
                Step::Done => return,
                Step::Next => {}
                Step::Wait(error) => self.wait(&error),
                Step::Refused(error) => return self.refused(open.entries, &error),
            }
        }
    }

    /// Makes one attempt, and returns the decisions that have no outcome yet.
    fn attempt_once(&mut self, entries: Vec<Entry>) -> Option<Open> {
        let mut open = Open::from(entries);
        match self.step(&mut open) {
            Step::Wait(error) => self.tell_away(&error),
            Step::Refused(error) if !is_split_for(&open.entries, &error) => {
                self.fail(&open.entries, Reason::Refused, &error);
            }
            // During a stop the writer's thread decides about what is left.
            Step::Done | Step::Next | Step::Refused(_) => {}
        }
        (!open.is_resolved()).then_some(open)
    }

    fn step(&mut self, open: &mut Open) -> Step {
        self.counters.turn.begin();
        if let Some(doubt) = &open.doubt {
            match self.was_committed(doubt) {
                Ok(true) => return self.committed(&open.entries),
                Ok(false) => open.doubt = None,
                Err(_) if self.is_over() || open.is_resolved() => return Step::Done,
                Err(error) => return Step::Wait(error),
            }
        }
        open.entries.retain(|entry| !entry.ticket.is_resolved());
        if open.entries.is_empty() || self.is_over() {
            return Step::Done;
        }
        match self.attempt(&mut open.entries) {
            Attempt::Committed => self.committed(&open.entries),
            Attempt::SlotLost => {
                slog::warn!(
                    self.log,
                    "Another writer has taken this audit writer's slot; claiming a new one"
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
                Step::Done
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
        // The server itself answered: the statement was rolled back, and the connection is usable.
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

    /// Drops the connection: a statement may still be running on it.
    fn let_go(&mut self) {
        if let Some(slot) = self.held.slot.take() {
            self.held.before = Some((slot.slot, slot.epoch));
        }
    }

    /// Returns a connection, and the slot as the database has it.
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
            // The old slot was kept until now, because this answer may have got lost too.
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
            "no audit slot could be claimed: other writers claimed each one first",
        ))
    }

    /// Whether the batch was committed. The slot gets a new epoch first, so the answer is final.
    fn was_committed(&mut self, doubt: &Doubt) -> Result<bool> {
        let asked = self
            .ready()
            .and_then(|(mut session, _)| rows::has_batch(&mut session, doubt.slot, &doubt.batch));
        if asked.is_err() {
            self.let_go();
        }
        asked
    }

    /// Makes the month's partitions if they are missing. Usually the keeper has made them; this
    /// covers a clock that jumped and a keeper that cannot.
    fn look_after(&mut self, session: &mut Session, today: Date) {
        let month = today.replace_day(1).unwrap_or(today);
        if self.held.month == Some(month) {
            return;
        }
        match rows::attach_partitions(session, today) {
            Ok(()) => self.held.month = Some(month),
            Err(error) => {
                crate::warn_unless!(self.store.is_away(), self.log, "The audit's partitions could not be made"; crate::log::ErrorValue(&error));
            }
        }
    }

    fn wait(&mut self, error: &Error) {
        self.tell_away(error);
        std::thread::sleep(PAUSE);
    }

    fn tell_away(&mut self, error: &Error) {
        if self.may_complain() {
            crate::warn_unless!(self.store.is_away(), self.log, "The audit cannot be written; retrying"; crate::log::ErrorValue(error));
        }
    }

    fn committed(&self, entries: &[Entry]) -> Step {
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.counters.committed(count);
        self.noted(resolve(&tickets(entries), Resolution::Committed));
        Step::Done
    }

    /// Finds the decision that the database refuses.
    fn refused(&mut self, mut entries: Vec<Entry>, error: &Error) {
        if is_split_for(&entries, error) {
            let second = entries.split_off(entries.len() / 2);
            self.write(entries.into());
            return self.write(second.into());
        }
        self.fail(&entries, Reason::Refused, error);
    }

    /// Fails these decisions immediately: waiting would not help them.
    fn fail(&mut self, entries: &[Entry], reason: Reason, error: &Error) {
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.counters.failed.fetch_add(count, Ordering::Relaxed);
        if self.may_complain() {
            slog::error!(self.log, "The database refuses decisions; their requests fail";
                "decisions" => count, crate::log::ErrorValue(error));
        }
        self.noted(resolve(&tickets(entries), Resolution::Failed(reason)));
    }

    /// Whether the next log record is due.
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
            // The lease is renewed with the next decision.
            Err(error) => {
                slog::debug!(self.log, "The lease of the audit's slot could not be renewed"; crate::log::ErrorValue(&error));
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
            crate::warn_unless!(self.store.is_away(), self.log, "The audit's slot could not be freed; it is free when its lease runs out"; crate::log::ErrorValue(&error));
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

/// Whether the batch may succeed without the decision that this error is about.
fn is_split_for(entries: &[Entry], error: &Error) -> bool {
    entries.len() > 1 && is_about_a_row(error)
}

/// Whether the error concerns the values, such as a character that PostgreSQL cannot store, and not
/// the table.
fn is_about_a_row(error: &Error) -> bool {
    sql_state(error).map(SqlState::code).is_some_and(|code| {
        ["22", "23", "54"]
            .iter()
            .any(|class| code.starts_with(class))
    })
}
