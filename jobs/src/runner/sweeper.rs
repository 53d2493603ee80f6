//! The thread that has the database sweep up after jobs that are over.
//!
//! The rows of such jobs, and of their keys, moves and leases, stay in the indexes at the place where claims begin, until
//! somebody vacuums. The server's own process for that looks once a minute, and by then a claim of a busy queue goes
//! through hundreds of pages of them.
//!
//! Guarantees: at most one page of each table is vacuumed for each job that this process has claimed; nothing waits for this
//! thread, a stop neither. Not here: anything that has to happen.

use super::Core;
use crate::protocol::sweep;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::info;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Those that jobs come to and leave, each with its own count.
const TABLES: [&str; 4] = ["job_key_moves", "job_keys", "job_leases", "job_jobs"];
/// How often it is looked whether there is something to do.
const LOOK: Duration = Duration::from_secs(1);
/// After so many claimed jobs there is.
const JOBS: u64 = 5_000;

pub(super) fn run(core: &Core, stop: &Receiver<()>) {
    let mut tables = TABLES.map(Table::new);
    while stop.recv_timeout(LOOK) != Err(RecvTimeoutError::Disconnected) {
        let claimed = core.claimed();
        for table in &mut tables {
            if core.stopping() {
                return;
            }
            if claimed - table.looked >= JOBS {
                table.look(core, claimed);
            }
        }
    }
}

/// One of the queue's tables.
struct Table {
    name: &'static str,
    /// Claimed when it was vacuumed last, or could not be.
    swept: u64,
    /// Claimed when it was looked last whether it is to be.
    looked: u64,
}

impl Table {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            swept: 0,
            looked: 0,
        }
    }

    /// Vacuums it, if it is small enough for what has been claimed since.
    fn look(&mut self, core: &Core, claimed: u64) {
        self.looked = claimed;
        let pages = claimed - self.swept;
        match core.database.with(|client| sweep(client, self.name, pages)) {
            Ok(true) => self.swept = claimed,
            Ok(false) => {}
            Err(error) => {
                // Sooner or later the server does it by itself.
                self.swept = claimed;
                info!(core.log, "cannot vacuum a table of the queue"; "table" => self.name, "error" => %error);
            }
        }
    }
}

impl Core {
    /// Jobs that were claimed since the start.
    fn claimed(&self) -> u64 {
        let claimed = self.queues.iter().map(|queue| &queue.counts.claimed);
        claimed.map(|count| count.load(Ordering::Relaxed)).sum()
    }
}
