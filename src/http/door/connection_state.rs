//! The state of one connection: its socket, its phase, and the phase's deadline.
//!
//! hyper reads and writes through [`Socket`], which records activity. `connection` asks
//! [`ConnectionState::due`] when to check again, so one lazily set timer serves every deadline of a
//! connection. Everything runs on the door's thread, so the lock is never contended.

use super::answers::Share;
use super::limits::Limits;
use super::stream::Pipe;
use super::wire::Wire;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Whether a connection is served, or gets only the reason why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acceptance {
    Served,
    TooManyConnections,
    TooManyFromAddress,
}

/// What a connection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Opened; not a byte has come.
    Fresh,
    /// Between two requests.
    Idle,
    /// Part of a header block has come.
    Head,
    /// A body is being read.
    Body,
    /// A request thread has the request.
    Waiting,
    /// An answer is being written.
    Answering,
}

impl Phase {
    /// No request is known that an answer is due to.
    fn is_between(self) -> bool {
        matches!(self, Self::Fresh | Self::Idle | Self::Head)
    }
}

/// What a passed deadline means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// It had moved on.
    Nothing,
    /// The request is to be answered with 408 or 504.
    Request,
    /// Part of a header block came, and no more.
    Head,
    /// Nothing was asked for.
    Quiet,
    /// The client does not read.
    Stalled,
}

pub(super) struct ConnectionState {
    pub(super) peer: SocketAddr,
    pub(super) acceptance: Acceptance,
    limits: Arc<Limits>,
    state: Mutex<State>,
}

struct State {
    stream: TcpStream,
    wire: Wire,
    phase: Phase,
    deadline: Option<Instant>,
    blocked_since: Option<Instant>,
    expired: bool,
    body_done: bool,
    at_end: bool,
    refusal: Option<u16>,
    pipe: Option<Arc<Pipe>>,
    /// Of the answers that are being written; mostly one.
    shares: Vec<Share>,
}

