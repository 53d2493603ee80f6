//! Faults from outside: the real program as a process of its own, killed, stopped and starved while
//! it carries runs on; its database restarted, killed and stopped under it.
//!
//! So too its authorization server, while permissions change and decisions are recorded.
//!
//! What must hold of runs afterwards is in [`check`]. Each test prints its figures in one line that
//! begins with `crash:`; `CRASH_SEED` repeats its random moments. `CRASH_KILLS`,
//! `CRASH_STOP_SECONDS`, `CRASH_HURT_SECONDS` and `CRASH_SECONDS` make it a soak (`tests/soak/run`).

#![allow(
    clippy::unwrap_used,
    reason = "this is a test throughout, its helpers included"
)]

mod access;
mod approvals;
mod check;
mod clock;
mod database;
mod deaths;
mod decisions;
mod descriptors;
mod flows;
mod follow;
mod full;
mod guardrails;
mod identities;
#[path = "../it/harness/identity_provider.rs"]
#[allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "it is the harness of the tests in one process, which use more of it"
)]
mod identity_provider;
mod kills;
#[path = "../it/harness/openfga.rs"]
#[allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "it is the harness of the tests in one process, which use more of it"
)]
mod openfga;
mod permissions;
mod probe;
mod proxy;
mod random;
mod replicas;
mod reviewers;
mod rolling;
mod server;
mod sign_ins;
mod stop;
mod tool;
mod trap;
mod wait;
mod watchdog;
mod webhooks;
mod world;

use std::time::Duration;
use wait::{PATIENCE, eventually};
use world::Database;

/// A number from the environment, for soaks.
#[allow(clippy::disallowed_methods, reason = "the test's own settings")]
fn setting(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => otherwise,
    }
}

/// A line of figures that a person, and the soak, reads.
#[allow(clippy::print_stdout, reason = "figures are what a soak is for")]
fn report(what: &str, figures: &str) {
    println!("crash: {what} {figures}");
}

/// The middle and the largest of some times, in milliseconds.
fn middle_and_most(times: &mut [Duration]) -> (u128, u128) {
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    let most = times.last().copied().unwrap_or_default();
    (middle.as_millis(), most.as_millis())
}
