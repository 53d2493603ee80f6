//! Calls an HTTP tool.
//!
//! The request is a POST of `{"tool", "arguments", "runId", "step", "dryRun"}` with the headers
//! `Idempotency-Key: <runId>-<step>`, equal for every attempt of the step, and `traceparent`, and
//! those of the tool's credentials. Redirects are not followed, so these go to the tool's own origin
//! alone. The body of a 2xx answer, as text, is the tool's answer. Any other status becomes an error
//! for the model. No answer and no error has a value of the credentials in it.
//!
//! The tenant chose the host, so the deployment's host-access mode applies (section 1.4).

use super::exchange::{Answer, Called, Input};
use crate::outbound::{
    Client, Failure, HostAccess, Kind, Outbound, Peer, Policy, Switch, Timeouts,
};
use crate::text::beginning;
use serde_json::json;
use std::time::Duration;

/// How much of an error's body the model gets, in bytes.
const ERROR_BYTES: usize = 4 * 1024;

/// How long a tool may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// One thread's client for HTTP tools, kept between calls so that its connections are.
pub struct HttpClients {
    outbound: Outbound,
    host_access: HostAccess,
    /// With the deadline that it was made for.
    client: Option<(Duration, Client)>,
}

impl HttpClients {
    /// No connection is open yet. `host_access` says which hosts may be reached.
    pub fn new(outbound: Outbound, host_access: HostAccess) -> Self {
        Self {
            outbound,
            host_access,
            client: None,
        }
    }

    /// A client whose exchanges last `deadline` at most, and which the switch can cut.
    fn client(&mut self, deadline: Duration, switch: &Switch) -> &mut Client {
        if self
            .client
            .as_ref()
            .is_some_and(|(made_for, _)| *made_for != deadline)
        {
            self.client = None;
        }
        let (_, client) = self.client.get_or_insert_with(|| {
            let timeouts = Timeouts {
                connect: deadline.min(CONNECT),
                first_byte: deadline,
                idle: None,
                total: deadline,
            };
            let policy = Policy::Tenant(self.host_access);
            (
                deadline,
                self.outbound.client(policy, timeouts).to(Peer::Tool),
            )
        });
        switch.cover(client.cancel_handle());
        client
    }
}

pub(super) fn call(
    clients: &mut HttpClients,
    url: &str,
    input: &Input<'_>,
    deadline: Duration,
    switch: &Switch,
) -> Called {
    let origin = &input.origin;
    let body = json!({
        "tool": input.name,
        "arguments": input.arguments,
        "runId": origin.run_id,
        "step": origin.step,
        "dryRun": origin.dry_run,
    });
    let (key, trace) = (&input.idempotency_key, origin.traceparent());
    let body = body.to_string();
    let credentials = input.credentials;
    let own = match credentials.headers(key, input.timestamp, &body) {
        Ok(own) => own,
        Err(why) => return Called::Answered(Answer::error(why)),
    };
    let mut headers = vec![
        ("idempotency-key", key.as_str()),
        ("traceparent", trace.as_str()),
    ];
    headers.extend(own.iter().map(|(name, value)| (*name, value.expose())));
    let client = clients.client(deadline, switch);
    let answer = match client.post_json(url, &headers, body.as_bytes(), input.answer_bytes) {
        Ok(answer) => answer,
        Err(failure) => return failed(&failure, input),
    };
    let text = answer.text(input.answer_bytes);
    match text.map(|text| credentials.redact(text)) {
        Ok(output) if (200..300).contains(&answer.status) => Called::Answered(Answer::of(output)),
        Err(failure) if (200..300).contains(&answer.status) => failed(&failure, input),
        // The status says more than why its body cannot be read.
        text => {
            // The whole of it, so that no value is cut in two and not found.
            let text = text.unwrap_or_else(|failure| failure.to_string());
            let text = beginning(&text, ERROR_BYTES);
            let said = format!("The tool answered with status {}: {text}", answer.status);
            Called::Answered(Answer {
                status: Some(answer.status),
                ..Answer::error(said)
            })
        }
    }
}

fn failed(failure: &Failure, input: &Input<'_>) -> Called {
    if failure.kind() == Kind::Cancelled {
        return Called::Interrupted;
    }
    Called::Unanswered {
        reason: input.credentials.redact(failure.message().to_owned()),
        is_transient: failure.is_transient(),
        is_unknown: failure.may_have_arrived(),
    }
}
