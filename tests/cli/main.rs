//! The binary itself, as a person or a service manager runs it: its words, its exit codes, its files
//! and its signals.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read the environment, make threads of their own, and fail by panicking"
)]

mod arguments;
mod commands;
mod dev;
mod dev_authorization;
mod dev_database;
mod documents;
mod flow_runs;
mod flows;
mod harness;
mod lists;
mod login;
mod page;
mod push;
mod quickstart;
mod readme;
mod serve;
mod setup;
mod webhooks;
