//! Cancels statements that outlive their limit on the server and the client's patience.
//!
//! wait for ever. The server's `statement_timeout` ends what the server still serves; the kernel's
//! `tcp_user_timeout` ends a dead link; this ends what neither sees, as far as a cancel request
//! can. The door answers the client meanwhile and replaces the waiting thread.

use super::connect::Manager;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(500);

pub(super) struct Watchdog {
    limit: Duration,
    next: AtomicU64,
    loans: Mutex<HashMap<u64, Loan>>,
}

struct Loan {
    since: Instant,
    token: postgres::CancelToken,
}

/// Ends the watch when dropped.
pub(super) struct Watched {
    id: u64,
    watchdog: Arc<Watchdog>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watchdog.loans().remove(&self.id);
    }
}

impl Watchdog {
    pub(super) fn start(manager: Manager, limit: Duration, log: slog::Logger) -> Result<Arc<Self>> {
        let watchdog = Arc::new(Self {
            limit,
            next: AtomicU64::new(0),
            loans: Mutex::default(),
        });
        let watched = Arc::downgrade(&watchdog);
        std::thread::Builder::new()
            .name("store-watchdog".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || run(&watched, &manager, &log))
            .map_err(Error::internal)?;
        Ok(watchdog)
    }

    pub(super) fn watch(self: &Arc<Self>, token: postgres::CancelToken) -> Watched {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let since = Instant::now();
        self.loans().insert(id, Loan { since, token });
        Watched {
            id,
            watchdog: self.clone(),
        }
    }

    fn loans(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Loan>> {
        self.loans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those over the limit; their watch begins again, so that each is cancelled once a limit.
    fn overdue(&self) -> Vec<postgres::CancelToken> {
        let mut overdue = Vec::new();
        for loan in self.loans().values_mut() {
            if loan.since.elapsed() > self.limit {
                loan.since = Instant::now();
                overdue.push(loan.token.clone());
            }
        }
        overdue
    }
}

/// Ends when the store is gone.
fn run(watched: &Weak<Watchdog>, manager: &Manager, log: &slog::Logger) {
    loop {
        std::thread::sleep(PERIOD);
        let Some(watchdog) = watched.upgrade() else {
            return;
        };
        for token in watchdog.overdue() {
            slog::warn!(log, "A statement outlived its limit; cancelling it";
                "limitMs" => u64::try_from(watchdog.limit.as_millis()).unwrap_or(u64::MAX));
            if let Err(error) = manager.cancel(&token) {
                slog::warn!(log, "The statement could not be cancelled"; "error" => %error);
            }
        }
    }
}
