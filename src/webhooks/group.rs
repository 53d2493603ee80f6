//! What many threads write at once, one of them writes for all.
//!
//! Whoever comes while nobody writes leads: it writes what it has, alone and at once. Whoever comes
//! meanwhile waits, and the first of those leads next, with all that has come by then. So a group is
//! as large as there is need, nothing waits for a timer, and it takes no thread of its own.
//!
//! Guarantees: each caller is answered once, after what it brought was written or was not; one that
//! spoils it for the others fails alone; whoever has waited long for a write of others begins another.

use crate::error::{Code, Error, Result};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long one waits for others before it writes what waits with it.
const PATIENCE: Duration = Duration::from_millis(100);

/// What waits to be written, and whether somebody writes.
pub(super) struct Group<T, R> {
    state: Mutex<State<T, R>>,
    patience: Duration,
}

struct State<T, R> {
    waiting: Vec<Member<T, R>>,
    is_led: bool,
    came: u64,
}

struct Member<T, R> {
    number: u64,
    brings: T,
    tell: Sender<Told<R>>,
}

enum Told<R> {
    /// Nobody writes any more, and it is the first of those who wait.
    Lead,
    Outcome(Result<R>),
}

/// Handed on however the write ends.
struct Lead<'a, T, R>(&'a Group<T, R>);

impl<T, R> Drop for Lead<'_, T, R> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let next = state.waiting.first();
        state.is_led = next.is_some_and(|next| next.tell.try_send(Told::Lead).is_ok());
    }
}

impl<T, R> Default for Group<T, R> {
    fn default() -> Self {
        Self::patient(PATIENCE)
    }
}

impl<T, R> Group<T, R> {
    fn patient(patience: Duration) -> Self {
        let state = State {
            waiting: Vec::new(),
            is_led: false,
            came: 0,
        };
        Self {
            state: Mutex::new(state),
            patience,
        }
    }

