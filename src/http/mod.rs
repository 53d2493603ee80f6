//! HTTP: the door, the pipeline of every request, the route table, the API description, streams.
//!
//! rouille's types stay in this folder, and async code stays in `door`.

pub mod access;
pub mod context;
mod cors;
pub mod docs;
pub mod door;
pub mod faults;
pub mod input;
pub(crate) mod openapi;
pub mod output;
pub mod pipeline;
pub mod probes;
mod reply;
pub mod route;
mod span;
pub mod sse;
