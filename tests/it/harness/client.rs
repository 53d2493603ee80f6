//! A client as a user would write one: HTTP, JSON, a token.

use super::PATIENCE;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Client {
    agent: ureq::Agent,
    address: SocketAddr,
    pub(super) token: Option<String>,
    /// What it sends with each request.
    pub(super) standing: Vec<(String, String)>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

/// It follows no redirect, and takes every status as an answer.
pub(super) fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into()
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Self {
        Self {
            agent: agent(),
            address,
            token: token.map(str::to_owned),
            standing: Vec::new(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, &[])
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None, &[])
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, Some(body.to_string()), &[])
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, Some(body.to_string()), &[])
    }

    pub(crate) fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, Some(body.to_string()), &[])
    }

    /// Any request. A body is JSON unless a header says otherwise.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let endless = ["/v1/approvals/stream", "/v1/changes/stream"];
        if method == "GET" && endless.iter().any(|stream| path.starts_with(stream)) {
            return self.begun(path, headers);
        }
        let url = format!("http://{}{path}", self.address);
        let mut request = ureq::http::Request::builder().method(method).uri(url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let typed = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if body.is_some() && !typed {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let is_given = |name: &str| headers.iter().any(|(given, _)| *given == name);
        for (name, value) in &self.standing {
            if !is_given(name) {
                request = request.header(name, value);
            }
        }
        let response = match body {
            Some(body) => self.agent.run(request.body(body).unwrap()),
            None => self.agent.run(request.body(()).unwrap()),
        };
        let mut response = response.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        Answer {
            status: response.status().as_u16(),
            headers: response
                .headers()
                .iter()
                .map(|(name, value)| {
                    (
                        name.to_string(),
                        String::from_utf8_lossy(value.as_bytes()).into_owned(),
                    )
                })
                .collect(),
            text: response.body_mut().read_to_string().unwrap(),
        }
    }
}

impl Answer {
    /// The body, if the status is this one.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }

    /// The error's code, if the status is this one and the body has the form of section 7.
    #[track_caller]
    pub(crate) fn expect_error(self, status: u16, code: &str) -> Value {
        let request_id = self.header("x-request-id").unwrap_or_default().to_owned();
        let body = self.expect(status);
        let error = &body["error"];
        assert_eq!(error["code"], json!(code), "{body}");
        // The specification gives the form of two messages.
        let given = ["permission denied, ", "FGA Error: "];
        let is_told =
            |text: &str| text.ends_with('.') || given.iter().any(|given| text.starts_with(given));
        assert!(error["message"].as_str().is_some_and(is_told), "{body}");
        assert!(error["details"].is_object(), "{body}");
        assert_eq!(error["requestId"], json!(request_id), "{body}");
        assert!(
            request_id.starts_with("req-") && request_id.len() == 40,
            "{request_id}"
        );
        error.clone()
    }

    pub(crate) fn json(&self) -> Value {
        if self.text.is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}
