//! Cancellation of an exchange by another thread.
//!
//! A token is sticky: a cancel that comes just before the exchange begins is not lost. It
//! interrupts a look-up, a connect, a handshake, a write and a read, by shutting the socket down.

use super::failure::{Failure, Kind};
use crossbeam_channel::{Receiver, Sender, bounded};
use socket2::Socket;
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Ends exchanges of a client from another thread.
///
/// It covers every exchange that the client begins between [`super::Client::cancel_handle`] and the
/// next call of it.
#[derive(Clone)]
pub struct CancelHandle(pub(super) Arc<Token>);

impl CancelHandle {
    /// Cancels the present exchange and every later one that this handle covers.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

pub(super) struct Token {
    state: Mutex<State>,
    watch: Receiver<()>,
}

struct State {
    /// Dropped by the cancel, which disconnects the channel. Nothing is ever sent.
    alive: Option<Sender<()>>,
    sockets: Vec<Weak<Socket>>,
}

impl Token {
    pub(super) fn new() -> Arc<Self> {
        let (alive, watch) = bounded(0);
        Arc::new(Self {
            state: Mutex::new(State {
                alive: Some(alive),
                sockets: Vec::new(),
            }),
            watch,
        })
    }

    pub(super) fn failure() -> Failure {
        Failure::new(Kind::Cancelled, "The exchange was cancelled.")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.lock().alive.is_none()
    }

    /// A channel that disconnects when the token is cancelled.
    pub(super) fn watch(&self) -> &Receiver<()> {
        &self.watch
    }

    /// Registers this socket; `false` if the token was cancelled already.
    pub(super) fn hold(&self, socket: &Arc<Socket>) -> bool {
        let mut state = self.lock();
        state.sockets.retain(|held| held.strong_count() > 0);
        state.sockets.push(Arc::downgrade(socket));
        state.alive.is_some()
    }

    /// The socket now belongs to another token's exchange.
    pub(super) fn release(&self, socket: &Arc<Socket>) {
        let gone = Arc::downgrade(socket);
        self.lock().sockets.retain(|held| !held.ptr_eq(&gone));
    }

    fn cancel(&self) {
        let mut state = self.lock();
        drop(state.alive.take());
        for socket in state.sockets.iter().filter_map(Weak::upgrade) {
            // An error means that the socket is closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Ends one exchange after another, from the moment it is cut: the one that it covers and those that it
/// covers later.
#[derive(Default)]
pub struct Switch(Mutex<Covered>);

#[derive(Default)]
struct Covered {
    is_cut: bool,
    /// Of the exchange that runs, or the last one.
    handle: Option<CancelHandle>,
}

impl Switch {
    /// Lets a cut reach what this handle covers.
    pub fn cover(&self, handle: CancelHandle) {
        let mut covered = self.lock();
        if covered.is_cut {
            handle.cancel();
        }
        covered.handle = Some(handle);
    }

    /// Ends the exchange that is covered, and keeps later ones from beginning.
    pub fn cut(&self) {
        let mut covered = self.lock();
        covered.is_cut = true;
        if let Some(handle) = &covered.handle {
            handle.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Covered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
