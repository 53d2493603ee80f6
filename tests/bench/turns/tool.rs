//! The HTTP tool that both sides call: a short text at once, on connections that stay open. It
//! counts its answers.

use super::super::Outcome;
use super::super::loopback::Loopback;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the model is told.
const ANSWER: &str = "Light rain, 14 degrees, wind from the west.";

/// The running tool. It ends with this value.
pub(super) struct Tool {
    server: Loopback,
    answers: Arc<AtomicU64>,
}

impl Tool {
    pub(super) fn start() -> Outcome<Self> {
        let answers = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&answers);
        let server = Loopback::start("tool", move |request: Request<Incoming>| {
            let counted = Arc::clone(&counted);
            async move {
                // Read whole, or the connection could not be used again.
                request.into_body().collect().await?;
                counted.fetch_add(1, Relaxed);
                let said = Bytes::from_static(ANSWER.as_bytes());
                Ok(Response::new(Full::new(said)))
            }
        })?;
        Ok(Self { server, answers })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/weather", self.server.address)
    }

    /// How many calls were answered.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Relaxed)
    }
}
