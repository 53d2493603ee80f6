//! The only way out of the process: every outbound connection, except to PostgreSQL, is opened
//! here.
//!
//! A URL is parsed once and its host resolved. Each address is checked against the caller's
//! [`Policy`], and the connection goes to a checked address. Redirects are returned as answers, and
//! proxy variables of the environment are ignored; the operator can name a proxy ([`proxy`]). Each exchange has three deadlines (connection,
//! first byte, whole) and a cap on what is read. Specification sections 1.4 and 6.1.
//!
//! Not here: the content of requests (`model`, `webhooks`, `tools`), and retries, which are durable
//! and the callers'.

pub mod address;
mod cancel;
mod client;
mod coding;
mod endpoints;
mod explain;
mod failure;
mod interrupted;
mod own;
mod pem;
mod policy;
mod proxy;
mod refusal;
mod resolver;
mod text;
mod transport;
mod urls;
mod way_out;
mod webhook;

pub use crate::config::ForwardProxy;
pub use cancel::{CancelHandle, Switch};
pub use client::{Client, Outgoing, Response, Stream};
pub use endpoints::OperatorEndpoint;
pub use failure::{Failure, Kind, Limit, Phase};
pub use policy::{HostAccess, Policy};
pub use refusal::{Refusal, Rule};
pub use resolver::Lookup;
pub use transport::Timeouts;
pub use ureq::http::{HeaderMap, Method};
pub use urls::MAX_URL_BYTES;
pub use way_out::{Inspection, Options, Outbound, Peer, Verdict, check_host_access_origins};
pub use webhook::WebhookAccess;

#[cfg(test)]
pub(crate) mod tests;
