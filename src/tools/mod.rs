//! Tools: what a run can call, wherever it runs.
//!
//! [`call`] makes one attempt. Errors that the model can correct or work around are answers with
//! `is_error` and never fail the run: arguments that do not fit, an error status, an answer that is
//! too long.
//!
//! Not here: the journal, and retries (`runtime`).

mod credentials;
mod exchange;
pub mod forms;
mod http;
mod redaction;
pub mod schema;

pub use credentials::{Credentials, Refused, Sources, header_fault, is_prefix};
pub use exchange::{Answer, Called, Input, Origin, idempotency_key};
pub use http::HttpClients;
pub use schema::{STACK_BYTES, Schemas};

use crate::outbound::Switch;
use std::time::Duration;

/// The connections of one thread to tools.
pub struct Clients {
    http: HttpClients,
}

impl Clients {
    /// None is open yet.
    pub fn new(http: HttpClients) -> Self {
        Self { http }
    }
}

/// Makes one attempt at a call of the HTTP server at this URL, which lasts `deadline` at most. The switch can cut it.
pub fn call(
    clients: &mut Clients,
    url: &str,
    input: &Input<'_>,
    deadline: Duration,
    switch: &Switch,
) -> Called {
    http::call(&mut clients.http, url, input, deadline, switch)
}
