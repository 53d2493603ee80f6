//! Whether the process makes progress. The service manager's watchdog and `/healthz` depend on it
//! (`useful-watchdog`).
//!
//! The parts are the door's thread, the request threads, the pool of database connections, the audit
//! writer, and the threads that nothing replaces (`threads`). A part is stuck if it has done nothing for
//! longer than any of its waits may take; such a thread, if it ended by a panic.
//! If the part waits for the database, the database is first asked on a fresh connection. Only if
//! that answers would a restart help, and only then does the watchdog fail. A database that is
//! unreachable or hangs never causes a restart. Neither does a lock that somebody holds in it,
//! because each wait for that ends with an error, which is an answer.
//!
//! Not here: whether the server can take work (`probes`, `/readyz`).

use crate::audit::Audit;
use crate::error::{Error, Result};
use crate::http::door::Door;
use crate::http::probes::Probes;
use crate::store;
use crate::store::connect::Manager;
use crate::threads;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// The door's thread turns at least once a second.
const DOOR: Duration = Duration::from_secs(10);
/// How long a fresh connection may take to answer.
const ASK: Duration = Duration::from_secs(5);
/// Looks that must find the same before it counts: after a moment without a processor, all parts are
/// late.
const LOOKS: u32 = 5;

/// A part of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The door's thread.
    Door,
    /// All threads that answer requests, and those in their place.
    RequestThreads,
    /// The connections to the database.
    Pool,
    /// The thread that writes decisions.
    AuditWriter,
    /// A thread that nothing replaces ended by a panic.
    Thread,
}

impl Part {
    /// In a sentence, after "stuck: ".
    pub const fn text(self) -> &'static str {
        match self {
            Self::Door => "the door's thread",
            Self::RequestThreads => "every request thread",
            Self::Pool => "the pool of database connections",
            Self::AuditWriter => "the audit writer",
            Self::Thread => "a thread that ended by a panic",
        }
    }
}

/// What was seen of the parts.
#[derive(Debug, Clone, Copy)]
struct Signs {
    /// How long the door's thread has not turned; none where it is stopping.
    door_still: Option<Duration>,
    /// How long every request thread has been held beyond its deadline.
    threads_held: Duration,
    /// How long no connection of the pool has answered; none before the server is ready.
    pool_silent: Option<Duration>,
    writer_stuck: bool,
    /// A thread that nothing replaces ended by a panic.
    has_lost_thread: bool,
}

impl Signs {
    fn symptom(&self, silence: Duration) -> Option<Part> {
        let still = self.door_still?;
        if still > DOOR {
            Some(Part::Door)
        } else if self.has_lost_thread {
            Some(Part::Thread)
        } else if self.pool_silent.is_some_and(|time| time > silence) {
            Some(Part::Pool)
        } else if self.threads_held > silence {
            Some(Part::RequestThreads)
        } else {
            self.writer_stuck.then_some(Part::AuditWriter)
        }
    }
}

/// What is known; the thread `watchdog` keeps it true.
pub(super) struct Watchdog(Mutex<State>);

struct State {
    looked_at: Instant,
    pool_answered_at: Option<Instant>,
    stuck: Option<Part>,
}

/// How long the connections to this database may be silent before that counts: a statement may take
/// the first, its cancel goes out after both, and has as long again.
pub(super) fn silence(database: &store::Options) -> Duration {
    2 * (database.statement_timeout + database.checkout_timeout)
}

/// What the thread looks at.
pub(super) struct Watched {
    pub(super) silence: Duration,
    pub(super) door: Arc<Mutex<Option<Door>>>,
    pub(super) audit: Audit,
    pub(super) manager: Manager,
    pub(super) probes: Arc<Probes>,
    /// Disconnected when the server stops.
    pub(super) stopped: Receiver<()>,
    pub(super) log: slog::Logger,
}

impl Watchdog {
    /// Starts the thread, which ends with the server.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(watched: Watched) -> Result<Arc<Self>> {
        let watchdog = Arc::new(Self(Mutex::new(State {
            looked_at: Instant::now(),
            pool_answered_at: None,
            stuck: None,
        })));
        let kept = Arc::clone(&watchdog);
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || kept.keep(&watched))
            .map_err(Error::internal)?;
        Ok(watchdog)
    }

    /// The pool has just answered.
    pub(super) fn pool_answered(&self) {
        self.lock().pool_answered_at = Some(Instant::now());
    }

    /// The part that is stuck, so that a restart would help.
    pub(super) fn stuck(&self) -> Option<Part> {
        self.lock().stuck
    }

    /// Whether the process is alive. Not so either where its own thread has not looked for long.
    pub(super) fn beats(&self) -> bool {
        let state = self.lock();
        state.stuck.is_none() && state.looked_at.elapsed() < 2 * (PERIOD + ASK)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, watched: &Watched) {
        let mut question = Question(None);
        let mut suspected = (None, 0);
        let mut threads_free_at = Instant::now();
        while watched.stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            let signs = self.signs(watched, &mut threads_free_at);
            let part = signs.symptom(watched.silence);
            // The others may wait for the database.
            let is_sure = |part: &Part| matches!(part, Part::Door | Part::Thread);
            let part = part.filter(|part| is_sure(part) || question.ask(&watched.manager));
            suspected = match suspected {
                (before, looks) if before == part => (part, looks + 1),
                _ => (part, 1),
            };
            let stuck = part.filter(|_| suspected.1 >= LOOKS);
            let before = {
                let mut state = self.lock();
                state.looked_at = Instant::now();
                std::mem::replace(&mut state.stuck, stuck)
            };
            if before != stuck {
                say(watched, stuck);
            }
        }
    }

    fn signs(&self, watched: &Watched, threads_free_at: &mut Instant) -> Signs {
        let door = watched.door.try_lock().ok();
        let door = door.and_then(|door| door.as_ref().map(Door::stats));
        if door.as_ref().is_none_or(|door| door.request_threads > 0) {
            *threads_free_at = Instant::now();
        }
        Signs {
            door_still: door.map(|door| door.still),
            threads_held: threads_free_at.elapsed(),
            pool_silent: self.lock().pool_answered_at.map(|at| at.elapsed()),
            writer_stuck: watched.audit.is_stuck(),
            has_lost_thread: threads::lost().is_some(),
        }
    }
}

