//! The queue of requests that wait for a thread, and of threads that wait for a request.
//!
//! A request goes to the thread that was idle last, because its stack is in the caches. If none is
//! idle the request waits, in order; if the queue is full it is refused. So a server with little
//! load touches the memory of few threads.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub(super) struct Queue<T> {
    limit: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// What no thread was idle for when it came.
    waiting: VecDeque<T>,
    /// The threads that wait, the one that was idle last at the end.
    idle: Vec<Arc<Seat<T>>>,
    is_closed: bool,
}

/// How often a thread lets others go first before it sleeps: where many requests come, the next one is there by then, and
/// nobody has to be woken for it.
const YIELDS: u32 = 8;

/// Where one thread waits.
pub(super) struct Seat<T> {
    held: Mutex<Held<T>>,
    called: Condvar,
}

struct Held<T> {
    given: Given<T>,
    sleeps: bool,
}

enum Given<T> {
    Nothing,
    This(T),
    /// There will be nothing more.
    End,
}

impl<T> Queue<T> {
    /// With room for so many that wait.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                idle: Vec::new(),
                is_closed: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Hands this to a thread, or lets it wait for one. False: there is no room, or it is closed.
    pub(super) fn push(&self, this: T) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        if let Some(seat) = state.idle.pop() {
            drop(state);
            seat.give(Given::This(this));
            return true;
        }
        let has_room = state.waiting.len() < self.limit;
        if has_room {
            state.waiting.push_back(this);
        }
        has_room
    }

    /// The next one for the thread of this seat; none once it is closed and nothing waits any more.
    pub(super) fn next(&self, seat: &Arc<Seat<T>>) -> Option<T> {
        let mut state = self.lock();
        if let Some(next) = state.waiting.pop_front() {
            return Some(next);
        }
        if state.is_closed {
            return None;
        }
        state.idle.push(Arc::clone(seat));
        drop(state);
        seat.wait()
    }

    /// Nothing more comes: threads end when what waits is done.
    pub(super) fn close(&self) {
        let idle = {
            let mut state = self.lock();
            state.is_closed = true;
            std::mem::take(&mut state.idle)
        };
        for seat in idle {
            seat.give(Given::End);
        }
    }
}

impl<T> Default for Seat<T> {
    fn default() -> Self {
        Self {
            held: Mutex::new(Held {
                given: Given::Nothing,
                sleeps: false,
            }),
            called: Condvar::new(),
        }
    }
}

impl<T> Seat<T> {
    fn lock(&self) -> MutexGuard<'_, Held<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, given: Given<T>) {
        let mut held = self.lock();
        held.given = given;
        let sleeps = held.sleeps;
        drop(held);
        if sleeps {
            self.called.notify_one();
        }
    }

    fn wait(&self) -> Option<T> {
        for _ in 0..YIELDS {
            std::thread::yield_now();
            if !matches!(self.lock().given, Given::Nothing) {
                break;
            }
        }
        let mut held = self.lock();
        loop {
            match std::mem::replace(&mut held.given, Given::Nothing) {
                Given::This(this) => return Some(this),
                Given::End => return None,
                Given::Nothing => {}
            }
            held.sleeps = true;
            held = self
                .called
                .wait(held)
                .unwrap_or_else(PoisonError::into_inner);
            held.sleeps = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn until_idle(queue: &Queue<u32>, threads: usize) {
        let began = Instant::now();
        while queue.lock().idle.len() != threads {
            assert!(began.elapsed() < Duration::from_secs(10));
            std::thread::yield_now();
        }
    }

    fn next(queue: &Queue<u32>) -> Option<u32> {
        queue.next(&Arc::default())
    }

    #[test]
    fn one_goes_to_the_thread_that_was_idle_last_and_the_others_wait_in_order() {
        let queue = Queue::new(2);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| next(&queue));
            until_idle(&queue, 1);
            let last = scope.spawn(|| next(&queue));
            until_idle(&queue, 2);
            assert!(queue.push(1) && queue.push(2));
            assert_eq!(
                (last.join().unwrap(), first.join().unwrap()),
                (Some(1), Some(2))
            );
        });
        assert!(queue.push(3) && queue.push(4));
        assert!(!queue.push(5), "it took more than it has room for");
        assert_eq!(
            (queue.len(), next(&queue), next(&queue)),
            (2, Some(3), Some(4))
        );
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn what_waits_is_taken_before_the_end() {
        let queue = Queue::new(1);
        assert!(queue.push(1));
        queue.close();
        assert!(!queue.push(2), "it took more after its end");
        assert_eq!((next(&queue), next(&queue)), (Some(1), None));
    }

    #[test]
    fn threads_that_wait_are_told_of_the_end() {
        let queue = Queue::new(1);
        std::thread::scope(|scope| {
            let threads = [(); 2].map(|()| scope.spawn(|| next(&queue)));
            until_idle(&queue, 2);
            queue.close();
            assert_eq!(threads.map(|thread| thread.join().unwrap()), [None, None]);
        });
    }

    #[test]
    fn without_room_for_any_that_wait_one_goes_to_an_idle_thread_alone() {
        let queue = Queue::new(0);
        assert!(!queue.push(1));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| next(&queue));
            until_idle(&queue, 1);
            assert!(queue.push(2));
            assert_eq!(thread.join().unwrap(), Some(2));
        });
    }
}
