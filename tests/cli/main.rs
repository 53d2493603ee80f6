//! The binary itself, as a person or a service manager runs it: its words, its exit codes, its files
//! and its signals.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the environment and make threads of their own"
)]

mod commands;
mod dev;
mod harness;
mod serve;
