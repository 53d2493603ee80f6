//! A scripted model provider: an OpenAI-compatible server on loopback without a model.
//!
//! `agent-runtime dev` starts it if no provider is configured, so that a first run answers and
//! shows its tool steps. Tests and benchmarks queue answers and faults on it. It streams word by
//! word, calls an offered tool if the message asks for one, answers an output schema with JSON that fits it, and reports usage.
//!
//! It binds loopback only, bounds connections and bodies, and stops when dropped. Not here:
//! anything except `POST …/chat/completions` and `GET …/models`.

mod answer;
mod fitting;
mod script;
mod wire;

use answer::Numbers;
use crossbeam_channel::{Sender, bounded};
pub use script::{Fault, Recorded, Reply, Script, Step};
use script::{Shared, State};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Open connections, at most; a further one is closed unanswered.
const MAX_CONNECTIONS: usize = 512;

/// The running server. Dropping it stops it and its threads.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<Sender<()>>,
    accepting: Option<JoinHandle<()>>,
}

impl Provider {
    /// Starts a server on a free port of 127.0.0.1.
    pub fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = bounded(0);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: script.queue.into(),
                then: script.then,
                ..State::default()
            }),
            stopped,
            numbers: Numbers::default(),
        });
        let for_accept = Arc::clone(&shared);
        let accepting = std::thread::Builder::new()
            .name("provider".to_owned())
            .spawn(move || accept(&listener, &for_accept))?;
        Ok(Self {
            address,
            shared,
            stop: Some(stop),
            accepting: Some(accepting),
        })
    }

    /// The base URL to configure: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Appends an answer to the queue.
    pub fn push(&self, step: Step) {
        self.shared.lock().queue.push_back(step);
    }

    /// The number of chat completions requested.
    pub fn count(&self) -> u64 {
        self.shared.lock().count
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// The last requests, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().recorded.iter().cloned().collect()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.stop.take());
        let threads = {
            let mut state = self.shared.lock();
            state.stopping = true;
            for connection in state.connections.values() {
                let _ = connection.shutdown(Shutdown::Both);
            }
            std::mem::take(&mut state.threads)
        };
        // Wakes the accept call, which then stops.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        for thread in self.accepting.take().into_iter().chain(threads) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for (id, connection) in (0_u64..).zip(listener.incoming()) {
        let mut state = shared.lock();
        if state.stopping {
            return;
        }
        let Ok(connection) = connection else {
            drop(state);
            // Most likely the process is out of file descriptors; others may close theirs.
            let _ = shared.pause(Duration::from_millis(20));
            continue;
        };
        state.threads.retain(|thread| !thread.is_finished());
        if state.connections.len() >= MAX_CONNECTIONS {
            continue;
        }
        let Ok(held) = connection.try_clone() else {
            continue;
        };
        let for_thread = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .name(format!("provider-{id}"))
            // A JSON Schema is compiled on it.
            .stack_size(2 * 1024 * 1024)
            .spawn(move || {
                // A client that disconnects is not a fault of the server.
                let _ = wire::serve(&connection, &for_thread);
                let _ = connection.shutdown(Shutdown::Both);
                for_thread.lock().connections.remove(&id);
            });
        if let Ok(thread) = thread {
            state.connections.insert(id, held);
            state.threads.push(thread);
        }
    }
}

#[cfg(test)]
mod tests;
