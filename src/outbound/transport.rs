//! The socket of an exchange. It connects only to checked addresses, keeps every deadline of the
//! exchange, and can be shut down by another thread.
//!
//! ureq speaks HTTP and rustls TLS over it. A pooled connection is reused only if its peer is among
//! the addresses checked for the present exchange.

use super::cancel::Token;
use super::failure::{Limit, Phase};
use super::interrupted::is_retry;
use super::proxy::Way;
use rustix::net::RecvFlags;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, RustlsConnector, Transport,
};

/// Output is buffered up to this size, or until an answer is awaited: a request's head and body
/// leave together.
const HELD_BYTES: usize = 16 * 1024;

/// Time limits of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Look-up, connect and TLS handshake together.
    pub connect: Duration,
    /// From the request sent to the first byte of the answer.
    pub first_byte: Duration,
    /// Between two bytes of the answer's body. Before the first of them, the rest of `first_byte` counts if it is longer.
    pub idle: Option<Duration>,
    /// The whole exchange, from the look-up to the last byte.
    pub total: Duration,
}

impl Timeouts {
    /// The same, none of them longer than `most`.
    #[must_use]
    pub fn within(self, most: Duration) -> Self {
        Self {
            connect: self.connect.min(most),
            first_byte: self.first_byte.min(most),
            idle: self.idle.map(|idle| idle.min(most)),
            total: self.total.min(most),
        }
    }
}

/// One exchange: its peers, its deadline, its phase.
pub(super) struct Exchange {
    pub(super) token: Arc<Token>,
    pub(super) addresses: Vec<SocketAddr>,
    /// Through the forward proxy, whose addresses are then the checked ones.
    pub(super) way: Option<Way>,
    /// On a connection of its own, and none that was used before.
    pub(super) is_apart: bool,
    timeouts: Timeouts,
    began: Instant,
    progress: Mutex<Progress>,
}

#[derive(Clone, Copy)]
struct Progress {
    phase: Phase,
    deadline: Instant,
    /// The limit that sets the deadline.
    limit: Limit,
    /// When the whole exchange is to be over.
    end: Instant,
    /// How long it may take in all.
    total: Duration,
    timed_out: Option<(Phase, Limit)>,
    peer: Option<SocketAddr>,
}

impl Exchange {
    pub(super) fn new(token: Arc<Token>, timeouts: Timeouts, began: Instant) -> Self {
        let (deadline, limit) = connect_deadline(timeouts, began);
        Self {
            token,
            addresses: Vec::new(),
            way: None,
            is_apart: false,
            timeouts,
            began,
            progress: Mutex::new(Progress {
                phase: Phase::Resolve,
                deadline,
                limit,
                end: began + timeouts.total,
                total: timeouts.total,
                timed_out: None,
                peer: None,
            }),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn phase(&self) -> Phase {
        self.progress().phase
    }

    /// The phase whose deadline passed, if one did, and the limit that set it.
    pub(super) fn timed_out(&self) -> Option<(Phase, Limit)> {
        self.progress().timed_out
    }

    /// The address that is connected, or was tried last.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.progress().peer.map(|peer| peer.ip())
    }

    fn set_peer(&self, peer: SocketAddr) {
        self.progress().peer = Some(peer);
    }

    pub(super) fn deadline(&self) -> Instant {
        self.progress().deadline
    }

    /// Enters a phase and applies its deadline.
    pub(super) fn enter(&self, phase: Phase) {
        let mut progress = self.progress();
        let first_byte = progress.deadline;
        progress.phase = phase;
        match phase {
            Phase::Resolve | Phase::Connect | Phase::Tls => {
                let (deadline, limit) = connect_deadline(self.timeouts, self.began);
                progress.expect(deadline, limit);
            }
            Phase::Send => {
                let end = progress.end;
                progress.expect(end, Limit::Total(self.timeouts.total));
            }
            Phase::FirstByte => {
                let limit = Limit::FirstByte(self.timeouts.first_byte);
                progress.expect(Instant::now() + self.timeouts.first_byte, limit);
            }
            Phase::Body => match self.timeouts.idle {
                Some(idle) if Instant::now() + idle < first_byte => {}
                idle => progress.expect_more(idle),
            },
        }
    }

    /// Bytes have arrived.
    pub(super) fn heard(&self) {
        let mut progress = self.progress();
        if progress.phase == Phase::Body {
            progress.expect_more(self.timeouts.idle);
        }
    }

    /// The limit of the phases before the request is sent.
    pub(super) fn connect_limit(&self) -> Limit {
        connect_deadline(self.timeouts, self.began).1
    }

    /// Brings the deadline forward. No byte that arrives moves it any more.
    pub(super) fn end_within(&self, time: Duration) {
        let mut progress = self.progress();
        progress.end = progress.end.min(Instant::now() + time);
        progress.deadline = progress.deadline.min(progress.end);
    }

    /// The time left in this phase, or an error if none is.
    pub(super) fn left(&self) -> io::Result<Duration> {
        let mut progress = self.progress();
        let left = progress.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let late = (progress.phase, progress.limit);
            progress.timed_out.get_or_insert(late);
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A socket timeout has a resolution of a microsecond.
        Ok(left.max(Duration::from_millis(1)))
    }

    fn cancelled() -> io::Error {
        io::Error::new(io::ErrorKind::NotConnected, "cancelled")
    }
}

impl Progress {
    /// Sets the deadline, or the exchange's own if that is earlier.
    fn expect(&mut self, deadline: Instant, limit: Limit) {
        self.deadline = deadline;
        self.limit = limit;
        if self.end < deadline {
            self.deadline = self.end;
            self.limit = Limit::Total(self.total);
        }
    }

