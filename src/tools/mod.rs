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

/// Whether a text is what providers of models take as the name of a tool.
pub fn is_tool_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_providers_take() {
        let long = "a".repeat(64);
        for good in ["a", "get_weather-2", &long] {
            assert!(is_tool_name(good), "{good}");
        }
        let too_long = "a".repeat(65);
        for bad in ["", "a b", "a.b", "é", "a\n", &too_long] {
            assert!(!is_tool_name(bad), "{bad:?}");
        }
    }
}
