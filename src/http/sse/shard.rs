//! One stream thread: it serves all readers of its runs.

use super::access::{Round, ToAccess};
use super::command::Command;
use super::followed::Followed;
use super::format::End;
use super::options::Options;
use super::{reader::Reader, rights};
use crate::error::{Error, Result};
use crate::ids::Clock;
use crate::runtime::progress::feed::{self, Delta, Hint};
use crate::store::events::StoredEvent;
use crate::store::{Store, events};
use crossbeam_channel::{Receiver, RecvTimeoutError, select};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Events read with one query, at most.
const PAGE: i64 = 200;

/// A page ends with the event that exceeds this many bytes.
const PAGE_BYTES: i64 = 128 * 1024;

/// Pause after a run could not be read.
const PAUSE: Duration = Duration::from_millis(250);

/// How often slow readers are tried again.
const RETRY: Duration = Duration::from_millis(25);

/// How often every reader is checked.
const SWEEP: Duration = Duration::from_millis(500);

pub(super) struct Shard {
    pub(super) access: Option<ToAccess>,
    options: Options,
    store: Store,
    clock: Clock,
    feed: feed::Shard,
    runs: HashMap<Uuid, Followed>,
    /// Runs with work: to be read, or with slow readers.
    restless: HashSet<Uuid>,
    /// When a run last could not be read.
    failed_at: Option<Instant>,
    open: Arc<AtomicUsize>,
    log: slog::Logger,
}

impl Shard {
    pub(super) fn new(
        options: Options,
        store: Store,
        clock: Clock,
        feed: feed::Shard,
        open: Arc<AtomicUsize>,
        log: slog::Logger,
    ) -> Self {
        Self {
            access: None,
            options,
            store,
            clock,
            feed,
            runs: HashMap::new(),
            restless: HashSet::new(),
            failed_at: None,
            open,
            log,
        }
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        let (mut swept_at, mut rechecked_at) = (Instant::now(), Instant::now());
        loop {
            let wait = if self.restless.is_empty() {
                SWEEP
            } else {
                RETRY
            };
            match self.wait(commands, wait) {
                Ok(()) => {}
                Err(Stopped) => break,
            }
            self.serve_restless();
            if swept_at.elapsed() >= SWEEP {
                swept_at = Instant::now();
                self.sweep();
            }
            if rechecked_at.elapsed() >= self.options.recheck_every {
                rechecked_at = Instant::now();
                self.ask_again();
                let moment = self.options.session_limits.at(self.clock.now());
                let ended = rights::end_revoked(&self.store, &mut self.runs, moment);
                match ended {
                    Ok(runs) => self.restless.extend(runs),
                    Err(error) => {
                        crate::warn_unless!(self.store.is_away(), self.log, "Open streams' tokens could not be looked up; trying again"; crate::log::ErrorValue(&error))
                    }
                }
            }
        }
        for followed in self.runs.values_mut() {
            for reader in &mut followed.readers {
                reader.out.end(End::Stopping);
                reader.out.flush();
            }
        }
    }

    /// Handles what has arrived, waiting at most `wait` for it.
    fn wait(&mut self, commands: &Receiver<Command>, wait: Duration) -> Result<(), Stopped> {
        let hints = self.feed.hints().clone();
        let first = select! {
            recv(commands) -> command => Arrival::Command(command.map_err(|_| Stopped)?),
            recv(hints) -> hint => Arrival::Hint(hint.map_err(|_| Stopped)?),
            default(wait) => return Ok(()),
        };
        match first {
            Arrival::Command(command) => self.on_command(command)?,
            Arrival::Hint(hint) => self.on_hint(hint),
        }
        // More of what has arrived, bounded, so that the sweep is not starved.
        for _ in 0..256 {
            match hints.recv_timeout(Duration::ZERO) {
                Ok(hint) => self.on_hint(hint),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(Stopped),
            }
        }
        for command in commands.try_iter().take(256) {
            self.on_command(command)?;
        }
        Ok(())
    }

    fn on_command(&mut self, command: Command) -> Result<(), Stopped> {
        match command {
            Command::Join(reader) => self.join(*reader),
            Command::Moved { run_id, seq } => self.moved(run_id, Some(seq)),
            Command::Text(delta) => self.text(&delta),
            Command::Refused { run_id, token_id } => self.refuse(run_id, token_id),
            Command::ReadAgain => self.read_again(),
            Command::Stop => return Err(Stopped),
        }
        Ok(())
    }

