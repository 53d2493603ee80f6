//! The thread that vacuums the queue's tables.
//!
//! Dead rows of jobs, keys, moves and leases stay in the indexes until a vacuum, exactly where
//! claims begin. Autovacuum looks once a minute. By then a claim of a busy queue reads through
//! hundreds of pages of them.
//!
//! Guarantees: it vacuums at most one page of each table for each job that this process has
//! claimed. Nothing waits for this thread, not even a stop. Not here: anything that has to happen.

use super::state::RunnerState;
use crate::protocol::vacuum;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::info;
use std::time::Duration;

/// Each has its own count.
const TABLES: [&str; 4] = ["job_key_moves", "job_keys", "job_leases", "job_jobs"];
/// How often it looks whether there is something to do.
const LOOK: Duration = Duration::from_secs(1);
/// There is, after so many claimed jobs.
const JOBS: u64 = 5_000;

pub(super) fn run(runner: &RunnerState, stop: &Receiver<()>) {
    let mut tables = TABLES.map(Table::new);
    while stop.recv_timeout(LOOK) != Err(RecvTimeoutError::Disconnected) {
        let claimed = runner.claimed();
        for table in &mut tables {
            if runner.is_stopping() {
                return;
            }
            if claimed - table.looked >= JOBS {
                table.look(runner, claimed);
            }
        }
    }
}

/// One of the queue's tables.
struct Table {
    name: &'static str,
    /// Claimed when it was vacuumed last, or could not be.
    vacuumed: u64,
    /// Claimed when it was looked last whether it is to be.
    looked: u64,
}

impl Table {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            vacuumed: 0,
            looked: 0,
        }
    }

    /// Vacuums it, if it is small enough for what has been claimed since.
    fn look(&mut self, runner: &RunnerState, claimed: u64) {
        self.looked = claimed;
        let pages = claimed - self.vacuumed;
        match runner
            .database
            .with(|client| vacuum(client, self.name, pages))
        {
            Ok(true) => self.vacuumed = claimed,
            Ok(false) => {}
            Err(error) => {
                // Sooner or later the server does it by itself.
                self.vacuumed = claimed;
                info!(runner.log, "cannot vacuum a table of the queue"; "table" => self.name, "error" => #error);
            }
        }
    }
}
