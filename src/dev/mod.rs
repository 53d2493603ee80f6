//! What `agent-runtime dev` adds so that nothing needs to be set up: a private PostgreSQL and a
//! scripted model provider.
//!
//! Not here: the command itself (`cli`), and anything that a production server uses.

mod account;
mod binaries;
pub mod cluster;
mod postmaster;
pub mod provider;

pub(crate) use binaries::{host_places as program_directories, major_version};
