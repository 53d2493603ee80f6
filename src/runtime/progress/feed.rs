//! Hints to the threads that serve streams, inside one process.
//!
//! A stream thread registers a [`Shard`] and names the runs that its clients follow. The [`Feed`] sends
//! it three kinds of [`Hint`]: the run has new events, these are its new events, this is new text or reasoning. A run that
//! nobody follows costs one look at a map.
//!
//! A hint may be lost, data never is (`wake-ups-are-hints`): when a shard's channel is full, the feed
//! remembers the run, and its readers read the tables.
//!
//! Not here: readers on other replicas, which poll the tables; and who may read a run.

use crate::store::deltas::{StoredDelta, Stream};
use crate::store::events::StoredEvent;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Maps by run, so that runs seldom wait for one another.
const STRIPES: usize = 64;

/// What a stream thread receives.
#[derive(Debug, Clone, PartialEq)]
pub enum Hint {
    /// The run has events that its readers have not seen.
    Changed(Uuid),
    /// The run has these events, which follow one another.
    Events(Uuid, Arc<[StoredEvent]>),
    /// Text or reasoning arrived.
    Delta(Delta),
}

/// A piece of text or reasoning that a model just wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The run.
    pub run_id: Uuid,
    /// The step that streams.
    pub step: i32,
    /// Its attempt.
    pub attempt: i32,
    /// What it is of.
    pub stream: Stream,
    /// Where the piece begins in its stream, in Unicode code points.
    pub offset: i32,
    /// The piece.
    pub text: Arc<str>,
}

impl From<StoredDelta> for Delta {
    fn from(stored: StoredDelta) -> Self {
        Self {
            run_id: stored.run_id,
            step: stored.step,
            attempt: stored.attempt,
            stream: stored.stream,
            offset: stored.offset,
            text: stored.text.into(),
        }
    }
}

impl Hint {
    fn run_id(&self) -> Uuid {
        match self {
            Self::Changed(run_id) | Self::Events(run_id, _) => *run_id,
            Self::Delta(delta) => delta.run_id,
        }
    }
}

/// Where hints go. Cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    stripes: [Mutex<HashMap<Uuid, Vec<Follower>>>; STRIPES],
    shards: AtomicU64,
}

struct Follower {
    shard: Arc<Target>,
    /// How many of the shard's clients follow the run.
    clients: usize,
}

struct Target {
    id: u64,
    hints: Sender<Hint>,
    /// Runs of which a hint did not fit.
    missed: Mutex<HashSet<Uuid>>,
}

/// A stream thread's end of the feed.
pub struct Shard {
    feed: Feed,
    target: Arc<Target>,
    hints: Receiver<Hint>,
}

impl Default for Feed {
    fn default() -> Self {
        Self(Arc::new(Inner {
            stripes: std::array::from_fn(|_| Mutex::default()),
            shards: AtomicU64::new(0),
        }))
    }
}

impl Feed {
    /// An end for one stream thread, whose channel holds `capacity` hints.
    pub fn shard(&self, capacity: usize) -> Shard {
        let (sender, hints) = bounded(capacity.max(1));
        Shard {
            feed: self.clone(),
            target: Arc::new(Target {
                id: self.0.shards.fetch_add(1, Ordering::Relaxed),
                hints: sender,
                missed: Mutex::default(),
            }),
            hints,
        }
    }

    /// The run has new events. To be called after the commit.
    pub fn changed(&self, run_id: Uuid) {
        self.send(&Hint::Changed(run_id));
    }

    /// The run has these new events. To be called after the commit.
    pub fn events(&self, run_id: Uuid, events: Vec<StoredEvent>) {
        self.send(&Hint::Events(run_id, events.into()));
    }

    /// The run's model wrote this.
    pub fn delta(&self, delta: Delta) {
        self.send(&Hint::Delta(delta));
    }

    /// Whether anybody in this process follows the run.
    pub fn is_followed(&self, run_id: Uuid) -> bool {
        self.stripe(run_id).contains_key(&run_id)
    }