fn say(watched: &Watched, stuck: Option<Part>) {
    watched.probes.set_stuck(stuck.map(Part::text));
    match stuck {
        Some(part) => {
            slog::error!(watched.log, "A part of the process is stuck while the database answers: the service manager's watchdog is not fed until the part works again"; "part" => part.text());
        }
        None => slog::info!(watched.log, "No part of the process is stuck any more"),
    }
}

/// Whether the database answers on a connection of its own: one to a frozen database hangs, and then
/// the question stays under way.
struct Question(Option<Receiver<bool>>);

impl Question {
    fn ask(&mut self, manager: &Manager) -> bool {
        let answer = match self.0.take() {
            Some(answer) => answer,
            None => match begin(manager) {
                Some(answer) => answer,
                None => return false,
            },
        };
        match answer.recv_timeout(ASK) {
            Ok(answers) => answers,
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => {
                self.0 = Some(answer);
                false
            }
        }
    }
}

/// None: the system gives no thread.
fn begin(manager: &Manager) -> Option<Receiver<bool>> {
    let manager = manager.clone();
    let (tell, answer) = bounded(1);
    std::thread::Builder::new()
        .name("watchdog-ask".to_owned())
        .stack_size(512 * 1024)
        .spawn(move || {
            let answers = manager
                .client()
                .is_ok_and(|mut client| client.is_valid(ASK).is_ok());
            // Nobody listens any more where the server has stopped.
            let _ = tell.send(answers);
        })
        .ok()?;
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(20);
    const SECOND: Duration = Duration::from_secs(1);
    const WELL: Signs = Signs {
        door_still: Some(SECOND),
        threads_held: Duration::ZERO,
        pool_silent: Some(SECOND),
        writer_stuck: false,
        has_lost_thread: false,
    };

    #[test]
    fn a_part_is_stuck_once_it_was_still_for_longer_than_its_waits() {
        let symptom = |signs: Signs| signs.symptom(SILENCE);
        assert_eq!(symptom(WELL), None);
        let door_still = Some(DOOR + SECOND);
        assert_eq!(symptom(Signs { door_still, ..WELL }), Some(Part::Door));
        for (pool_silent, expected) in [
            (None, None),
            (Some(SILENCE), None),
            (Some(SILENCE + SECOND), Some(Part::Pool)),
        ] {
            assert_eq!(
                symptom(Signs {
                    pool_silent,
                    ..WELL
                }),
                expected
            );
        }
        for (threads_held, expected) in [
            (SILENCE, None),
            (SILENCE + SECOND, Some(Part::RequestThreads)),
        ] {
            let held = Signs {
                threads_held,
                ..WELL
            };
            assert_eq!(symptom(held), expected);
        }
        let writer_stuck = true;
        let expected = Some(Part::AuditWriter);
        assert_eq!(
            symptom(Signs {
                writer_stuck,
                ..WELL
            }),
            expected
        );
        let has_lost_thread = true;
        let expected = Some(Part::Thread);
        assert_eq!(
            symptom(Signs {
                has_lost_thread,
                ..WELL
            }),
            expected
        );
    }

    #[test]
    fn a_server_that_stops_is_not_stuck() {
        let stopping = Signs {
            door_still: None,
            threads_held: 2 * SILENCE,
            pool_silent: Some(2 * SILENCE),
            writer_stuck: true,
            has_lost_thread: true,
        };
        assert_eq!(stopping.symptom(SILENCE), None);
    }

    #[test]
    fn a_database_that_takes_no_connection_does_not_answer() {
        let nobody = tempfile::tempdir().unwrap();
        let options = store::Options {
            url: crate::secret::Secret::new(format!("host={} user=a", nobody.path().display())),
            pool_size: 2,
            checkout_timeout: SECOND,
            outage: Default::default(),
            statement_timeout: SECOND,
        };
        let manager = Manager::new(&options).unwrap();
        let mut question = Question(None);
        assert!(!question.ask(&manager));
        assert!(question.0.is_none(), "it was answered at once");
    }

    /// A server that takes connections and never says a word, as one whose processes were stopped.
    #[test]
    fn a_database_that_stands_still_does_not_answer_and_is_asked_once() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let options = store::Options {
            url: crate::secret::Secret::new(format!(
                "postgres://a@127.0.0.1:{port}/b?sslmode=disable"
            )),
            pool_size: 2,
            checkout_timeout: SECOND,
            outage: Default::default(),
            statement_timeout: SECOND,
        };
        let manager = Manager::new(&options).unwrap();
        let mut question = Question(None);
        assert!(!question.ask(&manager));
        assert!(question.0.is_some(), "it is still under way");
        let (first, _) = silent.accept().unwrap();
        assert!(!question.ask(&manager));
        silent.set_nonblocking(true).unwrap();
        assert!(silent.accept().is_err(), "nobody asked a second time");
        drop(first);
        assert!(!question.ask(&manager), "it hung up without an answer");
        assert!(question.0.is_none());
    }
}
