//! A receiver of webhooks that answers at once, and remembers which run's end arrived at which of its endpoints.

use super::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::HashSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use uuid::Uuid;

/// A run, and the number of the endpoint that was told of its end.
pub(crate) type Receipt = (Uuid, usize);

/// The running receiver. It ends with this value.
pub(crate) struct Receipts {
    address: SocketAddr,
    got: Arc<Mutex<HashSet<Receipt>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receipts {
    pub(crate) fn start() -> Outcome<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let got = Arc::default();
        let (stop, stopped) = oneshot::channel();
        let for_accept = Arc::clone(&got);
        let thread = std::thread::Builder::new()
            .name("receipts".to_owned())
            .spawn(move || {
                runtime.spawn(accept(listener, for_accept));
                let _: Result<(), _> = runtime.block_on(stopped);
            })?;
        Ok(Self {
            address,
            got,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The URL of one of its endpoints.
    pub(crate) fn url(&self, endpoint: usize) -> String {
        format!("http://{}/{endpoint}", self.address)
    }

    /// How many of these have arrived.
    pub(crate) fn count(&self, wanted: &[Receipt]) -> usize {
        let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.iter().filter(|one| got.contains(one)).count()
    }
}

impl Drop for Receipts {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, got: Arc<Mutex<HashSet<Receipt>>>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let got = Arc::clone(&got);
        let service = service_fn(move |request| receive(request, Arc::clone(&got)));
        tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn receive(
    request: Request<Incoming>,
    got: Arc<Mutex<HashSet<Receipt>>>,
) -> Result<Response<Empty<Bytes>>, hyper::Error> {
    let endpoint = request.uri().path().trim_start_matches('/').parse().ok();
    let body = request.into_body().collect().await?.to_bytes();
    let mut response = Response::new(Empty::new());
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
