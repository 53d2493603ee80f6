//! A relay before OpenFGA with a trap in it: one call of a given kind is held, and the test told.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Which half of a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// OpenFGA never hears of it.
    Question,
    /// OpenFGA has done it, and nobody is told.
    Answer,
}

/// The relay. What it holds is lost when it lets go.
pub(crate) struct Trap {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The end of a call's path, and which half of the call.
    set: Option<(&'static str, Half)>,
    holds: bool,
}

impl Trap {
    pub(crate) fn before(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let kept = Arc::clone(&shared);
        carry(move || {
            for client in listener.incoming() {
                pass(client.unwrap(), target, &kept);
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Holds the next call whose path ends so.
    pub(crate) fn set(&self, path_end: &'static str, half: Half) {
        self.shared.lock().set = Some((path_end, half));
    }

    /// Waits until it holds one.
    #[track_caller]
    pub(crate) fn wait(&self) {
        crate::eventually("a call in the trap", || {
            self.shared.lock().holds.then_some(())
        });
    }

    /// Loses what it holds.
    pub(crate) fn let_go(&self) {
        self.shared.lock().holds = false;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Whether these bytes begin the call that is waited for.
    fn catches(&self, bytes: &[u8]) -> Option<Half> {
        let mut state = self.lock();
        let (path_end, half) = state.set?;
        let line = bytes.split(|byte| *byte == b'\r').next()?;
        let path = std::str::from_utf8(line).ok()?.split(' ').nth(1)?;
        if !path.ends_with(path_end) {
            return None;
        }
        state.set = None;
        Some(half)
    }

    fn hold(&self) {
        let mut state = self.lock();
        state.holds = true;
        while state.holds {
            state = self.changed.wait(state).unwrap();
        }
    }
}

/// On a thread that ends with its connection, or with the process.
fn carry(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("trap".to_owned());
    thread.spawn(work).unwrap();
}

fn pass(client: TcpStream, target: SocketAddr, shared: &Arc<Shared>) {
    let Ok(server) = TcpStream::connect(target) else {
        return;
    };
    let answer_is_held = Arc::new(AtomicBool::new(false));
    let (asking, asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (catching, told) = (Arc::clone(shared), Arc::clone(&answer_is_held));
    carry(move || {
        copy(asking, asked, |bytes| match catching.catches(bytes) {
            Some(Half::Question) => {
                catching.hold();
                false
            }
            Some(Half::Answer) => {
                told.store(true, Ordering::SeqCst);
                true
            }
            None => true,
        });
    });
    let holding = Arc::clone(shared);
    carry(move || {
        copy(server, client, |_| {
            let is_held = answer_is_held.load(Ordering::SeqCst);
            if is_held {
                holding.hold();
            }
            !is_held
        });
    });
}

/// Passes bytes on until one side ends or some may not pass, and ends both.
fn copy(mut from: TcpStream, mut to: TcpStream, may_pass: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(amount @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..amount];
        if !may_pass(bytes) || to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
