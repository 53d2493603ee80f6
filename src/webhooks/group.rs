//! What many threads have written at once, by one of them, while the others go on.
//!
//! Whoever comes while nobody writes leads: it writes what it has, alone and at once, or with what comes before
//! it may, where some time is to lie between one write and the next. The first that comes meanwhile waits, and
//! leads next, with all that has come by then; the others leave what they have and go. So a group is as large as
//! there is need, and it takes no thread of its own.
//!
//! Guarantees: what is left here is written by a thread that is in [`Group::put`], so nothing is left
//! once all have returned; at most [`MOST`] wait, and whoever finds more writes them at once; whoever
//! has waited long for a write of others begins another.
//!
//! Not here: what is made of a write that fails, and who is told (`deliver`).

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long one waits for others before it writes what waits with it.
const PATIENCE: Duration = Duration::from_millis(100);
/// How many wait for a write of others.
const MOST: usize = 64;

/// What waits to be written, and whether somebody writes.
pub(super) struct Group<T> {
    state: Mutex<State<T>>,
    patience: Duration,
}

struct State<T> {
    waiting: Vec<T>,
    is_led: bool,
    /// When the last write of who leads began, or is to begin.
    began: Option<Instant>,
    /// Who leads next. There is one wherever something waits, unless who leads now has not begun to write.
    heir: Option<Sender<()>>,
}

impl<T> State<T> {
    /// How long the next write has to wait, if there is one, so that it begins no sooner after the last.
    fn begins(&mut self, apart: Duration) -> Duration {
        if self.waiting.is_empty() {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let at = self.began.map_or(now, |began| now.max(began + apart));
        self.began = Some(at);
        at - now
    }
}

/// Handed on however the write ends.
struct Lead<'a, T>(&'a Group<T>);

impl<T> Drop for Lead<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let heir = state.heir.take();
        state.is_led = heir.is_some_and(|heir| heir.try_send(()).is_ok());
    }
}

impl<T> Default for Group<T> {
    fn default() -> Self {
        Self::patient(PATIENCE)
    }
}

impl<T> Group<T> {
    fn patient(patience: Duration) -> Self {
        let state = State {
            waiting: Vec::new(),
            is_led: false,
            began: None,
            heir: None,
        };
        Self {
            state: Mutex::new(state),
            patience,
        }
    }

    /// Has one written by `write`, with whatever others bring, here or by whoever leads next, who begins no sooner than
    /// `apart` after the one who led before. `write` is never called with nothing.
    pub(super) fn put(&self, brings: T, apart: Duration, write: impl Fn(Vec<T>)) {
        let told = {
            let mut state = self.state();
            state.waiting.push(brings);
            if !std::mem::replace(&mut state.is_led, true) {
                None
            } else if state.waiting.len() > MOST {
                let all = std::mem::take(&mut state.waiting);
                drop(state);
                return write(all);
            } else if state.heir.is_some() {
                return;
            } else {
                let (tell, told) = bounded(1);
                state.heir = Some(tell);
                Some(told)
            }
        };
        if let Some(told) = told
            && told.recv_timeout(self.patience) == Err(RecvTimeoutError::Timeout)
        {
            let mut state = self.state();
            // Unless the lead has come just now.
            if told.try_recv().is_err() {
                state.heir = None;
                let all = std::mem::take(&mut state.waiting);
                drop(state);
                return written(all, write);
            }
        }
        let lead = Lead(self);
        let wait = self.state().begins(apart);
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
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
        group: Group<usize>,
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
            let put = move || gate.group.put(one, Duration::ZERO, write);
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
        let group = Group::patient(patience);
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
    fn who_comes_before_a_write_may_begin_is_in_it() {
        const APART: Duration = Duration::from_secs(1);
        let group = Arc::new(Group::patient(LONG));
        let (wrote, written) = unbounded();
        let put = |one: usize| {
            let (group, wrote) = (Arc::clone(&group), wrote.clone());
            let write = move |all: Vec<usize>| wrote.send(all).unwrap();
            let put = move || group.put(one, APART, write);
            Builder::new().name("put".into()).spawn(put).unwrap()
        };
        put(1).join().unwrap();
        let began = group.state().began.unwrap();
        let puts = [2, 3].map(put);
        for put in puts {
            put.join().unwrap();
        }
        assert!(began.elapsed() >= APART);
        assert_eq!(written.try_recv().unwrap(), [1]);
        let mut next = written.try_recv().unwrap();
        next.sort_unstable();
        assert_eq!(next, [2, 3]);
        // Who finds nothing left to write waits for nothing.
        assert_eq!(group.state().begins(LONG), Duration::ZERO);
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
        let group = Group::<usize>::default();
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            group.put(1, Duration::ZERO, |_| panic!("as told"));
        }));
        assert!(broken.is_err());
        let (wrote, written) = unbounded();
        group.put(2, Duration::ZERO, |all| wrote.send(all).unwrap());
        assert_eq!(written.try_recv().unwrap(), [2]);
    }
}