    /// Has one written, with whatever others bring; what `write` says of it. `write` answers for each
    /// in the order given, or fails for all.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn put(&self, brings: T, write: impl Fn(&[T]) -> Result<Vec<R>>) -> Result<R> {
        let (tell, told) = bounded(2);
        let (number, leads) = self.join(brings, tell);
        if leads {
            self.lead(&write);
        }
        loop {
            match told.recv_timeout(self.patience) {
                Ok(Told::Outcome(outcome)) => return outcome,
                Ok(Told::Lead) => self.lead(&write),
                Err(RecvTimeoutError::Timeout) if self.waits(number) => {
                    let (tells, outcomes) = written(self.take(), &write);
                    tell_each(tells, outcomes);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("whoever wrote for others broke off"));
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number in the line, and whether to lead.
    fn join(&self, brings: T, tell: Sender<Told<R>>) -> (u64, bool) {
        let mut state = self.state();
        state.came += 1;
        let number = state.came;
        state.waiting.push(Member {
            number,
            brings,
            tell,
        });
        (number, !std::mem::replace(&mut state.is_led, true))
    }

    fn waits(&self, number: u64) -> bool {
        let state = self.state();
        state.waiting.iter().any(|member| member.number == number)
    }

    fn take(&self) -> Vec<Member<T, R>> {
        std::mem::take(&mut self.state().waiting)
    }

    fn lead(&self, write: &impl Fn(&[T]) -> Result<Vec<R>>) {
        let lead = Lead(self);
        let (tells, outcomes) = written(self.take(), write);
        // The next ones need not wait until these have been told.
        drop(lead);
        tell_each(tells, outcomes);
    }
}

fn tell_each<R>(tells: Vec<Sender<Told<R>>>, outcomes: Vec<Result<R>>) {
    for (tell, outcome) in tells.into_iter().zip(outcomes) {
        // Nobody goes before it is told.
        let _ = tell.send(Told::Outcome(outcome));
    }
}

type Written<R> = (Vec<Sender<Told<R>>>, Vec<Result<R>>);

/// Writes them at once; one after another if one of them spoils it.
fn written<T, R>(
    members: Vec<Member<T, R>>,
    write: &impl Fn(&[T]) -> Result<Vec<R>>,
) -> Written<R> {
    let (tells, brought): (Vec<_>, Vec<T>) = members
        .into_iter()
        .map(|member| (member.tell, member.brings))
        .unzip();
    if brought.is_empty() {
        return (tells, Vec::new());
    }
    let outcomes = match write(&brought) {
        Ok(all) => all.into_iter().map(Ok).collect(),
        Err(error) if brought.len() == 1 => vec![Err(error)],
        Err(error) if error.code() == Code::DatabaseUnavailable => {
            let of_each = |_| Err(Error::new(error.code(), error.message()));
            brought.iter().map(of_each).collect()
        }
        Err(_) => brought.chunks(1).map(|one| alone(one, write)).collect(),
    };
    (tells, outcomes)
}

fn alone<T, R>(one: &[T], write: &impl Fn(&[T]) -> Result<Vec<R>>) -> Result<R> {
    write(one)?
        .pop()
        .ok_or_else(|| Error::internal("a write gave no answer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::Builder;

    const LONG: Duration = Duration::from_secs(600);

    /// Writes that begin when they are told to, and say how many came at once.
    struct Gate {
        group: Group<u32, u32>,
        go: crossbeam_channel::Receiver<()>,
        began: Sender<usize>,
    }

    impl Gate {
        fn write(&self, brought: &[u32]) -> Result<Vec<u32>> {
            self.began.send(brought.len()).unwrap();
            self.go.recv().unwrap();
            match brought.contains(&13) {
                true => Err(Error::internal("13")),
                false => Ok(brought.iter().map(|one| one * 2).collect()),
            }
        }

        fn put(self: &Arc<Self>, one: u32) -> std::thread::JoinHandle<Result<u32>> {
            let gate = Arc::clone(self);
            let put = move || gate.group.put(one, |brought| gate.write(brought));
            Builder::new().name("put".into()).spawn(put).unwrap()
        }

        fn waiting(&self, count: usize) {
            while self.group.state().waiting.len() != count {
                std::thread::yield_now();
            }
        }
    }

    fn gate(patience: Duration) -> (Arc<Gate>, Sender<()>, crossbeam_channel::Receiver<usize>) {
        let (go, gone) = bounded(0);
        let (began, begun) = crossbeam_channel::unbounded();
        let group = Group::patient(patience);
        let gate = Gate {
            group,
            go: gone,
            began,
        };
        (Arc::new(gate), go, begun)
    }

    #[test]
    fn who_comes_during_a_write_is_written_in_one_after_it() {
        let (gate, go, begun) = gate(LONG);
        let first = gate.put(1);
        assert_eq!(begun.recv_timeout(LONG).unwrap(), 1);
        let others: Vec<_> = [2, 3, 4].into_iter().map(|one| gate.put(one)).collect();
        gate.waiting(3);
        go.send(()).unwrap();
        assert_eq!(first.join().unwrap().unwrap(), 2);
        assert_eq!(begun.recv_timeout(LONG).unwrap(), 3);
        go.send(()).unwrap();
        let told: Vec<u32> = others
            .into_iter()
            .map(|other| other.join().unwrap().unwrap())
            .collect();
        assert_eq!(told, [4, 6, 8]);
        assert!(!gate.group.state().is_led);
    }

    #[test]
    fn one_that_spoils_it_fails_alone() {
        let (gate, go, begun) = gate(LONG);
        let first = gate.put(1);
        begun.recv_timeout(LONG).unwrap();
        let others: Vec<_> = [2, 13, 4].into_iter().map(|one| gate.put(one)).collect();
        gate.waiting(3);
        go.send(()).unwrap();
        first.join().unwrap().unwrap();
        let counts: Vec<usize> = (0..4)
            .map(|_| {
                let count = begun.recv_timeout(LONG).unwrap();
                go.send(()).unwrap();
                count
            })
            .collect();
        assert_eq!(counts, [3, 1, 1, 1]);
        let told: Vec<Option<u32>> = others
            .into_iter()
            .map(|other| other.join().unwrap().ok())
            .collect();
        assert_eq!(told, [Some(4), None, Some(8)]);
    }

    #[test]
    fn a_write_that_stands_still_holds_up_only_what_is_in_it() {
        let (gate, go, begun) = gate(Duration::from_millis(1));
        let first = gate.put(1);
        begun.recv_timeout(LONG).unwrap();
        let second = gate.put(2);
        // Nobody has let the first one go.
        assert_eq!(begun.recv_timeout(LONG).unwrap(), 1);
        go.send(()).unwrap();
        go.send(()).unwrap();
        assert_eq!(first.join().unwrap().unwrap(), 2);
        assert_eq!(second.join().unwrap().unwrap(), 4);
    }

    #[test]
    fn a_writer_that_breaks_off_leaves_the_lead_to_the_next() {
        let group = Arc::new(Group::<u32, u32>::default());
        let writes = AtomicUsize::new(0);
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            group.put(1, |_| {
                writes.fetch_add(1, Ordering::SeqCst);
                panic!("as told")
            })
        }));
        assert!(broken.is_err());
        let after = group.put(2, |brought| Ok(brought.to_vec()));
        assert_eq!(after.unwrap(), 2);
        assert_eq!(writes.load(Ordering::SeqCst), 1);
    }
}
