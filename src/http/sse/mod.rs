//! Server-sent events: a few threads serve all open streams of runs' progress, one those of reviewers (`reviewers`), and one those
//! of hints (`changes`).
//!
//! Guarantees: a reader gets every durable event after the one that it names, in order, each once.
//! Then it gets an explicit last event: `stream.end` with the reason, or `stream.reset` if it
//! cannot keep up. Streamed text comes in between, without an id, by step, attempt and offset. A
//! stream ends with its credential. A slow reader costs its own bounded buffer and nobody else's
//! time.
//!
//! The truth is in the database's events. Hints, from this process's feed or from reading other
//! replicas' events, only say where to look (`wake-ups-are-hints`).
//!
//! Format: WHATWG server-sent events. `id` is the event's number in the run, `event` its kind,
//! `data` one line of JSON.

mod access;
mod approval_events;
mod changes;
mod command;
mod followed;
mod followers;
mod format;
mod options;
mod outgoing;
mod reader;
mod reviewers;
mod rights;
mod room;
mod settled;
mod shard;
mod tail;

pub(in crate::http) use approval_events::ApprovalStreamData;
pub(in crate::http) use changes::ChangeStreamData;
pub(in crate::http) use format::StreamData;
pub use options::{Options, tenant_streams};

use super::door;
use crate::authz::{Admission, ChangeFollower, ReviewerFollower, RunReader};
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::runtime::progress::feed::Feed;
use crate::store::Store;
use crate::threads;
use changes::ToChanges;
use command::{Command, shard_of};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use reader::Reader;
use room::Room;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use uuid::Uuid;

/// Streams that wait to be taken up by a thread, at most.
const JOINS: usize = 1024;

/// Hints that wait for one thread, at most.
const HINTS: usize = 16_384;

/// A stream on its way to the door.
pub struct Following(door::StreamBody);

impl Following {
    pub(super) fn into_body(self) -> door::StreamBody {
        self.0
    }
}

/// Every open stream.
pub struct Streams {
    shards: Vec<Sender<Command>>,
    followers: Followers,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Disconnected once every thread has ended.
    ended: Receiver<Infallible>,
    stopping: Arc<AtomicBool>,
    /// Streams of runs.
    open: Arc<AtomicUsize>,
    room: Room,
    options: Options,
}

/// The threads whose readers follow more than a run.
struct Followers {
    reviewers: Sender<reviewers::Command>,
    changes: Sender<changes::Command>,
    to_changes: ToChanges,
    /// Their streams.
    open: Arc<AtomicUsize>,
}

/// What these threads need.
struct FollowerParts<'a> {
    options: &'a Options,
    store: &'a Store,
    clock: &'a Clock,
    admission: Option<Arc<Admission>>,
    log: &'a slog::Logger,
}

