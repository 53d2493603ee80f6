//! Text as a model says it: told to readers in this process at once, and gathered for the others.
//!
//! One thread writes what has gathered, of every run at once, ten times a second. While the database
//! is away text is kept, up to a bound, and then dropped: the truth is the step's whole message.

use super::feed::{Delta, Feed};
use crate::error::Code;
use crate::store::Store;
use crate::store::deltas::{self, NewDelta};
use crate::store::runs::Lease;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// How often gathered text is written.
const PERIOD: Duration = Duration::from_millis(100);
/// Pieces of one run are joined up to this size.
const PIECE_BYTES: usize = 2 * 1024;
/// Text that waits to be written, at most.
const PENDING_BYTES: usize = 8 * 1024 * 1024;
/// Runs that are known to have taken text, at most: what the database's absence brought back for steps that have ended
/// leaves some behind. Text of one that is not known is swept after the run.
const TAKEN_RUNS: usize = 65_536;

/// Text that waits to be written.
#[derive(Default)]
pub(in crate::runtime) struct Pending(Mutex<Gathered>);

#[derive(Default)]
struct Gathered {
    pieces: HashMap<Uuid, Vec<NewDelta>>,
    bytes: usize,
    /// Runs of which text was taken to be written.
    taken: HashSet<Uuid>,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a run's text: its step has ended. Says whether any was taken to be written.
    pub(in crate::runtime) fn forget(&self, lease: &Lease) -> bool {
        let mut gathered = self.lock();
        if let Some(pieces) = gathered.pieces.remove(&lease.run_id()) {
            gathered.bytes -= pieces.iter().map(|piece| piece.text.len()).sum::<usize>();
        }
        gathered.taken.remove(&lease.run_id())
    }

    fn add(&self, piece: NewDelta) {
        let mut gathered = self.lock();
        if gathered.bytes + piece.text.len() > PENDING_BYTES {
            gathered.pieces.clear();
            gathered.bytes = 0;
        }
        gathered.bytes += piece.text.len();
        let pieces = gathered.pieces.entry(piece.lease.run_id()).or_default();
        match pieces.last_mut() {
            Some(last) if continues(last, &piece) => last.text.push_str(&piece.text),
            _ => pieces.push(piece),
        }
    }

    /// Takes back what could not be written, before what has gathered since, as far as there is room.
    fn restore(&self, pieces: Vec<NewDelta>) {
        let mut gathered = self.lock();
        let mut earlier: HashMap<Uuid, Vec<NewDelta>> = HashMap::new();
        for piece in pieces {
            if gathered.bytes + piece.text.len() > PENDING_BYTES {
                break;
            }
            gathered.bytes += piece.text.len();
            earlier.entry(piece.lease.run_id()).or_default().push(piece);
        }
        for (run_id, mut pieces) in earlier {
            let since = gathered.pieces.entry(run_id).or_default();
            pieces.append(since);
            *since = pieces;
        }
    }

    fn take(&self) -> Vec<NewDelta> {
        let mut gathered = self.lock();
        gathered.bytes = 0;
        let pieces = std::mem::take(&mut gathered.pieces);
        if gathered.taken.len() > TAKEN_RUNS {
            gathered.taken.clear();
        }
        gathered.taken.extend(pieces.keys());
        pieces.into_values().flatten().collect()
    }
}

/// Whether a piece goes on where the last one ends, and fits into its row.
fn continues(last: &NewDelta, piece: &NewDelta) -> bool {
    last.lease == piece.lease
        && (last.step, last.attempt) == (piece.step, piece.attempt)
        && last.offset + points(&last.text) == piece.offset
        && last.text.len() + piece.text.len() <= PIECE_BYTES
}

/// The text of one attempt of a step.
pub(in crate::runtime) struct Text<'a> {
    feed: &'a Feed,
    pending: &'a Pending,
    lease: Lease,
    step: i32,
    attempt: i32,
    offset: i32,
}

impl<'a> Text<'a> {
    pub(in crate::runtime) fn new(
        (feed, pending): (&'a Feed, &'a Pending),
        lease: Lease,
        step: i32,
        attempt: i32,
    ) -> Self {
        Self {
            feed,
            pending,
            lease,
            step,
            attempt,
            offset: 0,
        }
    }

    /// The model said this.
    pub(in crate::runtime) fn say(&mut self, text: &str) {
        let offset = self.offset;
        self.offset = offset.saturating_add(points(text));
        if self.feed.is_followed(self.lease.run_id()) {
            self.feed.delta(Delta {
                run_id: self.lease.run_id(),
                step: self.step,
                attempt: self.attempt,
                offset,
                text: text.into(),
            });
        }
        self.pending.add(NewDelta {
            lease: self.lease,
            step: self.step,
            attempt: self.attempt,
            offset,
            text: text.to_owned(),
        });
    }
}

/// Unicode code points, the unit of offsets.
fn points(text: &str) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(i32::MAX)
}

/// The thread `runs-text`. Ends when `stop` disconnects.
pub(in crate::runtime) fn write_gathered(
    pending: &Pending,
    store: &Store,
    log: &slog::Logger,
    stop: &Receiver<()>,
) {
    while stop.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        let pieces = pending.take();
        if pieces.is_empty() {
            continue;
        }
        let written = store
            .session()
            .and_then(|mut session| deltas::insert(&mut session, &pieces));
        if let Err(error) = written {
            slog::debug!(log, "Streamed text was not written"; "error" => %error);
            // Of a run or a step that has gone on meanwhile nothing is written.
            if error.code() == Code::DatabaseUnavailable {
                pending.restore(pieces);
            }
        }
    }
}
