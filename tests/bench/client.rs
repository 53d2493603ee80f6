//! A client as a user would write one: HTTP, JSON, a token, a stream of events.

use super::Outcome;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub(crate) struct Client {
    agent: ureq::Agent,
    address: SocketAddr,
    token: String,
}

/// A client that keeps its connections. A deadline that covers the look-up of the name would cost a
/// thread a request: there is no name to look up.
pub(crate) fn agent() -> ureq::Agent {
    let patience = Some(Duration::from_secs(30));
    ureq::Agent::config_builder()
        .timeout_connect(patience)
        .timeout_send_request(patience)
        .timeout_recv_response(patience)
        .timeout_recv_body(patience)
        .build()
        .into()
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        Self {
            agent: agent(),
            address,
            token: token.to_owned(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the service says that it is ready, its authorization too.
    pub(crate) fn await_ready(&self, patience: Duration) -> Outcome {
        let deadline = Instant::now() + patience;
        let probe = format!("http://{}/readyz", self.address);
        while self.agent.get(&probe).call().is_err() {
            if Instant::now() > deadline {
                return Err("the service did not become ready".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        let text = self.send("POST", path, &body.to_string())?;
        Ok(serde_json::from_str(&text)?)
    }

    /// What is answered to a request that must succeed.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Outcome<String> {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(body)?;
        let request = self
            .agent
            .configure_request(request)
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .build();
        let mut response = self.agent.run(request)?;
        let status = response.status();
        let text = response.body_mut().read_to_string()?;
        if !status.is_success() {
            return Err(format!("{method} {path}: {status} {text}").into());
        }
        Ok(text)
    }

    /// The lines of a run's stream, as they come.
    pub(crate) fn follow(
        &self,
        run_id: &str,
    ) -> Outcome<impl Iterator<Item = std::io::Result<String>>> {
        let path = format!("/v1/runs/{run_id}/progress/stream");
        let response = self
            .agent
            .get(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {}", self.token))
            .call()?;
        Ok(BufReader::new(response.into_body().into_reader()).lines())
    }
}
