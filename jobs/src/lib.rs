//! A job queue on PostgreSQL for synchronous Rust.
//!
//! A job is a row written in the caller's own transaction ([`enqueue`]); threads of a [`Runner`] claim rows in batches
//! under a lease, call the handler registered for the job's name, and settle the row: delete it, put it back for
//! later, or move it to the dead.
//!
//! Guarantees: a job that was committed runs until it is done, dead or cancelled; at most one lease on a job stands at
//! a time, and only its holder can settle the job; a cancelled job never starts again; a concurrency key never has more
//! jobs claimed than its cap. A job can run more than once (a process can die after the effect and before the
//! settlement), unless the handler settles it in the transaction of its effect ([`Claimed::complete_in`]).
//!
//! Deliberately absent: NOTIFY, session state, async, cron, results, workflows, and any clock but Postgres's own.

mod admin;
mod backoff;
mod batch;
mod claimed;
mod database;
mod error;
mod job;
mod migrate;
pub mod protocol;
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
