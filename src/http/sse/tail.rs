//! Looks for what other replicas write about runs that are followed here.
//!
//! A position is given out before its transaction commits, so the last few seconds are asked for
//! again. What is found is a hint: readers take events by run and number. Text is not asked for
//! again: a reader that misses a piece finds it by its offset.
//!
//! Nobody looks while no stream is open. What was written between the coming of the first reader and
//! the first look after it is behind the position that the look begins from, so the threads are told
//! to read their runs again once that position is known.

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

/// What was seen so far.
#[derive(Default)]
struct Seen {
    /// Where looks for events have ended, and when: the oldest within the overlap is where the next
    /// begins.
    marks: VecDeque<(Instant, i64)>,
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
}

impl Tail {
    pub(super) fn run(self) {
        let mut seen = Seen::default();
        while !self.stopping.load(Ordering::Relaxed) {
            std::thread::sleep(self.every);
            if self.open.load(Ordering::Relaxed) == 0 {
                seen = Seen::default();
                continue;
            }
            let looked = self.look(&mut seen);
            if let Err(error) = looked {
                slog::warn!(self.log, "Other replicas' events could not be looked for; trying again"; "error" => %error);
            }
        }
    }

    fn look(&self, seen: &mut Seen) -> Result<()> {
        let first = seen.marks.is_empty() || seen.text.is_none();
        self.look_for_events(seen)?;
        self.look_for_text(seen)?;
        if first {
            for shard in &self.shards {
                if shard.try_send(Command::ReadAgain).is_err() {
                    // The next look is a first one again.
                    *seen = Seen::default();
                }
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