    /// Sets the deadline of the next bytes of a body.
    fn expect_more(&mut self, idle: Option<Duration>) {
        match idle {
            Some(idle) => self.expect(Instant::now() + idle, Limit::Idle(idle)),
            None => self.expect(self.end, Limit::Total(self.total)),
        }
    }
}

/// When a connection is to be ready at the latest.
fn connect_deadline(timeouts: Timeouts, began: Instant) -> (Instant, Limit) {
    if timeouts.total < timeouts.connect {
        (began + timeouts.total, Limit::Total(timeouts.total))
    } else {
        (began + timeouts.connect, Limit::Connect(timeouts.connect))
    }
}

/// The present exchange, shared by all connections of a client.
#[derive(Clone)]
pub(super) struct Current(Arc<Mutex<Arc<Exchange>>>);

impl Current {
    pub(super) fn new(exchange: Arc<Exchange>) -> Self {
        Self(Arc::new(Mutex::new(exchange)))
    }

    pub(super) fn set(&self, exchange: Arc<Exchange>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = exchange;
    }

    fn get(&self) -> Arc<Exchange> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Current")
    }
}

/// ureq asks for addresses, but the client has resolved and checked them already.
#[derive(Debug)]
pub(super) struct CheckedAddresses;

impl Resolver for CheckedAddresses {
    fn resolve(
        &self,
        _: &Uri,
        _: &ureq::config::Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut none = self.empty();
        // The connector takes them from the exchange; an empty list would fail before it runs.
        none.push(SocketAddr::from(([0, 0, 0, 0], 0)));
        Ok(none)
    }
}

/// Connects to the addresses checked for the present exchange, in turn.
#[derive(Debug)]
pub(super) struct TcpConnector(pub(super) Current);

