//! The HTTP tool that both sides call: hyper on one thread, answering every request at once with a short text, on
//! connections that stay open. It counts its answers.

use super::super::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// What the model is told.
const ANSWER: &str = "Light rain, 14 degrees, wind from the west.";

/// The running tool. It ends with this value.
pub(super) struct Tool {
    address: SocketAddr,
    answers: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Tool {
    pub(super) fn start() -> Outcome<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let answers = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&answers);
        let thread = std::thread::Builder::new()
            .name("tool".to_owned())
            .spawn(move || {
                runtime.spawn(accept(listener, counted));
                let _: Result<(), _> = runtime.block_on(stopped);
            })?;
        Ok(Self {
            address,
            answers,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/weather", self.address)
    }

    /// How many calls were answered.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Relaxed)
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, answers: Arc<AtomicU64>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let answers = Arc::clone(&answers);
        let service = service_fn(move |request: Request<Incoming>| {
            let answers = Arc::clone(&answers);
            async move {
                // Read whole, or the connection could not be used again.
                request.into_body().collect().await?;
                answers.fetch_add(1, Relaxed);
                Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from_static(
                    ANSWER.as_bytes(),
                ))))
            }
        });
        tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
