//! HTTP: the door, the pipeline of every request, the route table, the API description, streams.
//!
//! rouille's types stay in this folder, and async code stays in `door`.

pub mod access;
pub mod browser_access;
pub mod console;
pub mod context;
mod cors;
pub mod docs;
pub mod door;
pub mod external_calls;
pub mod faults;
pub(crate) mod flow_cookie;
pub mod input;
pub(crate) mod openapi;
pub(crate) mod origin;
pub mod output;
pub mod pipeline;
pub mod probes;
pub mod provider_calls;
mod reply;
pub mod route;
mod rule;
mod span;
pub mod sse;

pub(crate) use pipeline::nothing_here;
