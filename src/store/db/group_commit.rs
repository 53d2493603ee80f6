//! Group commit: one thread writes what many threads have to write, while the others go on.
//!
//! A thread that finds no leader leads, and writes what it has immediately. The first thread that
//! comes meanwhile waits and leads next, with everything that has come by then; the others leave
//! their part and go on. So a group is as large as needed, without a thread or a timer of its own.
//!
//! Guarantees: a thread inside [`GroupCommit::put`] writes what was left, so nothing is left once
//! all calls have returned. At most [`MOST`] parts wait; a thread that finds more writes them
//! itself. A thread that has waited long for the leader starts another write.
//!
//! Not here: what happens after a failed write, and who learns of it.

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long one waits for others before it writes what waits with it.
const PATIENCE: Duration = Duration::from_millis(100);
/// How many wait for a write of others.
const MOST: usize = 64;

/// What waits to be written, and whether somebody writes.
pub struct GroupCommit<T> {
    state: Mutex<State<T>>,
    patience: Duration,
}

struct State<T> {
    waiting: Vec<T>,
    is_led: bool,
    /// Who leads next. There is one wherever something waits, unless who leads now has not begun to write.
    heir: Option<Sender<()>>,
}

/// Handed on however the write ends.
struct Lead<'a, T>(&'a GroupCommit<T>);

impl<T> Drop for Lead<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let heir = state.heir.take();
        state.is_led = heir.is_some_and(|heir| heir.try_send(()).is_ok());
    }
}

impl<T> Default for GroupCommit<T> {
    fn default() -> Self {
        Self::patient(PATIENCE)
    }
}

impl<T> GroupCommit<T> {
    fn patient(patience: Duration) -> Self {
        let state = State {
            waiting: Vec::new(),
            is_led: false,
            heir: None,
        };
        Self {
            state: Mutex::new(state),
            patience,
        }
    }

    /// Has `item` written by `write`, with whatever others bring, here or by whoever leads next. `write` is never called
    /// with nothing.
    pub fn put(&self, item: T, write: impl Fn(Vec<T>)) {
        let turn = {
            let mut state = self.state();
            state.waiting.push(item);
            if !std::mem::replace(&mut state.is_led, true) {
                None
            } else if state.waiting.len() > MOST {
                let all = std::mem::take(&mut state.waiting);
                drop(state);
                return write(all);
            } else if state.heir.is_some() {
                return;
            } else {
                let (heir, turn) = bounded(1);
                state.heir = Some(heir);
                Some(turn)
            }
        };
        if let Some(turn) = turn
            && turn.recv_timeout(self.patience) == Err(RecvTimeoutError::Timeout)
        {
            let mut state = self.state();
            // Unless the lead has come just now.
            if turn.try_recv().is_err() {
                state.heir = None;
                let all = std::mem::take(&mut state.waiting);
                drop(state);
                return written(all, write);
            }
        }
        let lead = Lead(self);
        let all = std::mem::take(&mut self.state().waiting);
        written(all, write);
        drop(lead);
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Another may have taken what waited.
fn written<T>(all: Vec<T>, write: impl Fn(Vec<T>)) {
    if !all.is_empty() {
        write(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::{Receiver, unbounded};
    use std::sync::Arc;
    use std::thread::{Builder, JoinHandle};

    const LONG: Duration = Duration::from_secs(600);

    /// Writes that begin when they are told to, and say what came at once.
    struct Gate {
        group: GroupCommit<usize>,
        go: Receiver<()>,
        began: Sender<Vec<usize>>,
    }

    impl Gate {
        fn put(self: &Arc<Self>, one: usize) -> JoinHandle<()> {
            let gate = Arc::clone(self);
            let write = move |all| {
                gate.began.send(all).unwrap();
                gate.go.recv().unwrap();
            };
            let gate = Arc::clone(self);
            let put = move || gate.group.put(one, write);
            Builder::new().name("put".into()).spawn(put).unwrap()
        }

        /// Until so many wait, one of them to lead.
        fn waiting(&self, count: usize) {
            loop {
                let state = self.group.state();
                if state.waiting.len() == count && state.heir.is_some() {
                    return;
                }
                drop(state);
                std::thread::yield_now();
            }
        }
    }

    fn gate(patience: Duration) -> (Arc<Gate>, Sender<()>, Receiver<Vec<usize>>) {
        let (go, gone) = bounded(0);
        let (began, begun) = unbounded();
        let group = GroupCommit::patient(patience);
        let gate = Gate {
            group,
            go: gone,
            began,
        };
        (Arc::new(gate), go, begun)
    }

    #[test]
    fn who_comes_during_a_write_is_written_in_one_after_it_and_only_the_first_waits() {
        let (gate, go, begun) = gate(LONG);
        let first = gate.put(1);
        assert_eq!(begun.recv_timeout(LONG).unwrap(), [1]);
        let second = gate.put(2);
        gate.waiting(1);
        for one in [3, 4] {
            gate.put(one).join().unwrap();
        }
        go.send(()).unwrap();
        first.join().unwrap();
        assert_eq!(begun.recv_timeout(LONG).unwrap(), [2, 3, 4]);
        go.send(()).unwrap();
        second.join().unwrap();
        let state = gate.group.state();
        assert!(!state.is_led && state.waiting.is_empty() && state.heir.is_none());
    }

    #[test]
    fn a_write_that_stands_still_holds_up_only_what_is_in_it() {
        let (gate, go, begun) = gate(Duration::from_millis(1));
        let first = gate.put(1);
        begun.recv_timeout(LONG).unwrap();
        let second = gate.put(2);
        // Nobody has let the first one go.
        assert_eq!(begun.recv_timeout(LONG).unwrap(), [2]);
        go.send(()).unwrap();
        go.send(()).unwrap();
        first.join().unwrap();
        second.join().unwrap();
        assert!(!gate.group.state().is_led);
    }

    #[test]
    fn whoever_finds_that_too_many_wait_writes_them() {
        let (gate, go, begun) = gate(LONG);
        let first = gate.put(0);
        begun.recv_timeout(LONG).unwrap();
        let second = gate.put(1);
        gate.waiting(1);
        for one in 2..=MOST {
            gate.put(one).join().unwrap();
        }
        let last = gate.put(MOST + 1);
        assert_eq!(begun.recv_timeout(LONG).unwrap().len(), MOST + 1);
        for _ in 0..2 {
            go.send(()).unwrap();
        }
        // The one that waited to lead has nothing left to write.
        for one in [first, second, last] {
            one.join().unwrap();
        }
        assert!(!gate.group.state().is_led);
    }

    #[test]
    fn a_writer_that_breaks_off_leaves_the_lead_to_the_next() {
        let group = GroupCommit::<usize>::default();
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            group.put(1, |_| panic!("as told"));
        }));
        assert!(broken.is_err());
        let (wrote, written) = unbounded();
        group.put(2, |all| wrote.send(all).unwrap());
        assert_eq!(written.try_recv().unwrap(), [2]);
    }
}