    fn send(&self, hint: &Hint) {
        let run_id = hint.run_id();
        let stripe = self.stripe(run_id);
        for follower in stripe.get(&run_id).into_iter().flatten() {
            match follower.shard.hints.try_send(hint.clone()) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                Err(TrySendError::Full(_)) => {
                    lock(&follower.shard.missed).insert(run_id);
                }
            }
        }
    }

    fn stripe(&self, run_id: Uuid) -> MutexGuard<'_, HashMap<Uuid, Vec<Follower>>> {
        // The last bytes of a UUIDv7 are random.
        let last = usize::from(run_id.as_bytes()[15]);
        lock(&self.0.stripes[last % STRIPES])
    }
}

impl Shard {
    /// One more of this thread's clients follows the run. Hints that are sent from now on arrive:
    /// look the truth up after this call, not before.
    pub fn follow(&self, run_id: Uuid) {
        let mut stripe = self.feed.stripe(run_id);
        let followers = stripe.entry(run_id).or_default();
        match followers
            .iter_mut()
            .find(|one| one.shard.id == self.target.id)
        {
            Some(follower) => follower.clients += 1,
            None => followers.push(Follower {
                shard: self.target.clone(),
                clients: 1,
            }),
        }
    }

    /// One of this thread's clients follows the run no more.
    pub fn unfollow(&self, run_id: Uuid) {
        let mut stripe = self.feed.stripe(run_id);
        let Some(followers) = stripe.get_mut(&run_id) else {
            return;
        };
        if let Some(at) = followers
            .iter()
            .position(|one| one.shard.id == self.target.id)
        {
            followers[at].clients -= 1;
            if followers[at].clients == 0 {
                followers.swap_remove(at);
            }
        }
        if followers.is_empty() {
            stripe.remove(&run_id);
        }
    }

    /// The hints, in order.
    pub fn hints(&self) -> &Receiver<Hint> {
        &self.hints
    }

    /// Runs of which hints were lost since the last call: look their truth up, text included. To be
    /// asked each time the channel has been emptied.
    pub fn take_missed(&self) -> Vec<Uuid> {
        lock(&self.target.missed).drain().collect()
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        for stripe in &self.feed.0.stripes {
            lock(stripe).retain(|_, followers| {
                followers.retain(|one| one.shard.id != self.target.id);
                !followers.is_empty()
            });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    #[test]
    fn only_followers_get_hints() {
        let feed = Feed::default();
        let (one, other) = (feed.shard(8), feed.shard(8));
        one.follow(run(1));
        other.follow(run(2));
        feed.changed(run(1));
        feed.changed(run(3));
        assert_eq!(
            one.hints().try_iter().collect::<Vec<_>>(),
            [Hint::Changed(run(1))]
        );
        assert!(other.hints().is_empty());
    }

    #[test]
    fn a_run_is_followed_until_its_last_client_leaves() {
        let feed = Feed::default();
        let shard = feed.shard(8);
        shard.follow(run(1));
        shard.follow(run(1));
        shard.unfollow(run(1));
        assert!(feed.is_followed(run(1)));
        shard.unfollow(run(1));
        assert!(!feed.is_followed(run(1)));
        shard.unfollow(run(1));
    }

    #[test]
    fn what_does_not_fit_is_remembered_once() {
        let feed = Feed::default();
        let shard = feed.shard(2);
        shard.follow(run(1));
        for _ in 0..5 {
            feed.changed(run(1));
        }
        assert_eq!(shard.hints().try_iter().count(), 2);
        assert_eq!(shard.take_missed(), [run(1)]);
        assert!(shard.take_missed().is_empty());
    }

    #[test]
    fn a_thread_that_ends_leaves_nothing_behind() {
        let feed = Feed::default();
        let shard = feed.shard(2);
        shard.follow(run(1));
        drop(shard);
        assert!(!feed.is_followed(run(1)));
    }
}
