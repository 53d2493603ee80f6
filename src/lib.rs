//! agent-runtime: runs agents and flows durably. See ARCHITECTURE.md for the code map.

pub mod error;
pub mod http;
pub mod ids;
pub mod secret;
