//! The thread that returns jobs to the queue when their leases have run out, whichever process held
//! them.

use super::state::{RunnerState, warn_unless_away};
use crate::backoff::jittered;
use crate::protocol::rescue;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use slog::info;
use std::time::{Duration, Instant};

const LEASES_A_ROUND: usize = 100;

/// Whether leases are spared. While the database was away nobody could renew one. Once it is back, every process has the
/// time of one lease to do so.
#[derive(Default)]
struct Amnesty {
    away: bool,
    until: Option<Instant>,
}

impl Amnesty {
    /// Asks the database for something that a renewal needs too, and learns from how that goes.
    fn holds(&mut self, runner: &RunnerState) -> bool {
        let asked_at = Instant::now();
        let asked = runner
            .lease_database
            .with(|client| Ok(client.simple_query("SELECT FROM job_leases LIMIT 1")?));
        if let Err(error) = asked {
            warn_unless_away!(runner, "cannot look for leases that ran out"; "error" => #error);
            self.away = true;
            return true;
        }
        let now = Instant::now();
        if std::mem::take(&mut self.away) || now - asked_at > runner.lease / 3 {
            self.until = Some(now + runner.lease);
        }
        self.until.is_some_and(|until| now < until)
    }
}

pub(super) fn run(runner: &RunnerState, stop: &Receiver<()>) {
    let pause = (runner.lease / 3).min(Duration::from_secs(10));
    let mut amnesty = Amnesty::default();
    while stop.recv_timeout(jittered(pause, 20)) != Err(RecvTimeoutError::Disconnected) {
        if amnesty.holds(runner) {
            continue;
        }
        match runner
            .lease_database
            .with(|client| rescue(client, LEASES_A_ROUND))
        {
            Ok(rescued) if rescued.is_empty() => {}
            Ok(rescued) => {
                info!(runner.log, "rescued jobs of leases that ran out"; "jobs" => rescued.len());
                for queue in &runner.queues {
                    queue.wake();
                }
            }
            Err(error) => {
                warn_unless_away!(runner, "cannot look for leases that ran out"; "error" => #error)
            }
        }
    }
}
