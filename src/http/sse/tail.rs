//! Finds events that other replicas write about runs that are followed here. Which runs have new events, of all replicas, it
//! passes on to the thread of hints (`changes`).
//!
//! A position is assigned before its transaction commits, so missing positions are asked for again
//! for a few seconds. A result is only a hint: readers fetch events by run and number. Text is not
//! asked for again: a reader notices a gap by its offset.
//!
//! While no stream is open nothing is fetched, but the position is still recorded, so that the
//! first fetch reaches back as far as any other. When fetching starts, the stream threads read
//! their runs again, because text is only found from then on. They do so once more when a process
//! that has just started has recorded positions for long enough.

use super::changes::ToChanges;
use super::command::{Command, shard_of};
use crate::error::Result;
use crate::runtime::progress::feed::{Delta, Feed};
use crate::store::changes::ChangeKind;
use crate::store::{Store, deltas, events};
use crossbeam_channel::Sender;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Positions that may be missing at once. More are no work under way but a sequence that was set.
const MISSING: i64 = 20_000;

/// Rows a look.
const ROWS: i64 = 5000;

pub(super) struct Tail {
    pub(super) store: Store,
    pub(super) feed: Feed,
    pub(super) shards: Vec<Sender<Command>>,
    pub(super) open: Arc<AtomicUsize>,
    pub(super) changes: ToChanges,
    pub(super) every: Duration,
    /// How far back the first look begins, and how long a position is missed: longer than a transaction stays open after it
    /// took one.
    pub(super) overlap: Duration,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) log: slog::Logger,
}

/// How often the position is noted while nobody looks.
const IDLE: Duration = Duration::from_secs(1);

/// What was seen so far.
struct Seen {
    /// As in [`Tail`].
    overlap: Duration,
    /// Where the positions had come to, and when: the newest that is older than the overlap is where a
    /// first look begins.
    marks: VecDeque<(Instant, i64)>,
    /// The marks have reached back far enough once, and the threads know.
    settled: bool,
    /// Where the last look for events ended. None: the next is a first one.
    events: Option<i64>,
    /// The positions before it that were not there, and since when.
    missing: BTreeMap<i64, Instant>,
    /// The newest event of runs of which a hint could not be sent.
    undelivered: HashMap<Uuid, i64>,
    /// Where the last look for text ended.
    text: Option<i64>,
}

impl Seen {
    fn new(overlap: Duration) -> Self {
        Self {
            overlap,
            marks: VecDeque::new(),
            settled: false,
            events: None,
            missing: BTreeMap::new(),
            undelivered: HashMap::new(),
            text: None,
        }
    }

    fn begin(&mut self) -> Option<i64> {
        while self.marks.len() > 1 && self.marks[1].0.elapsed() > self.overlap {
            self.marks.pop_front();
        }
        self.marks.front().map(|(_, position)| *position)
    }

    /// An event is at this position, and all before it have been given out.
    fn found(&mut self, position: i64, now: Instant) {
        let newest = self.events.unwrap_or(position);
        if position <= newest {
            self.missing.remove(&position);
            return;
        }
        self.events = Some(position);
        let between = position - newest - 1;
        if between + i64::try_from(self.missing.len()).unwrap_or(MISSING) > MISSING {
            // As in a process that has just begun, the threads read their runs again in a while.
            self.missing.clear();
            self.marks.clear();
            self.settled = false;
            return;
        }
        self.missing
            .extend((newest + 1..position).map(|missing| (missing, now)));
    }

    /// The positions that are asked for again. Each is asked for once more after its time, however late that look is.
    fn missing(&mut self) -> Vec<i64> {
        let asked = self.missing.keys().copied().collect();
        self.missing
            .retain(|_, since| since.elapsed() <= self.overlap);
        asked
    }

    /// The next look is a first one: it begins as far back, and the threads read their runs again, since what was missing,
    /// and which hints were not sent, is not known any more.
    fn forget(&mut self) {
        self.events = None;
        self.text = None;
        self.missing.clear();
    }

    /// The next look begins before whatever has not been committed yet.
    fn reaches_back(&self) -> bool {
        let first = self.marks.front();
        first.is_some_and(|(noted_at, _)| noted_at.elapsed() > self.overlap)
    }

    /// Whether the last mark is from a while ago.
    fn is_stale(&self) -> bool {
        let last = self.marks.back();
        last.is_none_or(|(noted_at, _)| noted_at.elapsed() >= IDLE)
    }
}

impl Tail {
    pub(super) fn run(self) {
        let mut seen = Seen::new(self.overlap);
        while !self.stopping.load(Ordering::Relaxed) {
            std::thread::sleep(self.every);
            let is_followed = self.open.load(Ordering::Relaxed) > 0;
            if !is_followed && !self.changes.wants(ChangeKind::Run) {
                // Without a new note the next look begins further back.
                let _ = self.idle(&mut seen);
                continue;
            }
            if let Err(error) = self.look(&mut seen) {
                seen.forget();
                crate::warn_unless!(self.store.is_away(), self.log, "Other replicas' events could not be looked for; trying again"; crate::log::ErrorValue(&error));
            }
        }
    }

