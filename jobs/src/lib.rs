//! A job queue on PostgreSQL for synchronous Rust.
//!
//! A job is a row that is written in the caller's own transaction ([`enqueue`]). Threads of a
//! [`Runner`] claim rows in batches under a lease and call the handler that is registered for the
//! job's name. Then they end the claim: the row is deleted, put back for later, or marked dead.
//!
//! Guarantees:
//!
//! - A committed job runs until it is done, dead or cancelled. A cancelled job never starts again.
//!
//! - A job has at most one lease at a time, and only its holder can end the claim.
//!
//! - A concurrency key never has more jobs claimed than its cap.
//!
//! - A job can run more than once, because a process can die after the effect and before the
//!   completion. A handler that completes the job in the transaction of its effect
//!   ([`Claimed::complete_in`]) avoids that.
//!
//! Deliberately absent: NOTIFY, session state, async, cron, results, workflows, and any clock but
//! PostgreSQL's own.

mod admin;
mod backoff;
mod batch;
mod claimed;
mod database;
mod error;
mod job;
mod migrate;
pub mod protocol;
mod row;
mod runner;

pub use admin::{
    Cancelled, DeadJob, Depth, cancel, cancel_by_unique_key, dead_jobs, depth, purge_dead, revive,
    run_now, set_cap,
};
pub use backoff::Backoff;
pub use batch::CancelToken;
pub use claimed::Claimed;
pub use database::Database;
pub use error::{Error, Result};
pub use job::{Enqueued, Job, NewJob, Priority, enqueue, enqueue_many};
pub use migrate::{FUNCTIONS, MIGRATIONS, migrate};
pub use runner::{Builder, Handle, Later, Outcome, QueueOptions, Runner, Stats, Stopped};
