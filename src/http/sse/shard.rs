//! One stream thread: the readers of its runs, served together.

use super::Options;
use super::format::{self, End};
use super::reader::{Reader, Standing};
use crate::error::Result;
use crate::ids::Clock;
use crate::runtime::events::Event;
use crate::runtime::feed::{self, Delta, Hint};
use crate::store::{Store, deltas, events, tokens};
use crossbeam_channel::{Receiver, RecvTimeoutError, select};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Events read at once.
const PAGE: i64 = 200;

/// How often readers that are behind are tried again.
const RETRY: Duration = Duration::from_millis(25);

/// How often every reader is looked at.
const SWEEP: Duration = Duration::from_millis(500);

pub(super) enum Command {
    /// A reader comes.
    Join(Box<Reader>),
    /// A run has events up to this number, as the tail saw.
    Moved { run_id: Uuid, seq: i64 },
    /// The tail saw text.
    Text(Delta),
    /// The tail begins to look: what came before is to be read again.
    ReadAgain,
    /// The thread is to end.
    Stop,
}

/// A run and its readers.
struct Followed {
    readers: Vec<Reader>,
    /// The newest event known to stand.
    newest: i64,
}

pub(super) struct Shard {
    options: Options,
    store: Store,
    clock: Clock,
    feed: feed::Shard,
    runs: HashMap<Uuid, Followed>,
    /// Runs with something to do: to be read again, or with readers that are behind.
    restless: HashSet<Uuid>,
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
            options,
            store,
            clock,
            feed,
            runs: HashMap::new(),
            restless: HashSet::new(),
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
            self.calm();
            if swept_at.elapsed() >= SWEEP {
                swept_at = Instant::now();
                self.sweep();
            }
            if rechecked_at.elapsed() >= self.options.recheck_every {
                rechecked_at = Instant::now();
                if let Err(error) = self.recheck() {
                    slog::warn!(self.log, "Open streams' tokens could not be looked up; trying again"; "error" => %error);
                }
            }
        }
        for followed in self.runs.values_mut() {
            for reader in &mut followed.readers {
                reader.end(End::Stopping);
                reader.flush();
            }
        }
    }

    /// Takes what has arrived, waiting for it at most `wait`.
    fn wait(&mut self, commands: &Receiver<Command>, wait: Duration) -> Result<(), Stopped> {
        let hints = self.feed.hints().clone();
        let first = select! {
            recv(commands) -> command => Arrival::Command(command.map_err(|_| Stopped)?),
            recv(hints) -> hint => Arrival::Hint(hint.map_err(|_| Stopped)?),
            default(wait) => return Ok(()),
        };
        match first {
            Arrival::Command(command) => self.obey(command)?,
            Arrival::Hint(hint) => self.heed(hint),
        }
        // What else is there, bounded, so that the sweep gets its turn.
        for _ in 0..256 {
            match hints.recv_timeout(Duration::ZERO) {
                Ok(hint) => self.heed(hint),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(Stopped),
            }
        }
        for command in commands.try_iter().take(256) {
            self.obey(command)?;
        }
        Ok(())
    }

    fn obey(&mut self, command: Command) -> Result<(), Stopped> {
        match command {
            Command::Join(reader) => self.join(*reader),
            Command::Moved { run_id, seq } => self.moved(run_id, Some(seq)),
            Command::Text(delta) => self.text(&delta),
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
        });
        followed.newest = followed.newest.max(last_seq);
        followed.readers.push(reader);
        if let Err(error) = self.greet(run_id) {
            self.note(run_id, &error);
        }
        self.restless.insert(run_id);
    }

    /// Gives the newest reader of a run what stands already.
    fn greet(&mut self, run_id: Uuid) -> Result<()> {
        self.catch_up(run_id)?;
        let followed = self.runs.get_mut(&run_id);
        let Some(reader) = followed.and_then(|followed| followed.readers.last_mut()) else {
            return Ok(());
        };
        if reader.may.run().status.is_finished() {
            return Ok(());
        }
        let pieces = deltas::of_run(&mut self.store.session()?, &reader.may)?;
        reader.flush();
        for piece in pieces {
            reader.text(&Delta::from(piece));
            reader.flush();
        }
        Ok(())
    }

    fn heed(&mut self, hint: Hint) {
        match hint {
            Hint::Moved(run_id) => self.moved(run_id, None),
            Hint::Delta(delta) => self.text(&delta),
        }
    }

    fn moved(&mut self, run_id: Uuid, seq: Option<i64>) {
        if let Some(followed) = self.runs.get(&run_id)
            && seq.is_none_or(|seq| seq > followed.newest)
        {
            self.restless.insert(run_id);
        }
    }

    fn text(&mut self, delta: &Delta) {
        let run_id = delta.run_id;
        // What moved before the text comes before it.
        if self.restless.remove(&run_id)
            && let Err(error) = self.catch_up(run_id)
        {
            self.note(run_id, &error);
        }
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return;
        };
        let mut missing = Vec::new();
        for (index, reader) in followed.readers.iter_mut().enumerate() {
            if reader.text(delta) {
                reader.flush();
            } else {
                missing.push(index);
            }
        }
        if missing.is_empty() {
            return;
        }
        if let Err(error) = self.fill(run_id, &missing, Some(delta)) {
            self.note(run_id, &error);
        }
    }

    fn read_again(&mut self) {
        let counts: Vec<(Uuid, usize)> = self
            .runs
            .iter()
            .map(|(run_id, followed)| (*run_id, followed.readers.len()))
            .collect();
        for (run_id, readers) in counts {
            let readers: Vec<usize> = (0..readers).collect();
            if let Err(error) = self.fill(run_id, &readers, None) {
                self.note(run_id, &error);
            }
            self.restless.insert(run_id);
        }
    }

    /// Gives readers the events and the text that they miss, before this piece if there is one, and
    /// the piece.
    fn fill(&mut self, run_id: Uuid, readers: &[usize], delta: Option<&Delta>) -> Result<()> {
        self.catch_up(run_id)?;
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return Ok(());
        };
        let Some(may) = followed.readers.first().map(|reader| &reader.may) else {
            return Ok(());
        };
        let pieces: Vec<Delta> = deltas::of_run(&mut self.store.session()?, may)?
            .into_iter()
            .map(Delta::from)
            .collect();
        for index in readers {
            let Some(reader) = followed.readers.get_mut(*index) else {
                continue;
            };
            for piece in pieces.iter().chain(delta) {
                reader.flush();
                reader.text(piece);
            }
            reader.flush();
        }
        Ok(())
    }

    /// Looks after the runs that have something to do.
    fn calm(&mut self) {
        self.restless.extend(self.feed.take_missed());
        for run_id in std::mem::take(&mut self.restless) {
            if let Err(error) = self.catch_up(run_id) {
                self.note(run_id, &error);
                self.restless.insert(run_id);
            }
            self.drop_over(run_id);
            if let Some(followed) = self.runs.get(&run_id)
                && followed.readers.iter().any(Reader::is_behind)
            {
                self.restless.insert(run_id);
            }
        }
    }

    /// Reads the events that any reader of the run misses and gives them out, as far as there is
    /// room.
    fn catch_up(&mut self, run_id: Uuid) -> Result<()> {
        loop {
            let Some(followed) = self.runs.get_mut(&run_id) else {
                return Ok(());
            };
            for reader in &mut followed.readers {
                reader.flush();
            }
            let eager = followed
                .readers
                .iter()
                .filter(|reader| !reader.is_behind() && !reader.is_ending());
            let Some(slowest) = eager.min_by_key(|reader| reader.seq) else {
                return Ok(());
            };
            let after = slowest.seq;
            let page = events::after(&mut self.store.session()?, &slowest.may, after, PAGE)?;
            for event in &page {
                let text = format::durable(event);
                let last = Event::is_last(&event.kind);
                followed.newest = followed.newest.max(event.seq);
                for reader in &mut followed.readers {
                    reader.durable(event.seq, &text);
                    reader.flush();
                    if last && reader.seq >= event.seq {
                        reader.end(End::Finished);
                    }
                }
            }
            let more = page.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX);
            if page.is_empty() {
                self.end_finished(run_id, after);
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// A reader that came after the run's last event has nothing to wait for.
    fn end_finished(&mut self, run_id: Uuid, seq: i64) {
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return;
        };
        for reader in &mut followed.readers {
            let run = reader.may.run();
            if run.status.is_finished() && seq >= run.last_seq {
                reader.end(End::Finished);
                reader.flush();
            }
        }
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
                    reader.end(End::Credential);
                } else if reader.took_at.elapsed() >= self.options.comment_every {
                    reader.comment();
                }
            }
            self.drop_over(run_id);
        }
    }

    /// Ends the streams whose tokens were revoked since.
    fn recheck(&mut self) -> Result<()> {
        let mut by_tenant: HashMap<Uuid, HashSet<Uuid>> = HashMap::new();
        for reader in self.runs.values().flat_map(|followed| &followed.readers) {
            if let Some(token_id) = reader.may.token_id() {
                let tenant_id = crate::proof::May::<crate::proof::Read, _>::tenant_id(&reader.may);
                by_tenant.entry(tenant_id).or_default().insert(token_id);
            }
        }
        let mut session = self.store.session()?;
        for (tenant_id, wanted) in by_tenant {
            let wanted: Vec<Uuid> = wanted.into_iter().collect();
            let revoked = tokens::revoked_among(&mut session, tenant_id, &wanted)?;
            for followed in self.runs.values_mut() {
                for reader in &mut followed.readers {
                    if reader
                        .may
                        .token_id()
                        .is_some_and(|id| revoked.contains(&id))
                    {
                        reader.end(End::Credential);
                        reader.flush();
                    }
                }
            }
        }
        Ok(())
    }

    /// Drops readers that are over or took nothing for too long, and runs that nobody follows.
    fn drop_over(&mut self, run_id: Uuid) {
        let Some(followed) = self.runs.get_mut(&run_id) else {
            return;
        };
        let before = followed.readers.len();
        let patience = self.options.patience;
        followed.readers.retain_mut(|reader| {
            if reader.flush() == Standing::Over {
                return false;
            }
            if reader.is_behind() && reader.took_at.elapsed() >= patience {
                reader.reset();
                return false;
            }
            true
        });
        self.open
            .fetch_sub(before - followed.readers.len(), Ordering::Relaxed);
        if followed.readers.is_empty() {
            self.runs.remove(&run_id);
            self.feed.unfollow(run_id);
        }
    }

    fn note(&self, run_id: Uuid, error: &crate::error::Error) {
        slog::warn!(self.log, "A run's events could not be read; trying again";
            "runId" => %run_id, "error" => %error);
    }
}

/// The thread is to end.
struct Stopped;

enum Arrival {
    Command(Command),
    Hint(Hint),
}
