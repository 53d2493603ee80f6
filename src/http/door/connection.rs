//! One connection from its first byte to its close: hyper's future, the deadlines, the stop, and
//! the refusal of input that hyper cannot parse.

use super::connection_state::{Acceptance, ConnectionState, Expiry, Socket};
use super::context::Context;
use super::reply::{Reply, convert};
use super::serve;
use super::shared::Shared;
use crate::error::{Code, Error};
use hyper::Request;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use tokio::net::TcpStream;

/// How long, and for how many bytes, a client's remaining bytes are read after the last answer.
/// Closing with bytes unread makes the kernel reset the connection, and the answer may be lost.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;

/// RFC 9110, section 5.6.7.
const HTTP_DATE: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// Why a connection is over.
enum End {
    /// hyper is done with it, with this.
    Done(hyper::Result<()>),
    /// No whole header block came in time.
    Head,
    /// Nothing was under way.
    Quiet,
    /// The client does not read, or is the slowest where answers have to end.
    Stalled,
}

/// Serves one connection until its end.
pub(super) async fn attend(
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    acceptance: Acceptance,
) {
    let state = Arc::new(ConnectionState::new(
        stream,
        peer,
        acceptance,
        &shared.limits,
    ));
    let end = converse(&shared, &state).await;
    let refusal = match end {
        End::Quiet => return,
        End::Stalled => return state.cut(),
        End::Head => Some(Error::new(
            Code::RequestTimeout,
            "The header block did not arrive in time.",
        )),
        End::Done(Err(cause)) if cause.is_parse() && state.is_between() => {
            Some(unreadable(state.refusal()))
        }
        End::Done(_) => None,
    };
    let parting = async {
        if let Some(error) = refusal {
            let bytes = refusal_bytes(&shared, peer, &error);
            write_all(&state, bytes.as_bytes()).await?;
        }
        if state.at_end() {
            return Ok(());
        }
        linger(&state).await
    };
    // However it ends, the connection is closed.
    let _: Result<std::io::Result<()>, _> = tokio::time::timeout(LINGER, parting).await;
}

async fn converse(shared: &Arc<Shared>, state: &Arc<ConnectionState>) -> End {
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, state) = (Arc::clone(shared), Arc::clone(state));
        let has_fragment = state.begin(request.body().size_hint().exact());
        async move { Ok::<_, Infallible>(serve::answer(&shared, &state, request, has_fragment).await) }
    });
    let mut connection = pin!(
        Builder::new()
            .header_read_timeout(None)
            // Who closes their own side may still read. Whether they do shows when they are written to.
            .half_close(true)
            .max_buf_size(shared.limits.header_bytes.max(8192))
            .max_header_size(shared.limits.header_bytes)
            .serve_connection(TokioIo::new(Socket(Arc::clone(state))), service)
    );
    let mut begins = pin!(shared.stopping.begins.notified());
    let mut stopping = false;
    let mut set_for = state.due().unwrap_or_else(Instant::now);
    let mut timer = pin!(tokio::time::sleep_until(set_for.into()));
    poll_fn(|cx| {
        if !stopping && (begins.as_mut().poll(cx).is_ready() || shared.stopping.has_begun()) {
            stopping = true;
            if state.stop() {
                return Poll::Ready(End::Quiet);
            }
            connection.as_mut().graceful_shutdown();
        }
        loop {
            if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                return Poll::Ready(End::Done(result));
            }
            if state.is_cut(cx) {
                return Poll::Ready(End::Stalled);
            }
            // The timer is set anew only when it is too late or has fired: most requests end
            // long before their deadline and never touch it.
            if let Some(due) = state.due().filter(|due| *due < set_for) {
                set_for = due;
                timer.as_mut().reset(due.into());
            }
            ready!(timer.as_mut().poll(cx));
            match state.expire() {
                Expiry::Head => return Poll::Ready(End::Head),
                Expiry::Quiet => return Poll::Ready(End::Quiet),
                Expiry::Stalled => return Poll::Ready(End::Stalled),
                Expiry::Nothing | Expiry::Request => {}
            }
            let latest = Instant::now() + shared.limits.idle_timeout;
            set_for = state.due().map_or(latest, |due| due.min(latest));
            timer.as_mut().reset(set_for.into());
        }
    })
    .await
}

/// What hyper would have answered with an empty body, or not at all.
fn unreadable(status: Option<u16>) -> Error {
    if matches!(status, Some(414 | 431)) {
        return Error::new(
            Code::HeadersTooLarge,
            "The request line and header block are too large.",
        );
    }
    Error::new(
        Code::InvalidRequest,
        "The request is not well-formed HTTP/1.1.",
    )
}

/// A whole answer as bytes, for a connection on which hyper answers no more.
fn refusal_bytes(shared: &Shared, peer: SocketAddr, error: &Error) -> String {
    let context = Context::new(peer, None, &shared.clock);
    let refusal = serve::refuse(shared, error, &context);
    let Ok(response) = convert(Reply::Full(refusal), shared.limits.answer_bytes, &context) else {
        return String::new();
    };
    serve::count(shared, response.status());
    let body = String::from_utf8_lossy(response.body().bytes());
    let date = shared.clock.now().format(HTTP_DATE).unwrap_or_default();
    let mut text = format!("HTTP/1.1 {}\r\n", response.status());
    for (name, value) in response.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        // Writing to a string does not fail.
        let _ = write!(text, "{name}: {value}\r\n");
    }
    let length = body.len();
    let _ = write!(
        text,
        "connection: close\r\ncontent-length: {length}\r\ndate: {date}\r\n\r\n{body}"
    );
    text
}

async fn write_all(state: &ConnectionState, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let wrote = poll_fn(|cx| state.poll_write(cx, bytes)).await?;
        if wrote == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[wrote..];
    }
    Ok(())
}

async fn linger(state: &ConnectionState) -> std::io::Result<()> {
    poll_fn(|cx| state.poll_shutdown(cx)).await?;
    let mut left = LINGER_BYTES;
    while left > 0 {
        match poll_fn(|cx| state.poll_discard(cx)).await? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}
