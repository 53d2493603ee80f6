//! Looks for what other replicas write about runs that are followed here.
//!
//! A position is given out before its transaction commits, so the last few seconds are asked for
//! again. What is found is a hint: readers take events by run and number. Text is not asked for
//! again: a reader that misses a piece finds it by its offset.
//!
//! Nobody looks while no stream is open, but the position is noted all the same, so that the first
//! look begins as far back as any other. The threads read their runs again when looking begins,
//! because text is looked for from then on only, and once more when the notes of a process that has
//! just begun reach back far enough.

use super::shard::Command;
use crate::error::Result;
use crate::runtime::feed::{Delta, Feed};
use crate::store::{Store, deltas, events};
use crossbeam_channel::Sender;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How far back each look begins: longer than a transaction stays open after it took a position.
const OVERLAP: Duration = Duration::from_secs(5);

/// Rows a look.
const ROWS: i64 = 5000;

pub(super) struct Tail {
    pub(super) store: Store,
    pub(super) feed: Feed,
    pub(super) shards: Vec<Sender<Command>>,
    pub(super) open: Arc<AtomicUsize>,
    pub(super) every: Duration,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) log: slog::Logger,
}

/// How often the position is noted while nobody looks.
const IDLE: Duration = Duration::from_secs(1);

/// What was seen so far.
#[derive(Default)]
struct Seen {
    /// Where looks for events have ended, and when: the newest that is older than the overlap is
    /// where the next begins.
    marks: VecDeque<(Instant, i64)>,
    /// The marks have reached back far enough once, and the threads know.
    settled: bool,
    /// The newest event told of a run, since nobody looks twice.
    told: HashMap<Uuid, i64>,
    /// Where the last look for text ended.
    text: Option<i64>,
}

impl Seen {
    fn begin(&mut self) -> Option<i64> {
        while self.marks.len() > 1 && self.marks[1].0.elapsed() > OVERLAP {
            self.marks.pop_front();
        }
        self.marks.front().map(|(_, position)| *position)
    }

    /// The next look begins before whatever has not been committed yet.
    fn reaches_back(&self) -> bool {
        let first = self.marks.front();
        first.is_some_and(|(noted_at, _)| noted_at.elapsed() > OVERLAP)
    }

    /// Whether the last mark is from a while ago.
    fn is_stale(&self) -> bool {
        let last = self.marks.back();
        last.is_none_or(|(noted_at, _)| noted_at.elapsed() >= IDLE)
    }
}

impl Tail {
    pub(super) fn run(self) {
        let mut seen = Seen::default();
        while !self.stopping.load(Ordering::Relaxed) {
            std::thread::sleep(self.every);
            if self.open.load(Ordering::Relaxed) == 0 {
                // Without a new note the next look begins further back.
                let _ = self.idle(&mut seen);
                continue;
            }
            if let Err(error) = self.look(&mut seen) {
                slog::warn!(self.log, "Other replicas' events could not be looked for; trying again"; "error" => %error);
            }
        }
    }

    /// Notes the position, and forgets what only readers need.
    fn idle(&self, seen: &mut Seen) -> Result<()> {
        seen.text = None;
        seen.told.clear();
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
            let mut told = true;
            for shard in &self.shards {
                told &= shard.try_send(Command::ReadAgain).is_ok();
            }
            if told {
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
        let mut from = match seen.begin() {
            Some(from) => from,
            None => events::last_position(&mut session)?,
        };
        let mut told = HashMap::new();
        loop {
            let moved = events::moved_since(&mut session, from, ROWS)?;
            let Some(newest) = moved.iter().map(|run| run.position).max() else {
                break;
            };
            for run in &moved {
                if self.feed.is_followed(run.run_id) {
                    let known = seen.told.get(&run.run_id).copied().unwrap_or(0);
                    let sent = run.seq <= known || self.tell(run.run_id, run.seq);
                    if sent {
                        told.insert(run.run_id, run.seq.max(known));
                    }
                }
            }
            let whole = newest - from < ROWS;
            from = newest;
            if whole {
                break;
            }
        }
        // Only what this look saw can be seen by the next again.
        seen.told = told;
        seen.marks.push_back((Instant::now(), from));
        Ok(())
    }

    /// False: the thread has too much to do; the next look tells it.
    fn tell(&self, run_id: Uuid, seq: i64) -> bool {
        self.shards[super::shard_of(run_id, self.shards.len())]
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
                let shard = &self.shards[super::shard_of(piece.run_id, self.shards.len())];
                // A lost piece is found by its offset.
                let _ = shard.try_send(Command::Text(Delta::from(piece)));
            }
        }
        Ok(())
    }
}
