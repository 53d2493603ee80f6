//! Whether an operator holds all runs, as this process knows it.
//!
//! It is read before jobs of runs are claimed, at most once a second. Until it was read for the first time runs count as held,
//! so that after a restore nothing is called by mistake. While the database does not answer, what was read last holds.
//!
//! A run that is under way in a thread when the hold begins goes on until it waits or ends.

use crate::store::{Store, runs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Hold {
    is_held: AtomicBool,
    /// When it was read.
    seen: Mutex<Option<Instant>>,
}

impl Default for Hold {
    fn default() -> Self {
        Self {
            is_held: AtomicBool::new(true),
            seen: Mutex::default(),
        }
    }
}

impl Hold {
    /// As it was read last.
    pub(super) fn last(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// Reads it again if that is due.
    pub(super) fn look(&self, store: &Store, log: &slog::Logger) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return self.last();
        }
        let read = store
            .session()
            .and_then(|mut session| runs::is_held(&mut session));
        if let Ok(is_held) = read {
            let is_first = seen.is_none();
            if self.is_held.swap(is_held, Ordering::Relaxed) != is_held || is_first && is_held {
                match is_held {
                    true => slog::warn!(
                        log,
                        "All runs are held until they are released: agent-runtime runs release"
                    ),
                    false if is_first => {}
                    false => slog::info!(log, "Runs go on: they are held no longer"),
                }
            }
            *seen = Some(Instant::now());
        } else if seen.is_some() {
            *seen = Some(Instant::now());
        }
        self.last()
    }
}