/// Starts `stream-changes` and `stream-reviewers`.
fn start_followers(
    parts: FollowerParts<'_>,
    running: &Sender<Infallible>,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<Followers> {
    let FollowerParts {
        options,
        store,
        clock,
        admission,
        log,
    } = parts;
    let open = Arc::<AtomicUsize>::default();
    let (changes, commands) = bounded(JOINS);
    let to_changes = ToChanges::new(changes.clone());
    let own = (to_changes.clone(), Arc::clone(&open));
    let thread = changes::Changes::new(options, store, clock, own, log);
    let work = move || thread.run(&commands);
    threads.push(spawn("stream-changes", running, work)?);
    let (reviewers, commands) = bounded(JOINS);
    let thread = reviewers::Reviewers::new(reviewers::Parts {
        options,
        store,
        clock,
        admission,
        open: Arc::clone(&open),
        own: reviewers.clone(),
        changes: to_changes.clone(),
        log,
    });
    let work = move || thread.run(&commands);
    threads.push(spawn("stream-reviewers", running, work)?);
    Ok(Followers {
        reviewers,
        changes,
        to_changes,
        open,
    })
}

impl Streams {
    /// Starts the threads `stream-N`, `stream-tail`, `stream-reviewers` and `stream-changes`, and with an admission
    /// `stream-access`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        options: Options,
        store: &Store,
        clock: &Clock,
        feed: &Feed,
        admission: Option<Arc<Admission>>,
        log: &slog::Logger,
    ) -> Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let open = Arc::<AtomicUsize>::default();
        let (mut shards, mut threads) = (Vec::new(), Vec::new());
        let (running, ended) = bounded::<Infallible>(0);
        let count = options.threads.max(1);
        let (rounds, given) = bounded(count);
        for number in 0..count {
            let (sender, commands) = bounded(JOINS);
            let mut shard = shard::Shard::new(
                options.clone(),
                store.clone(),
                clock.clone(),
                feed.shard(HINTS),
                Arc::clone(&open),
                log.clone(),
            );
            shard.access = admission.is_some().then(|| access::ToAccess {
                rounds: rounds.clone(),
                shard: number,
                pending: Arc::default(),
            });
            let name = format!("stream-{number}");
            threads.push(spawn(&name, &running, move || shard.run(&commands))?);
            shards.push(sender);
        }
        let parts = FollowerParts {
            options: &options,
            store,
            clock,
            admission: admission.clone(),
            log,
        };
        let followers = start_followers(parts, &running, &mut threads)?;
        if let Some(admission) = admission {
            let access = access::Access {
                admission,
                store: store.clone(),
                shards: shards.clone(),
                stopping: Arc::clone(&stopping),
                log: log.clone(),
            };
            let work = move || access.run(&given);
            threads.push(spawn("stream-access", &running, work)?);
        }
        let tail = tail::Tail {
            store: store.clone(),
            feed: feed.clone(),
            shards: shards.clone(),
            open: Arc::clone(&open),
            changes: followers.to_changes.clone(),
            every: options.tail_every,
            overlap: options.longest_transaction,
            stopping: Arc::clone(&stopping),
            log: log.clone(),
        };
        threads.push(spawn("stream-tail", &running, move || tail.run())?);
        Ok(Self {
            shards,
            followers,
            threads: Mutex::new(threads),
            ended,
            stopping,
            open,
            room: Room::new(&options),
            options,
        })
    }

    /// The two ends of a new stream of this tenant, if there is room for it.
    fn begin(
        &self,
        tenant_id: Uuid,
        public_root_id: Option<Uuid>,
    ) -> Result<(door::StreamWriter, door::StreamBody)> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(stopping());
        }
        let place = self.room.take(tenant_id, public_root_id)?;
        let (writer, body) = door::stream(self.options.buffer_bytes);
        Ok((writer, body.holding(place)))
    }

    /// Opens a stream of what follows event `after`.
    ///
    /// # Errors
    /// `too-many-requests` when the tenant, or the run's public tokens, have no room; `overloaded` when too many streams
    /// wait to be taken up; `shutting-down`.
    pub fn follow(&self, may: RunReader, after: i64) -> Result<Following> {
        let (run, is_public) = (may.run(), may.token_id().is_none());
        let run_id = run.run_id;
        // The token of a run opens those below it, however many there are.
        let public_root_id = is_public.then_some(run.root_run_id);
        let (writer, body) = self.begin(run.tenant_id, public_root_id)?;
        let shard = &self.shards[shard_of(run_id, self.shards.len())];
        let reader = Reader::new(writer, may, after, self.options.buffer_bytes);
        joined(shard.try_send(Command::Join(Box::new(reader))), body)
    }

    /// Opens a stream of what happens to approvals that a reviewer may see: after a position, or from now on.
    ///
    /// # Errors
    /// As [`Streams::follow`].
    pub fn follow_approvals(&self, may: ReviewerFollower, after: Option<i64>) -> Result<Following> {
        let (writer, body) = self.begin(may.person().0, None)?;
        let follower = reviewers::Follower::new(writer, may, after, self.options.buffer_bytes);
        let join = reviewers::Command::Join(Box::new(follower));
        joined(self.followers.reviewers.try_send(join), body)
    }

    /// Opens a stream of hints: which objects change, of what the follower may read.
    ///
    /// # Errors
    /// As [`Streams::follow`].
    pub fn follow_changes(&self, may: ChangeFollower) -> Result<Following> {
        let (writer, body) = self.begin(may.person().0, None)?;
        let follower = changes::Follower::new(writer, may, self.options.buffer_bytes);
        let join = changes::Command::Join(Box::new(follower));
        joined(self.followers.changes.try_send(join), body)
    }

    /// Streams that are served now.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed) + self.followers.open.load(Ordering::Relaxed)
    }

    /// Ends every stream so that its client comes back elsewhere, and joins the threads. False: one
    /// was still busy at the deadline, waiting for the database, and is left to itself.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.stopping.store(true, Ordering::Relaxed);
        for shard in &self.shards {
            // A full queue is being read: there will be room.
            let _ = shard.send_deadline(Command::Stop, deadline);
        }
        let followers = &self.followers;
        let _ = followers
            .reviewers
            .send_deadline(reviewers::Command::Stop, deadline);
        let _ = followers
            .changes
            .send_deadline(changes::Command::Stop, deadline);
        // Nothing is ever sent: the last thread that ends disconnects it.
        let ended = self.ended.recv_deadline(deadline) == Err(RecvTimeoutError::Disconnected);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if ended || thread.is_finished() {
                let _ = thread.join();
            }
        }
        ended
    }
}

fn joined<C>(sent: Result<(), TrySendError<C>>, body: door::StreamBody) -> Result<Following> {
    match sent {
        Ok(()) => Ok(Following(body)),
        Err(TrySendError::Full(_)) => Err(Error::new(
            Code::Overloaded,
            "Too many streams are being opened right now. Try again shortly.",
        )),
        Err(TrySendError::Disconnected(_)) => Err(stopping()),
    }
}

fn stopping() -> Error {
    Error::new(Code::ShuttingDown, "The server is stopping. Connect again.")
}

/// Starts a thread, which holds `running` until its work ends.
fn spawn(
    name: &str,
    running: &Sender<Infallible>,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let running = running.clone();
    let work = move || {
        work();
        drop(running);
    };
    threads::start(name, Some(512 * 1024), work).map_err(Error::internal)
}
