//! Integration tests: the server in process behind its real door, a real Postgres, real clients.
//! A file a noun, as in `src/api`; `harness` is what they stand on.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the environment and make threads of their own"
)]

mod harness;

mod cancel;
mod cors;
mod idempotency;
mod projects;
mod provider_faults;
mod public_tokens;
mod routes;
mod runs;
mod sql;
mod streams;
mod tokens;
mod tool_calls;
