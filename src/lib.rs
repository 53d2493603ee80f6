//! agent-runtime: runs agents and flows durably. See ARCHITECTURE.md for the code map.

pub mod config;
pub mod error;
pub mod ids;
pub mod secret;
