//! agent-runtime: runs agents and flows durably, streams their progress, and keeps every step on
//! disk.
//!
//! `ARCHITECTURE.md` has the code map and the invariants. Imports between these modules point
//! downwards only (`one-way-imports`).

pub mod api;
pub mod audit;
pub mod authn;
pub mod authz;
pub mod cli;
pub mod concurrency_limit;
pub mod config;
pub mod dev;
pub mod error;
pub mod failure;
pub mod flows;
pub mod guardrails;
pub mod http;
pub mod ids;
pub mod json;
pub mod log;
pub mod metrics;
pub mod model;
pub mod oidc;
pub mod outbound;
pub mod proof;
pub mod runtime;
pub mod secret;
pub mod secrets;
pub mod server;
pub mod store;
pub mod text;
pub mod threads;
pub mod tools;
pub mod traces;
pub mod uri;
pub mod webhooks;
