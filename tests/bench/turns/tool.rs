//! The HTTP tool that both sides call: a short text at once, on connections that stay open. It
//! counts its answers, and says when the newest call came.

use super::super::Outcome;
use super::super::loopback::Loopback;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the model is told.
const ANSWER: &str = "Light rain, 14 degrees, wind from the west.";
/// How long a call is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The running tool. It ends with this value.
pub(crate) struct Tool {
    server: Loopback,
    seen: Arc<Mutex<Seen>>,
}

/// What it has been called for.
#[derive(Default)]
struct Seen {
    answers: u64,
    newest: Option<Instant>,
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tool {
    pub(crate) fn start() -> Outcome<Self> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let written = Arc::clone(&seen);
        let server = Loopback::start("tool", move |request: Request<Incoming>| {
            let (seen, came) = (Arc::clone(&written), Instant::now());
            async move {
                // Read whole, or the connection could not be used again.
                request.into_body().collect().await?;
                {
                    let mut seen = lock(&seen);
                    seen.answers += 1;
                    seen.newest = Some(came);
                }
                let said = Bytes::from_static(ANSWER.as_bytes());
                Ok(Response::new(Full::new(said)))
            }
        })?;
        Ok(Self { server, seen })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/weather", self.server.address)
    }

    /// How many calls were answered.
    pub(crate) fn answers(&self) -> u64 {
        lock(&self.seen).answers
    }

    /// When the call came that followed so many answers, once it has come.
    pub(crate) fn called_after(&self, answers: u64) -> Outcome<Instant> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            {
                let seen = lock(&self.seen);
                if let (true, Some(newest)) = (seen.answers > answers, seen.newest) {
                    return Ok(newest);
                }
            }
            if Instant::now() > deadline {
                return Err("the tool was not called".into());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
