//! A bare hyper service on one thread: no routes, no limits, no callers. The baseline of `constant`.

use super::Outcome;
use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The running service. It ends with this value.
pub(crate) struct Bare {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bare {
    /// Answers every request with this JSON.
    pub(crate) fn start(body: &'static str) -> Outcome<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("bare".to_owned())
            .spawn(move || {
                runtime.spawn(accept(listener, body));
                let _: Result<(), _> = runtime.block_on(stopped);
            })?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, body: &'static str) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let service = service_fn(move |_: Request<Incoming>| async move {
            let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
            response.headers_mut().insert(
                hyper::header::CONTENT_TYPE,
                hyper::header::HeaderValue::from_static("application/json"),
            );
            Ok::<_, Infallible>(response)
        });
        tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
