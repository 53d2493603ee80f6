//! Bodies: reads a request's within its bounds, and passes an answer's to hyper.

use super::connection_state::{ConnectionState, Phase};
use super::counters::Counters;
use super::head;
use super::limits::Limits;
use super::stopping::Stopping;
use super::stream::StreamBody;
use crate::error::{Code, Error, Result};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

/// A body's bytes and its share of the budget for all bodies, given back when it is dropped.
pub(super) struct Intake {
    pub(super) bytes: Vec<u8>,
    counters: Arc<Counters>,
    counted: u64,
}

impl Intake {
    pub(super) fn new(counters: &Arc<Counters>) -> Self {
        Self {
            bytes: Vec::new(),
            counters: Arc::clone(counters),
            counted: 0,
        }
    }

    /// The bytes, for the handler; the budget is held as long as `self`.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Reads on until the body's end (true) or until more than `up_to` bytes have come (false).
    pub(super) async fn read(
        &mut self,
        limits: &Limits,
        state: &ConnectionState,
        body: &mut Incoming,
        up_to: u64,
    ) -> Result<bool> {
        state.enter(Phase::Body);
        let mut body = pin!(body);
        while self.counted <= up_to {
            let frame = poll_fn(|cx| {
                if state.has_expired() {
                    return Poll::Ready(Err(late()));
                }
                body.as_mut().poll_frame(cx).map(Ok)
            })
            .await?;
            match frame {
                None => return Ok(true),
                Some(Err(cause)) => return Err(unreadable(cause)),
                // Trailers say nothing that any route reads.
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.add(&bytes, limits.bodies_in_flight_bytes)?;
                    }
                }
            }
        }
        Ok(false)
    }

    fn add(&mut self, bytes: &[u8], budget_bytes: u64) -> Result<()> {
        let more = bytes.len() as u64;
        let before = self.counters.body_bytes.fetch_add(more, Relaxed);
        self.counted += more;
        if before + more > budget_bytes {
            return Err(no_budget());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.counters.body_bytes.fetch_sub(self.counted, Relaxed);
        }
    }
}

/// Refuses at once what the budget has no room for.
pub(super) fn check_budget(
    limits: &Limits,
    counters: &Counters,
    declared: Option<u64>,
) -> Result<()> {
    let held = counters.body_bytes.load(Relaxed);
    let wanted = declared.unwrap_or(1).saturating_add(held);
    if wanted > limits.bodies_in_flight_bytes {
        return Err(no_budget());
    }
    Ok(())
}

/// The bound for a body: what its route takes, and never more than any route takes.
pub(super) fn check_admitted(limits: &Limits, admitted: u64, declared: Option<u64>) -> Result<u64> {
    let most = admitted.min(limits.body_bytes);
    if declared.is_some_and(|bytes| bytes > most) {
        return Err(head::too_large(most));
    }
    Ok(most)
}

fn no_budget() -> Error {
    Error::new(
        Code::Overloaded,
        "Too many bodies are being read at once. Try again shortly.",
    )
}

fn late() -> Error {
    Error::new(Code::RequestTimeout, "The body did not arrive in time.")
}

fn unreadable(cause: hyper::Error) -> Error {
    Error::new(
        Code::InvalidRequest,
        "The body could not be read: it is cut short or wrongly chunked.",
    )
    .because(cause)
}

/// An answer's body as hyper takes it. Its end, or its drop, tells the state that it is done.
pub(super) struct Outgoing {
    kind: Kind,
    /// The bytes are in memory for this answer alone.
    is_own: bool,
    state: Option<Arc<ConnectionState>>,
    counters: Option<Arc<Counters>>,
}

enum Kind {
    Nothing,
    Whole(Bytes),
    Stream(StreamBody),
}

impl Outgoing {
    pub(super) fn whole(bytes: Bytes) -> Self {
        let kind = if bytes.is_empty() {
            Kind::Nothing
        } else {
            Kind::Whole(bytes)
        };
        Self::new(kind, true)
    }

    /// Bytes that other answers share.
    pub(super) fn shared(bytes: Bytes) -> Self {
        Self::new(Kind::Whole(bytes), false)
    }

    pub(super) fn stream(body: StreamBody) -> Self {
        Self::new(Kind::Stream(body), false)
    }

    fn new(kind: Kind, is_own: bool) -> Self {
        Self {
            kind,
            is_own,
            state: None,
            counters: None,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.kind {
            Kind::Whole(bytes) => bytes,
            Kind::Nothing | Kind::Stream(_) => &[],
        }
    }

    /// The bytes that are in memory for this answer alone.
    pub(super) fn own_bytes(&self) -> u64 {
        match self.is_own {
            true => self.bytes().len() as u64,
            false => 0,
        }
    }

    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream(_))
    }

    /// Tells this connection of the answer's end.
    pub(super) fn attach(&mut self, state: &Arc<ConnectionState>) {
        self.state = Some(Arc::clone(state));
    }

    /// Counts a stream. False: it is beyond the limit.
    pub(super) fn open(
        &mut self,
        limits: &Limits,
        counters: &Arc<Counters>,
        stopping: &Stopping,
        state: &Arc<ConnectionState>,
    ) -> bool {
        if let Kind::Stream(stream) = &self.kind {
            let open = counters.streams.fetch_add(1, Relaxed);
            self.counters = Some(Arc::clone(counters));
            if open >= limits.most_streams() {
                return false;
            }
            state.attach(stream.pipe());
            if stopping.has_begun() {
                state.stop();
            }
        }
        true
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.kind {
            Kind::Nothing => None,
            Kind::Whole(bytes) => Some(std::mem::take(bytes)),
            Kind::Stream(stream) => ready!(stream.poll_next(cx)),
        };
        if !self.is_stream() {
            self.kind = Kind::Nothing;
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Nothing)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Stream(_) => SizeHint::default(),
            Kind::Nothing | Kind::Whole(_) => SizeHint::with_exact(self.bytes().len() as u64),
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if let Some(counters) = &self.counters {
            counters.streams.fetch_sub(1, Relaxed);
        }
        if let Some(state) = &self.state {
            state.body_done();
        }
    }
}
