//! Receivers of webhooks, and what it takes to register one.

use super::{App, Client, ToolAnswer, ToolServer, secrets};
use agent_runtime::outbound::{self, Outbound};
use agent_runtime::server::Options;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;

/// Where endpoints are.
pub(crate) const ENDPOINTS: &str = "/v1/webhook-endpoints";

/// A signing secret: 24 bytes.
pub(crate) const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Names that resolve in these tests, and to what. No other does.
fn look_up(name: &str) -> std::io::Result<Vec<IpAddr>> {
    let addresses: &[&str] = match name {
        "public.example" => &["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
        "private.example" => &["10.1.2.3"],
        "half.example" => &["93.184.215.14", "fd00::7"],
        "metadata.example" => &["169.254.169.254"],
        _ => return Err(std::io::Error::other("no such name")),
    };
    let parse = |text: &&str| text.parse().unwrap();
    Ok(addresses.iter().map(parse).collect())
}

/// A deployment where webhooks are on, and its names are those of these tests.
pub(crate) fn deployed(options: &mut Options) {
    options.secrets = secrets::Keys::new().options();
    options.outbound = Outbound::new(outbound::Options {
        lookup: Some(Arc::new(look_up)),
        ..Default::default()
    })
    .unwrap();
}

impl App {
    /// A server in development mode where webhooks are on, with a secret to sign with.
    pub(crate) fn start_with_webhooks() -> Self {
        let app = Self::start_with(|options| {
            deployed(options);
            options.webhooks.development = true;
        });
        app.put_secret("signing", SIGNING);
        app
    }
}

impl Client {
    /// Puts a secret into the environment `live`.
    pub(crate) fn put_secret(&self, name: &str, value: &str) {
        let path = format!("/v1/secrets/live/{name}");
        let answer = self.put(&path, &json!({"value": value}));
        assert!(answer.status < 300, "{}", answer.text);
    }

    /// Registers an endpoint for tests and approvals, of which there are none.
    pub(crate) fn endpoint(&self, url: &str) -> String {
        let made = self.post(ENDPOINTS, &endpoint(url)).expect(201);
        endpoint_id(&made)
    }
}

/// The body that registers an endpoint.
pub(crate) fn endpoint(url: &str) -> Value {
    json!({
        "url": url,
        "events": ["approval.requested"],
        "secretRef": {"envName": "live", "name": "signing"},
    })
}

/// The id of an endpoint that was answered.
pub(crate) fn endpoint_id(made: &Value) -> String {
    made["endpointId"].as_str().unwrap().to_owned()
}

/// A receiver that takes everything.
pub(crate) fn receiver() -> ToolServer {
    ToolServer::start(|_, _| ToolAnswer::ok("thanks"))
}