impl Connector<()> for TcpConnector {
    type Out = TcpTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _: Option<()>,
    ) -> Result<Option<TcpTransport>, ureq::Error> {
        let exchange = self.0.get();
        exchange.enter(Phase::Connect);
        let mut failed = io::Error::other("no address was checked");
        for (index, address) in exchange.addresses.iter().enumerate() {
            let others = exchange.addresses.len() - index;
            let before = exchange.progress().peer.replace(*address);
            match connect_one(&exchange, *address, others) {
                Ok(socket) => {
                    if let Some(way) = &exchange.way {
                        way.open(|| exchange.left(), &socket)?;
                    }
                    exchange.enter(Phase::Send);
                    let sizes = (
                        details.config.input_buffer_size(),
                        details.config.output_buffer_size(),
                    );
                    return Ok(Some(TcpTransport {
                        socket,
                        peer: *address,
                        buffers: LazyBuffers::new(sizes.0, sizes.1),
                        held: Vec::new(),
                        before_path: exchange.way.as_ref().and_then(Way::before_path),
                        read_timeout: Duration::MAX,
                        write_timeout: Duration::MAX,
                        current: self.0.clone(),
                        exchange,
                    }));
                }
                // A host without IPv6 fails on its last addresses; the error of another address
                // says more.
                Err(error) if is_refusal(&failed) && error.kind() != io::ErrorKind::TimedOut => {
                    exchange.progress().peer = before;
                }
                Err(error) => {
                    failed = io::Error::new(error.kind(), format!("{address}: {error}"));
                }
            }
            if exchange.token.is_cancelled() {
                break;
            }
        }
        Err(failed.into())
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// Connects to one of the addresses. Each one left gets an equal part of the remaining time.
fn connect_one(exchange: &Exchange, address: SocketAddr, others: usize) -> io::Result<Arc<Socket>> {
    let share = exchange.left()? / u32::try_from(others).unwrap_or(u32::MAX);
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    let socket = Arc::new(socket);
    if !exchange.token.hold(&socket) {
        return Err(Exchange::cancelled());
    }
    socket.connect_timeout(&address.into(), share.max(Duration::from_millis(10)))?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// TLS with one configuration, and one set of roots in memory, for every client.
#[derive(Debug, Clone)]
pub(super) struct TlsConnector {
    pub(super) rustls: Arc<RustlsConnector>,
    pub(super) current: Current,
}

impl Connector<TcpTransport> for TlsConnector {
    type Out = <RustlsConnector as Connector<TcpTransport>>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<TcpTransport>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let exchange = self.current.get();
        exchange.enter(Phase::Tls);
        let out = Connector::<TcpTransport>::connect(&*self.rustls, details, chained)?;
        exchange.enter(Phase::Send);
        Ok(out)
    }
}

/// A connected socket that keeps its exchange's deadlines.
pub(super) struct TcpTransport {
    socket: Arc<Socket>,
    peer: SocketAddr,
    buffers: LazyBuffers,
    held: Vec<u8>,
    /// What stands before the path in the request line of the next request.
    before_path: Option<String>,
    /// The socket's own timeouts: the longest until they are set.
    read_timeout: Duration,
    write_timeout: Duration,
    current: Current,
    exchange: Arc<Exchange>,
}

impl TcpTransport {
    /// Joins the present exchange if this peer was checked for it.
    fn join(&mut self) -> bool {
        let next = self.current.get();
        if next.is_apart || !next.addresses.contains(&self.peer) {
            return false;
        }
        if !Arc::ptr_eq(&next.token, &self.exchange.token) {
            self.exchange.token.release(&self.socket);
            if !next.token.hold(&self.socket) {
                return false;
            }
        }
        if next.phase() == Phase::Resolve {
            next.enter(Phase::Send);
        }
        next.set_peer(self.peer);
        self.before_path = next.way.as_ref().and_then(Way::before_path);
        self.exchange = next;
        true
    }

    /// Whether the connection is idle and open, with nothing unread and nothing unsent.
    fn is_quiet(&self) -> bool {
        let read = rustix::net::recv(&*self.socket, &mut [0], RecvFlags::DONTWAIT);
        self.held.is_empty() && matches!(read, Err(rustix::io::Errno::WOULDBLOCK))
    }

    /// Sends the buffered output.
    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        let mut output = held.as_slice();
        while !output.is_empty() {
            let left = self.exchange.left()?;
            if !serves(self.write_timeout, left) {
                self.socket.set_write_timeout(Some(left))?;
                self.write_timeout = left;
            }
            match (&*self.socket).write(output) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => output = &output[written..],
                Err(error) if is_retry(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a socket's timeout still fits the remaining time: it must not end later, nor far too
/// early.
fn serves(timeout: Duration, left: Duration) -> bool {
    timeout <= left && left / 2 <= timeout
}

impl Transport for TcpTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        let mut output = &self.buffers.output()[..amount];
        if let Some(before_path) = self.before_path.take()
            && let Some(space) = output.iter().position(|byte| *byte == b' ')
        {
            let (method, path) = output.split_at(space + 1);
            self.held.extend_from_slice(method);
            self.held.extend_from_slice(before_path.as_bytes());
            output = path;
        }
        self.held.extend_from_slice(output);
        if self.held.len() >= HELD_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        self.flush()?;
        if self.exchange.phase() == Phase::Send {
            self.exchange.enter(Phase::FirstByte);
        }
        loop {
            let left = self.exchange.left()?;
            if !serves(self.read_timeout, left) {
                self.socket.set_read_timeout(Some(left))?;
                self.read_timeout = left;
            }
            match (&*self.socket).read(self.buffers.input_append_buf()) {
                Ok(_) if self.exchange.token.is_cancelled() => {
                    // A socket that was shut down reads as end of file, which would look like a
                    // complete answer.
                    return Err(Exchange::cancelled().into());
                }
                Ok(amount) => {
                    self.buffers.input_appended(amount);
                    self.exchange.heard();
                    return Ok(amount > 0);
                }
                Err(error) if is_retry(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_open(&mut self) -> bool {
        self.is_quiet() && self.join()
    }
}

impl std::fmt::Debug for TcpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpTransport")
            .field("peer", &self.peer)
            .finish()
    }
}
