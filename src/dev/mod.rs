//! What `agent-runtime dev` adds so that nothing needs to be set up: a private PostgreSQL, a scripted
//! model provider, and OpenFGA if it is asked for.
//!
//! Not here: the command itself (`cli`), and anything that a production server uses.

mod account;
mod binaries;
pub mod cluster;
pub mod failure;
pub mod openfga;
mod postmaster;
pub mod provider;

pub(crate) use binaries::{host_places as program_directories, major_version};
