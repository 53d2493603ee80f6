//! Text and reasoning while a model writes them. Readers in this process see it immediately; for the others it is
//! collected and stored.
//!
//! Text is live or held. Nobody sees held text before it is released, and discarded text is never
//! seen. One thread stores the collected text of all runs, ten times a second. While the database
//! is unreachable, text is kept up to a bound and then dropped: the step's whole message is the
//! truth.
//!
//! Not here: the decision to release text.

use super::feed::{Delta, Feed};
use crate::error::Code;
use crate::store::Store;
use crate::store::deltas::{self, NewDelta, Stream};
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
        && (last.step, last.attempt, last.stream) == (piece.step, piece.attempt, piece.stream)
        && last.offset + points(&last.text) == piece.offset
        && last.text.len() + piece.text.len() <= PIECE_BYTES
}

/// When readers see text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publication {
    /// As it comes.
    Live,
    /// Once it is released.
    Held,
}

/// The text of one attempt of a step. What is held when it is dropped is never seen.
pub(in crate::runtime) struct Text<'a> {
    feed: &'a Feed,
    pending: &'a Pending,
    lease: Lease,
    step: i32,
    attempt: i32,
    /// Of the next piece that is published, in Unicode code points.
    offset: i32,
    publication: Publication,
    /// Of the next piece of reasoning.
    thought: i32,
    /// What was written and is not published.
    held: String,
}

impl<'a> Text<'a> {
    pub(in crate::runtime) fn new(
        (feed, pending): (&'a Feed, &'a Pending),
        (lease, step, attempt): (Lease, i32, i32),
        publication: Publication,
    ) -> Self {
        Self {
            feed,
            pending,
            lease,
            step,
            attempt,
            offset: 0,
            thought: 0,
            publication,
            held: String::new(),
        }
    }

    /// The model wrote this.
    pub(in crate::runtime) fn say(&mut self, piece: &str) {
        match self.publication {
            Publication::Live => self.publish(piece),
            Publication::Held => self.held.push_str(piece),
        }
    }

    /// The model thought this. What would be held is not shown before the step's end.
    pub(in crate::runtime) fn think(&mut self, piece: &str) {
        let offset = self.thought;
        self.thought = offset.saturating_add(points(piece));
        if self.publication == Publication::Live {
            self.send(Stream::Reasoning, offset, piece);
        }
    }

    /// Publishes what is held. What comes from now on is live.
    pub(in crate::runtime) fn release(&mut self) {
        self.publication = Publication::Live;
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.publish(&held);
        }
    }

    /// Publishes this in the place of what is held. Live text stands as it was written.
    pub(in crate::runtime) fn release_as(&mut self, text: &str) {
        if self.publication == Publication::Held {
            text.clone_into(&mut self.held);
        }
        self.release();
    }

    /// Drops what is held.
    pub(in crate::runtime) fn discard(&mut self) {
        self.held.clear();
    }

    fn publish(&mut self, piece: &str) {
        let offset = self.offset;
        self.offset = offset.saturating_add(points(piece));
        self.send(Stream::Text, offset, piece);
    }

    /// To readers in this process at once, and to the others with what has gathered.
    fn send(&self, stream: Stream, offset: i32, piece: &str) {
        if self.feed.is_followed(self.lease.run_id()) {
            self.feed.delta(Delta {
                run_id: self.lease.run_id(),
                step: self.step,
                attempt: self.attempt,
                stream,
                offset,
                text: piece.into(),
            });
        }
        self.pending.add(NewDelta {
            lease: self.lease,
            step: self.step,
            attempt: self.attempt,
            stream,
            offset,
            text: piece.to_owned(),
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
            slog::debug!(log, "Streamed text was not written"; crate::log::ErrorValue(&error));
            // Of a run or a step that has gone on meanwhile nothing is written.
            if error.code() == Code::DatabaseUnavailable {
                pending.restore(pieces);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::progress::feed::{Hint, Shard};

    fn check(
        publication: Publication,
        act: impl FnOnce(&mut Text<'_>, &dyn Fn() -> Vec<(i32, String)>),
    ) {
        let (feed, pending) = (Feed::default(), Pending::default());
        let lease = Lease::for_tests(Uuid::from_u128(1), Uuid::from_u128(2));
        let reader = feed.shard(16);
        reader.follow(lease.run_id());
        let seen = || seen(&reader, &pending);
        act(
            &mut Text::new((&feed, &pending), (lease, 1, 1), publication),
            &seen,
        );
    }

    /// What a reader in this process has been shown since, which others are to read as well.
    fn seen(reader: &Shard, pending: &Pending) -> Vec<(i32, String)> {
        let shown: Vec<(i32, String)> = reader
            .hints()
            .try_iter()
            .filter_map(|hint| match hint {
                Hint::Delta(delta) => Some((delta.offset, delta.text.to_string())),
                _ => None,
            })
            .collect();
        let gathered: String = pending.take().into_iter().map(|piece| piece.text).collect();
        let text: String = shown.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(gathered, text);
        shown
    }

    fn piece(offset: i32, text: &str) -> (i32, String) {
        (offset, text.to_owned())
    }

    #[test]
    fn live_text_is_seen_as_it_comes() {
        check(Publication::Live, |text, seen| {
            text.say("grün ");
            assert_eq!(seen(), [piece(0, "grün ")]);
            text.say("blau");
            text.release();
            assert_eq!(seen(), [piece(5, "blau")]);
        });
    }

    #[test]
    fn held_text_is_seen_once_it_is_released() {
        check(Publication::Held, |text, seen| {
            text.say("grün ");
            text.say("blau");
            assert!(seen().is_empty());
            text.release();
            assert_eq!(seen(), [piece(0, "grün blau")]);
            text.say("!");
            assert_eq!(seen(), [piece(9, "!")]);
        });
    }

    #[test]
    fn reasoning_and_text_have_places_of_their_own() {
        check(Publication::Live, |text, seen| {
            text.think("grün ");
            assert_eq!(seen(), [piece(0, "grün ")]);
            text.say("ja");
            text.think("blau");
            text.say("!");
            let gathered = seen();
            assert_eq!(gathered, [piece(0, "ja"), piece(5, "blau"), piece(2, "!")]);
        });
        check(Publication::Held, |text, seen| {
            text.think("secret");
            text.release();
            assert!(seen().is_empty());
        });
    }

    #[test]
    fn discarded_text_is_never_seen() {
        check(Publication::Held, |text, seen| {
            text.say("secret");
            text.discard();
            text.release();
            assert!(seen().is_empty());
            text.say("said");
            assert_eq!(seen(), [piece(0, "said")]);
        });
        check(Publication::Held, |text, seen| {
            text.say("secret");
            assert!(seen().is_empty());
        });
    }
}