    /// Notes the position, and forgets what only readers need.
    fn idle(&self, seen: &mut Seen) -> Result<()> {
        seen.forget();
        seen.undelivered.clear();
        seen.begin();
        // What nobody follows needs no second reading.
        seen.settled = seen.reaches_back();
        if seen.is_stale() {
            let position = events::last_position(&mut self.store.session()?)?;
            seen.marks.push_back((Instant::now(), position));
        }
        Ok(())
    }

    fn look(&self, seen: &mut Seen) -> Result<()> {
        let first = seen.text.is_none();
        self.look_for_events(seen)?;
        self.look_for_text(seen)?;
        let settles = !seen.settled && seen.reaches_back();
        if first || settles {
            self.changes.missed(ChangeKind::Run);
            let mut is_sent = true;
            for shard in &self.shards {
                is_sent &= shard.try_send(Command::ReadAgain).is_ok();
            }
            if is_sent {
                seen.settled |= settles;
            } else {
                // The next look is a first one again.
                seen.text = None;
            }
        }
        Ok(())
    }

    fn look_for_events(&self, seen: &mut Seen) -> Result<()> {
        let mut session = self.store.session()?;
        let mut from = match seen.events.or_else(|| seen.begin()) {
            Some(from) => from,
            None => events::last_position(&mut session)?,
        };
        seen.events = Some(from);
        let mut missing = seen.missing();
        let mut moved = std::mem::take(&mut seen.undelivered);
        loop {
            let found = events::moved_since(&mut session, from, &missing, ROWS)?;
            let now = Instant::now();
            let newer = found.iter().filter(|event| event.position > from).count();
            for event in found {
                seen.found(event.position, now);
                let seq = moved.entry(event.run_id).or_default();
                *seq = event.seq.max(*seq);
            }
            from = seen.events.unwrap_or(from);
            missing.clear();
            if i64::try_from(newer).is_ok_and(|newer| newer < ROWS) {
                break;
            }
        }
        if !moved.is_empty() {
            self.changes.moved(moved.keys().copied().collect());
        }
        moved.retain(|run_id, seq| self.feed.is_followed(*run_id) && !self.notify(*run_id, *seq));
        seen.undelivered = moved;
        seen.marks.push_back((Instant::now(), from));
        seen.begin();
        Ok(())
    }

    /// False: the thread has too much to do; the next look notifies it.
    fn notify(&self, run_id: Uuid, seq: i64) -> bool {
        self.shards[shard_of(run_id, self.shards.len())]
            .try_send(Command::Moved { run_id, seq })
            .is_ok()
    }

    fn look_for_text(&self, seen: &mut Seen) -> Result<()> {
        let mut session = self.store.session()?;
        let from = match seen.text {
            Some(from) => from,
            None => deltas::last_position(&mut session)?,
        };
        let pieces = deltas::since_position(&mut session, from, ROWS)?;
        seen.text = Some(pieces.last().map_or(from, |piece| piece.position));
        for piece in pieces {
            if self.feed.is_followed(piece.run_id) {
                let shard = &self.shards[shard_of(piece.run_id, self.shards.len())];
                // A lost piece is found by its offset.
                let _ = shard.try_send(Command::Text(Delta::from(piece)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERLAP: Duration = Duration::from_secs(40);

    #[test]
    fn what_was_not_there_is_asked_for_again_until_it_is() {
        let mut seen = Seen::new(OVERLAP);
        let now = Instant::now();
        seen.events = Some(10);
        for position in [11, 13, 16] {
            seen.found(position, now);
        }
        assert_eq!(seen.missing(), [12, 14, 15]);
        seen.found(14, now);
        assert_eq!(seen.missing(), [12, 15]);
        assert_eq!(seen.events, Some(16));
    }

    #[test]
    fn a_position_is_asked_for_once_more_after_its_time() {
        let mut seen = Seen::new(OVERLAP);
        let now = Instant::now();
        let [Some(long_ago), Some(a_while_ago)] =
            [OVERLAP + Duration::from_secs(1), OVERLAP / 2].map(|ago| now.checked_sub(ago))
        else {
            panic!("the machine has just started");
        };
        seen.events = Some(1);
        seen.found(3, long_ago);
        seen.found(5, a_while_ago);
        assert_eq!(seen.missing(), [2, 4]);
        assert_eq!(seen.missing(), [4]);
    }

    #[test]
    fn after_a_leap_the_threads_read_again() {
        let mut seen = Seen {
            settled: true,
            events: Some(1),
            ..Seen::new(OVERLAP)
        };
        let now = Instant::now();
        seen.marks.push_back((now, 1));
        seen.found(3, now);
        seen.found(i64::MAX, now);
        assert!(seen.missing().is_empty() && seen.marks.is_empty() && !seen.settled);
        assert_eq!(seen.events, Some(i64::MAX));
    }
}
