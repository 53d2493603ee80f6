//! Threads that run jobs. For each queue one that claims, those that call handlers, one that completes; for all of them one
//! that keeps leases, one that rescues what others left, and one that vacuums. Threads of handlers start when they are
//! needed, up to their number; all end on a stop.
//!
//! Data flows one way: claimer → thread pool → handlers → bounded channel → completer. A queue never has more jobs claimed
//! than it has threads and prefetch free.
//!
//! Imports point one way too: `builder` starts every thread, the threads know `state` and not each other.

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
