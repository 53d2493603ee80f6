//! Server-sent events: a few threads serve all open streams of runs' progress.
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
mod command;
mod followed;
mod format;
mod options;
mod reader;
mod rights;
mod shard;
mod tail;

pub(in crate::http) use format::StreamData;
pub use options::Options;

use super::door;
use crate::authz::{Admission, RunReader};
use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::runtime::progress::feed::Feed;
use crate::store::Store;
use command::{Command, shard_of};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use reader::Reader;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

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
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Disconnected once every thread has ended.
    ended: Receiver<Infallible>,
    stopping: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
    options: Options,
}

impl Streams {
    /// Starts the threads `stream-N` and `stream-tail`, and with an admission `stream-access`.
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
        let open = Arc::new(AtomicUsize::new(0));
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
            let running = running.clone();
            threads.push(spawn(format!("stream-{number}"), move || {
                shard.run(&commands);
                drop(running);
            })?);
            shards.push(sender);
        }
        if let Some(admission) = admission {
            let access = access::Access {
                admission,
                store: store.clone(),
                shards: shards.clone(),
                stopping: Arc::clone(&stopping),
                log: log.clone(),
            };
            let running = running.clone();
            threads.push(spawn("stream-access".to_owned(), move || {
                access.run(&given);
                drop(running);
            })?);
        }
        let tail = tail::Tail {
            store: store.clone(),
            feed: feed.clone(),
            shards: shards.clone(),
            open: Arc::clone(&open),
            every: options.tail_every,
            stopping: Arc::clone(&stopping),
            log: log.clone(),
        };
        threads.push(spawn("stream-tail".to_owned(), move || {
            tail.run();
            drop(running);
        })?);
        Ok(Self {
            shards,
            threads: Mutex::new(threads),
            ended,
            stopping,
            open,
            options,
        })
    }

    /// Opens a stream of what follows event `after`.
    ///
    /// # Errors
    /// `overloaded` when too many streams wait to be taken up; `shutting-down`.
    pub fn follow(&self, may: RunReader, after: i64) -> Result<Following> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(stopping());
        }
        let (writer, body) = door::stream(self.options.buffer_bytes);
        let run_id = may.run().run_id;
        let shard = &self.shards[shard_of(run_id, self.shards.len())];
        let reader = Reader::new(writer, may, after, self.options.buffer_bytes);
        match shard.try_send(Command::Join(Box::new(reader))) {
            Ok(()) => Ok(Following(body)),
            Err(TrySendError::Full(_)) => Err(Error::new(
                Code::Overloaded,
                "Too many streams are being opened right now. Try again shortly.",
            )),
            Err(TrySendError::Disconnected(_)) => Err(stopping()),
        }
    }

    /// Streams that are served now.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Ends every stream so that its client comes back elsewhere, and joins the threads. False: one
    /// was still busy at the deadline, waiting for the database, and is left to itself.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.stopping.store(true, Ordering::Relaxed);
        for shard in &self.shards {
            // A full queue is being read: there will be room.
            let _ = shard.send_deadline(Command::Stop, deadline);
        }
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

fn stopping() -> Error {
    Error::new(Code::ShuttingDown, "The server is stopping. Connect again.")
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name)
        .stack_size(512 * 1024)
        .spawn(work)
        .map_err(Error::internal)
}