    fn join(&mut self, reader: Reader) {
        let run = reader.may.run();
        let (run_id, last_seq) = (run.run_id, run.last_seq);
        self.open.fetch_add(1, Ordering::Relaxed);
        if !self.runs.contains_key(&run_id) {
            self.feed.follow(run_id);
        }
        let followed = self.runs.entry(run_id).or_insert_with(|| Followed {
            readers: Vec::new(),
            newest: last_seq,
            moved: false,
        });
        followed.newest = followed.newest.max(last_seq);
        followed.readers.push(reader);
        if let Err(error) = self.backfill(run_id) {
            self.note(run_id, &error);
        }
        self.restless.insert(run_id);
    }

    /// Gives the new readers of a run the existing events.
    fn backfill(&mut self, run_id: Uuid) -> Result<()> {
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return Ok(());
        };
        let mut new = Vec::new();
        for (index, reader) in followed.readers.iter_mut().enumerate() {
            if reader.is_new() {
                if reader.seq > 0 {
                    let mut session = self.store.session()?;
                    let last = events::last_step(&mut session, &reader.may, reader.seq)?;
                    reader.begins(last.as_ref());
                }
                new.push(index);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        self.fill(run_id, &new, None)
    }

    fn on_hint(&mut self, hint: Hint) {
        match hint {
            Hint::Changed(run_id) => self.moved(run_id, None),
            Hint::Events(run_id, events) => self.committed(run_id, &events),
            Hint::Delta(delta) => self.text(&delta),
        }
    }

    /// The run has an event of this number, or some new one.
    fn moved(&mut self, run_id: Uuid, seq: Option<i64>) {
        if let Some(followed) = self.runs.get_mut(&run_id)
            && seq.is_none_or(|seq| seq > followed.newest)
        {
            followed.moved |= seq.is_none();
            followed.newest = followed.newest.max(seq.unwrap_or(0));
            self.restless.insert(run_id);
        }
    }

    /// Fresh events from their writer. They are passed on if they follow directly; otherwise they
    /// are read.
    fn committed(&mut self, run_id: Uuid, events: &[StoredEvent]) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return;
        };
        match self.runs.get_mut(&run_id) {
            Some(followed) if !followed.moved && followed.newest + 1 == first.seq => {
                for event in events {
                    followed.deliver(event);
                }
                self.restless.insert(run_id);
            }
            _ => self.moved(run_id, Some(last.seq)),
        }
    }

    fn text(&mut self, delta: &Delta) {
        if let Err(error) = self.try_text(delta) {
            self.note(delta.run_id, &error);
            self.restless.insert(delta.run_id);
        }
    }

    fn try_text(&mut self, delta: &Delta) -> Result<()> {
        let run_id = delta.run_id;
        // Events before the text come first. The run stays restless: `serve_restless` decides.
        if self.restless.contains(&run_id) && !self.is_pausing() {
            self.catch_up(run_id)?;
        }
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return Ok(());
        };
        let (mut missing, unknown) = followed.say(delta);
        if unknown && !self.is_pausing() {
            self.moved(run_id, None);
            self.catch_up(run_id)?;
            let followed = self.runs.get_mut(&run_id);
            missing = followed.map_or_else(Vec::new, |followed| followed.say(delta).0);
        }
        if missing.is_empty() || self.is_pausing() {
            return Ok(());
        }
        if let Some(followed) = self.runs.get_mut(&run_id) {
            missing.retain(|index| followed.readers[*index].may_fill());
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.fill(run_id, &missing, Some(delta))
    }

    fn read_again(&mut self) {
        let counts: Vec<(Uuid, usize)> = self
            .runs
            .iter()
            .map(|(run_id, followed)| (*run_id, followed.readers.len()))
            .collect();
        for (run_id, readers) in counts {
            let readers: Vec<usize> = (0..readers).collect();
            self.moved(run_id, None);
            if let Err(error) = self.fill(run_id, &readers, None) {
                self.note(run_id, &error);
            }
        }
    }

    /// Gives readers the events and text that they miss, then the piece if there is one.
    fn fill(&mut self, run_id: Uuid, readers: &[usize], delta: Option<&Delta>) -> Result<()> {
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return Ok(());
        };
        followed.moved = true;
        followed.flush();
        let mut missing = readers
            .iter()
            .filter_map(|index| followed.readers.get(*index));
        let may_stream = missing.any(|reader| !reader.may.run().status.is_finished());
        let Some(reader) = followed.next().filter(|_| may_stream) else {
            // A reader of a finished run gets its events alone; one that is behind gets no text.
            return self.welcome(run_id, readers, &[]);
        };
        // The text is never newer than the events, so the events of its step are among them.
        let (mut session, after) = (self.store.session()?, reader.seq);
        let (page, text) =
            events::after_with_text(&mut session, &reader.may, after, PAGE, PAGE_BYTES)?;
        drop(session);
        followed.take(after, &page)?;
        let mut pieces: Vec<Delta> = text.into_iter().map(Delta::from).collect();
        pieces.extend(delta.cloned());
        self.welcome(run_id, readers, &pieces)
    }

    fn welcome(&mut self, run_id: Uuid, readers: &[usize], pieces: &[Delta]) -> Result<()> {
        self.catch_up(run_id)?;
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return Ok(());
        };
        for index in readers {
            let Some(reader) = followed.readers.get_mut(*index) else {
                continue;
            };
            reader.welcome();
            for piece in pieces {
                reader.out.flush();
                reader.text(piece);
            }
            reader.out.flush();
        }
        Ok(())
    }

    /// Serves the runs with work.
    fn serve_restless(&mut self) {
        for run_id in self.feed.take_missed() {
            self.moved(run_id, None);
        }
        for run_id in std::mem::take(&mut self.restless) {
            if !self.is_pausing()
                && let Err(error) = self.backfill(run_id).and_then(|()| self.catch_up(run_id))
            {
                self.note(run_id, &error);
            }
            self.drop_over(run_id);
            if self.runs.get(&run_id).is_some_and(Followed::is_restless) {
                self.restless.insert(run_id);
            }
        }
    }

    /// Reads the events that any reader of the run misses, and passes them on while there is space.
    fn catch_up(&mut self, run_id: Uuid) -> Result<()> {
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return Ok(());
        };
        followed.flush();
        while let Some(reader) = followed.next() {
            let (mut session, after) = (self.store.session()?, reader.seq);
            let page = events::after(&mut session, &reader.may, after, PAGE, PAGE_BYTES)?;
            drop(session);
            followed.take(after, &page)?;
        }
        followed.end_finished();
        Ok(())
    }

    fn sweep(&mut self) {
        let now = self.clock.now();
        let runs: Vec<Uuid> = self.runs.keys().copied().collect();
        for run_id in runs {
            let Some(followed) = self.runs.get_mut(&run_id) else {
                continue;
            };
            for reader in &mut followed.readers {
                if reader.may.ends_at().is_some_and(|end| end <= now) {
                    reader.out.end(End::Credential);
                } else {
                    reader.out.comment(self.options.comment_every);
                }
            }
            self.drop_over(run_id);
        }
    }

    /// Ends the streams of a run that this token reads.
    fn refuse(&mut self, run_id: Uuid, token_id: Uuid) {
        if let Some(followed) = self.runs.get_mut(&run_id) {
            rights::end_refused(followed, token_id);
            self.restless.insert(run_id);
        }
    }

    /// Requests a check of every reader's rights, unless the last round is still running.
    fn ask_again(&mut self) {
        let Some(access) = &self.access else { return };
        if Arc::strong_count(&access.pending) > 1 {
            slog::warn!(
                self.log,
                "Readers of open streams are still being checked; the next check comes later"
            );
            return;
        }
        let readers = rights::to_check_again(self.runs.values());
        if readers.is_empty() {
            return;
        }
        let round = Round {
            readers,
            shard: access.shard,
            pending: Arc::clone(&access.pending),
        };
        // The channel has space for a round of each stream thread; it closes when the server stops.
        let _ = access.rounds.try_send(round);
    }

    /// Drops finished and stalled readers, and runs without readers.
    fn drop_over(&mut self, run_id: Uuid) {
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return;
        };
        let dropped = followed.drop_over(self.options.patience);
        self.open.fetch_sub(dropped, Ordering::Relaxed);
        if followed.readers.is_empty() {
            self.runs.remove(&run_id);
            self.feed.unfollow(run_id);
        }
    }

    /// The database failed a moment ago: wait.
    fn is_pausing(&self) -> bool {
        self.failed_at.is_some_and(|at| at.elapsed() < PAUSE)
    }

    fn note(&mut self, run_id: Uuid, error: &Error) {
        self.failed_at = Some(Instant::now());
        let tenant_id = self.runs.get(&run_id).and_then(Followed::tenant_id);
        crate::warn_unless!(self.store.is_away(), self.log, "A run's events could not be read; trying again";
            "tenantId" => tenant_id.map(|id| id.to_string()), "runId" => %run_id, crate::log::ErrorValue(error));
    }
}

/// The thread is to end.
struct Stopped;

enum Arrival {
    Command(Command),
    Hint(Hint),
}
