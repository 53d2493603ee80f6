//! Integration tests: the server in process behind its real door, a real Postgres, real clients.
//! A file a noun, as in `src/api`; `harness` is what they stand on.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read the environment, make threads of their own, and fail by panicking"
)]

mod harness;

mod agents;
mod conversations;
mod model_providers;
mod projects;
mod routes;
mod sql;
mod tokens;
mod tools;
