//! The threads that run jobs. Each queue has one that claims, a pool that calls handlers, and one
//! that completes. The runner has one that keeps leases, one that rescues jobs of dead processes,
//! and one that vacuums. Handlers' threads start when they are needed, up to their number. All end
//! on a stop.
//!
//! Data flows one way: claimer → thread pool → handlers → bounded channel → completer. A queue
//! never has more jobs claimed than it has free threads and prefetch.
//!
//! Imports point one way too: `builder` starts every thread, and the threads import `state` but not
//! each other.

mod builder;
mod claimer;
mod cleaner;
mod completer;
mod handle;
mod job_end;
mod leases;
mod options;
mod outcome;
mod rescuer;
mod shares;
mod state;
mod thread;
mod thread_pool;
mod worker;

pub use builder::Builder;
pub use handle::{Handle, Runner, Stopped};
pub(crate) use job_end::JobEnd;
pub use job_end::Later;
pub use options::QueueOptions;
pub use outcome::Outcome;
pub use state::Stats;
