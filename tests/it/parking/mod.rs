//! Runs that wait, in the database: a parent waits for its children while they end, while it is cancelled and while its time
//! comes, statement by statement in any order, with crashes after each statement, and with a thousand children at once.
//!
//! The commits are those of the runtime, on connections of the tests' own. No runtime runs: the tests take jobs as the queue
//! does, and do what a program would.

mod approvals;
mod crashes;
mod flow_states;
mod hunts;
mod interleavings;
mod stepped;
mod trees;
mod world;