impl ConnectionState {
    pub(super) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        acceptance: Acceptance,
        limits: &Arc<Limits>,
    ) -> Self {
        Self {
            peer,
            acceptance,
            limits: Arc::clone(limits),
            state: Mutex::new(State {
                stream,
                wire: Wire::new(),
                phase: Phase::Fresh,
                deadline: Some(Instant::now() + limits.header_timeout),
                blocked_since: None,
                expired: false,
                body_done: false,
                at_end: false,
                refusal: None,
                pipe: None,
                shares: Vec::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a phase, with its deadline.
    pub(super) fn enter(&self, phase: Phase) {
        let limits = &self.limits;
        let wait = match phase {
            Phase::Fresh | Phase::Head => Some(limits.header_timeout),
            Phase::Idle => Some(limits.idle_timeout),
            Phase::Body => Some(limits.body_timeout),
            Phase::Waiting => Some(limits.request_deadline),
            Phase::Answering => None,
        };
        let deadline = wait.map(|wait| Instant::now() + wait);
        let mut state = self.lock();
        state.phase = phase;
        state.deadline = deadline;
        state.expired = false;
        state.body_done = false;
    }

    /// hyper has read a header block, whose body has this length. Says whether its target had a fragment.
    pub(super) fn begin(&self, body_bytes: Option<u64>) -> bool {
        self.lock().wire.begin(body_bytes)
    }

    /// The request's deadline has passed.
    pub(super) fn has_expired(&self) -> bool {
        self.lock().expired
    }

    /// hyper has taken the whole answer: it is out with the next flush.
    pub(super) fn body_done(&self) {
        let mut state = self.lock();
        state.body_done = true;
        state.pipe = None;
    }

    /// Holds an answer's share of the budgets until the answer is out.
    pub(super) fn hold(&self, share: Share) {
        self.lock().shares.push(share);
    }

    /// Whether an answer was cut off; if not, its end wakes the connection.
    pub(super) fn is_cut(&self, cx: &Context<'_>) -> bool {
        self.lock().shares.iter().any(|share| share.is_cut(cx))
    }

    /// The stream to end when the door stops.
    pub(super) fn attach(&self, pipe: Arc<Pipe>) {
        self.lock().pipe = Some(pipe);
    }

    /// Ends the stream, if there is one. Says whether nothing is asked for on this connection.
    pub(super) fn stop(&self) -> bool {
        let mut state = self.lock();
        if let Some(pipe) = state.pipe.take() {
            pipe.end();
        }
        matches!(state.phase, Phase::Fresh | Phase::Idle)
    }

    /// When to look at the deadlines again.
    pub(super) fn due(&self) -> Option<Instant> {
        let state = self.lock();
        let stalled = state.blocked_since.map(|at| at + self.limits.write_timeout);
        match (state.deadline, stalled) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Which deadline has passed.
    pub(super) fn expire(&self) -> Expiry {
        let now = Instant::now();
        let mut state = self.lock();
        if state
            .blocked_since
            .is_some_and(|at| now >= at + self.limits.write_timeout)
        {
            return Expiry::Stalled;
        }
        if state.deadline.is_none_or(|deadline| now < deadline) {
            return Expiry::Nothing;
        }
        state.deadline = None;
        match state.phase {
            Phase::Body | Phase::Waiting => {
                state.expired = true;
                Expiry::Request
            }
            Phase::Head => Expiry::Head,
            Phase::Fresh | Phase::Idle => Expiry::Quiet,
            Phase::Answering => Expiry::Nothing,
        }
    }

    /// The status with which hyper refused what it could not read. It was not sent: the door
    /// answers with the service's own error body.
    pub(super) fn refusal(&self) -> Option<u16> {
        self.lock().refusal
    }

    /// No request is known that an answer is due to.
    pub(super) fn is_between(&self) -> bool {
        self.lock().phase.is_between()
    }

    /// The client has closed its side.
    pub(super) fn at_end(&self) -> bool {
        self.lock().at_end
    }

    /// Makes closing drop what the client did not read.
    pub(super) fn cut(&self) {
        // Where it fails the system drops the bytes later, in its own time.
        let _ =
            socket2::SockRef::from(&self.lock().stream).set_linger(Some(std::time::Duration::ZERO));
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.lock().stream).poll_write(cx, bytes)
    }

    pub(super) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(cx)
    }

    /// Reads and forgets; the number of bytes, 0 at the end.
    pub(super) fn poll_discard(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [0; 4096];
        let mut buffer = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.lock().stream).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

/// hyper's end of a [`ConnectionState`].
pub(super) struct Socket(pub(super) Arc<ConnectionState>);

impl Socket {
    /// hyper writes an answer of its own while none of ours is due: to what it cannot read. It has
    /// no body; the door sends its own instead.
    fn is_own_refusal(state: &mut State, bytes: &[u8]) -> bool {
        if !state.phase.is_between() {
            return false;
        }
        if state.refusal.is_none() && bytes.starts_with(b"HTTP/1.") {
            state.refusal = bytes
                .get(9..12)
                .and_then(|status| std::str::from_utf8(status).ok()?.parse().ok());
        }
        state.refusal.is_some()
    }

    fn note(state: &mut State, wrote: &Poll<io::Result<usize>>) {
        if let (Poll::Ready(Ok(bytes)), Some(first)) = (wrote, state.shares.first()) {
            first.took(*bytes);
        }
        if wrote.is_ready() {
            state.blocked_since = None;
        } else if state.blocked_since.is_none() {
            state.blocked_since = Some(Instant::now());
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        let before = buffer.filled().len();
        let read = if state.wire.take_held(buffer) {
            Poll::Ready(Ok(()))
        } else {
            let read = Pin::new(&mut state.stream).poll_read(cx, buffer);
            state.wire.hold(buffer, before);
            read
        };
        match &read {
            Poll::Ready(Ok(())) if buffer.filled().len() == before => state.at_end = true,
            Poll::Ready(Ok(())) if state.phase == Phase::Fresh => state.phase = Phase::Head,
            Poll::Ready(Ok(())) if state.phase == Phase::Idle => {
                state.phase = Phase::Head;
                state.deadline = Some(Instant::now() + self.0.limits.header_timeout);
            }
            Poll::Ready(Err(_)) => state.at_end = true,
            _ => {}
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        if Self::is_own_refusal(&mut state, bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let wrote = Pin::new(&mut state.stream).poll_write(cx, bytes);
        Self::note(&mut state, &wrote);
        wrote
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        if Self::is_own_refusal(&mut state, pieces.first().map_or(&[], |first| first)) {
            return Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum()));
        }
        let wrote = Pin::new(&mut state.stream).poll_write_vectored(cx, pieces);
        Self::note(&mut state, &wrote);
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes once its own buffer is empty; a TCP socket has none beyond it.
        let mut state = self.0.lock();
        if state.phase == Phase::Answering && state.body_done {
            state.phase = Phase::Idle;
            state.deadline = Some(Instant::now() + self.0.limits.idle_timeout);
            state.wire.end();
            state.shares.clear();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // `connection` closes, after it has answered and read what is still under way.
        Poll::Ready(Ok(()))
    }
}
