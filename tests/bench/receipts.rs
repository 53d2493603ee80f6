//! A receiver of webhooks that answers at once, and remembers which run's end arrived at which of its endpoints.

use super::Outcome;
use super::loopback::{Answered, Loopback};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode, body::Incoming};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

/// A run, and the number of the endpoint that was told of its end.
pub(crate) type Receipt = (Uuid, usize);

/// The running receiver. It ends with this value.
pub(crate) struct Receipts {
    server: Loopback,
    got: Arc<Mutex<HashSet<Receipt>>>,
}

impl Receipts {
    pub(crate) fn start() -> Outcome<Self> {
        let got = Arc::default();
        let into = Arc::clone(&got);
        Ok(Self {
            server: Loopback::start("receipts", move |request| {
                receive(request, Arc::clone(&into))
            })?,
            got,
        })
    }

    /// The URL of one of its endpoints.
    pub(crate) fn url(&self, endpoint: usize) -> String {
        format!("http://{}/{endpoint}", self.server.address)
    }

    /// How many of these have arrived.
    pub(crate) fn count(&self, wanted: &[Receipt]) -> usize {
        let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.iter().filter(|one| got.contains(one)).count()
    }
}

async fn receive(request: Request<Incoming>, got: Arc<Mutex<HashSet<Receipt>>>) -> Answered {
    let endpoint = request.uri().path().trim_start_matches('/').parse().ok();
    let body = request.into_body().collect().await?.to_bytes();
    let mut response = Response::new(Full::default());
    // What is not understood fails, and is missed.
    *response.status_mut() = match endpoint.zip(run_id(&body)) {
        Some((endpoint, run_id)) => {
            let mut got = got.lock().unwrap_or_else(PoisonError::into_inner);
            got.insert((run_id, endpoint));
            StatusCode::NO_CONTENT
        }
        None => StatusCode::BAD_REQUEST,
    };
    Ok(response)
}

/// The run that ended.
fn run_id(body: &[u8]) -> Option<Uuid> {
    let event: Value = serde_json::from_slice(body).ok()?;
    event["data"]["run"]["id"].as_str()?.parse().ok()
}
