//! `runs hold`, `runs release`: hold all runs, and release them, directly in the database.

use super::{Outcome, World, database, dev, terminal};
use crate::store::runs;
use clap::Args;

pub(super) const HOLD_EXAMPLES: &str = "\
Examples:
  agent-runtime restore --replace /var/backups/agent-runtime/2027-01-31
  agent-runtime runs hold
  systemctl start agent-runtime

No run goes on, on any replica, until agent-runtime runs release. New runs are accepted and wait. The database is that of \
SVC_DATABASE_URL, else the private one of a running `dev`. A running server notices within about a second. A run that it is \
executing goes on until it ends or waits.";

pub(super) const RELEASE_EXAMPLES: &str = "\
Examples:
  agent-runtime runs release

Running servers notice within about a second.";

/// Which database.
#[derive(Args)]
pub(super) struct Database {
    #[command(flatten)]
    dev: dev::Found,
}

/// Holds all runs, or releases them.
///
/// # Errors
/// The database cannot be reached, or its schema has another version.
pub(super) fn set(world: &World, which: &Database, is_held: bool) -> Outcome {
    let world = &which.dev.world(world)?;
    let settings = world.settings()?;
    let log = super::serve::open_log(&world.vars, &settings, &world.clock)?;
    let now = world.clock.now();
    let changed = database::open(&settings, log)?.transact(|tx| match is_held {
        true => runs::hold(tx, now),
        false => runs::release(tx),
    })?;
    terminal::say(match (is_held, changed) {
        (true, true) => "All runs are held. To let them go on: agent-runtime runs release",
        (true, false) => {
            "All runs were held already. To let them go on: agent-runtime runs release"
        }
        (false, true) => "Runs go on.",
        (false, false) => "Runs were not held.",
    })
}
