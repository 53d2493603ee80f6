//! The tests of the crate against a real Postgres. `cargo test -p jobs`.

#![allow(clippy::unwrap_used, reason = "a test's helper fails its test")]

mod admin;
mod claims;
mod enqueue;
mod faults;
mod harness;
mod keys;
mod model;
mod plans;
mod protocol;
mod runner;
