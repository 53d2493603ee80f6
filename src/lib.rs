//! agent-runtime: runs agents and flows durably. See ARCHITECTURE.md for the code map.

pub mod config;
pub mod dev;
pub mod error;
pub mod ids;
pub mod log;
pub mod model;
pub mod outbound;
pub mod proof;
pub mod runtime;
pub mod secret;
pub mod store;
