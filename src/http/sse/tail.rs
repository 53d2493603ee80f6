//! Looks for what other replicas write about runs that are followed here.
//!
//! A position is given out before its transaction commits, so the last few seconds are asked for
//! again. What is found is a hint: readers take events by run and number.

use crate::error::Result;
use crate::runtime::feed::{Delta, Feed};
use crate::store::{Store, deltas, events};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How far back each look begins: longer than a transaction stays open after it took a position.
const OVERLAP: Duration = Duration::from_secs(5);

/// Rows a look.
const ROWS: i64 = 5000;

pub(super) struct Tail {
    pub(super) store: Store,
    pub(super) feed: Arc<Feed>,
    pub(super) every: Duration,
    pub(super) stopping: Arc<AtomicBool>,
    pub(super) log: slog::Logger,
}

/// Where looks have ended, and when: the oldest within the overlap is where the next begins.
#[derive(Default)]
struct Marks(VecDeque<(Instant, i64)>);

impl Marks {
    fn begin(&mut self) -> Option<i64> {
        while self.0.len() > 1 && self.0[1].0.elapsed() > OVERLAP {
            self.0.pop_front();
        }
        self.0.front().map(|(_, position)| *position)
    }

    fn end(&mut self, position: i64) {
        self.0.push_back((Instant::now(), position));
    }
}

impl Tail {
    pub(super) fn run(self) {
        let (mut events, mut texts) = (Marks::default(), Marks::default());
        while !self.stopping.load(Ordering::Relaxed) {
            std::thread::sleep(self.every);
            if !self.feed.is_followed() {
                (events, texts) = (Marks::default(), Marks::default());
                continue;
            }
            let looked = self
                .look_for_events(&mut events)
                .and_then(|()| self.look_for_text(&mut texts));
            if let Err(error) = looked {
                slog::warn!(self.log, "Other replicas' events could not be looked for; trying again"; "error" => %error);
            }
        }
    }

    fn look_for_events(&self, marks: &mut Marks) -> Result<()> {
        let mut session = self.store.session()?;
        let mut from = match marks.begin() {
            Some(from) => from,
            None => events::last_position(&mut session)?,
        };
        loop {
            let moved = events::moved_since(&mut session, from, ROWS)?;
            let Some(newest) = moved.iter().map(|run| run.position).max() else {
                break;
            };
            for run in &moved {
                self.feed.moved(run.run_id, Some(run.seq));
            }
            let whole = newest - from < ROWS;
            from = newest;
            if whole {
                break;
            }
        }
        marks.end(from);
        Ok(())
    }

    fn look_for_text(&self, marks: &mut Marks) -> Result<()> {
        let mut session = self.store.session()?;
        let from = match marks.begin() {
            Some(from) => from,
            None => deltas::last_position(&mut session)?,
        };
        let pieces = deltas::since_position(&mut session, from, ROWS)?;
        let newest = pieces.last().map_or(from, |piece| piece.position);
        for piece in pieces {
            self.feed.delta(piece.run_id, Delta::from(piece));
        }
        marks.end(newest);
        Ok(())
    }
}
