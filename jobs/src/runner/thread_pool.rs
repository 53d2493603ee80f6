//! The threads of one queue: as many as its work needs at the moment, up to a limit.
//!
//! Work goes to the thread that was idle last, because its stack is in the caches. It waits only if
//! no thread is idle and all are started. So a queue that may have hundreds of threads uses the
//! memory of as many as it has concurrent jobs. An idle thread ends after a while; the first one
//! stays.
//!
//! Knows nothing of jobs.

use crate::Result;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread without work is kept.
pub(super) const KEEP_IDLE: Duration = Duration::from_secs(60);

pub(super) struct ThreadPool<T> {
    /// Work for which no thread was idle when it came.
    waiting: (Sender<T>, Receiver<T>),
    members: Mutex<Members<T>>,
    kept: Duration,
}

struct Members<T> {
    /// Which numbers have a thread.
    started: Box<[bool]>,
    /// How many have.
    count: usize,
    /// Threads that wait, the one that was idle last at the end, each with a channel for one piece of work.
    idle: Vec<(usize, Sender<T>)>,
    over: bool,
}

impl<T> Members<T> {
    /// Starts the thread of the lowest number that has none.
    fn start(&mut self, start: impl Fn(usize) -> Result<()>) -> Result<()> {
        if let Some(number) = self.started.iter().position(|started| !started) {
            start(number)?;
            self.started[number] = true;
            self.count += 1;
        }
        Ok(())
    }
}

impl<T> ThreadPool<T> {
    /// Room for so many threads, and for so much work that waits beside what they hold.
    pub(super) fn new(threads: usize, prefetch: usize, kept: Duration) -> Self {
        let members = Members {
            started: vec![false; threads].into(),
            count: 0,
            idle: Vec::new(),
            over: false,
        };
        Self {
            waiting: bounded(threads + prefetch),
            members: Mutex::new(members),
            kept,
        }
    }

    fn members(&self) -> MutexGuard<'_, Members<T>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands work out. `outstanding` pieces, these included, are not done: of the threads that are started, those beyond
    /// that are about to be idle. `start` starts the thread of a number, which begins with [`ThreadPool::next`].
    ///
    /// # Errors
    /// A thread could not be started; the work is handed out nonetheless, and waits for the other threads.
    pub(super) fn hand_out(
        &self,
        work: impl Iterator<Item = T>,
        outstanding: usize,
        start: impl Fn(usize) -> Result<()>,
    ) -> Result<()> {
        let mut members = self.members();
        let mut waits = false;
        for work in work {
            let unheard = match members.idle.pop() {
                // It waits, and its channel has room for one.
                Some((_, idle)) => idle.send(work),
                None => {
                    waits = true;
                    // There is room for all that can be outstanding.
                    self.waiting.0.send(work)
                }
            };
            // Both ends stand: the one as long as this pool, the other until it is taken from those that are idle.
            debug_assert!(unheard.is_ok());
        }
        let wanted = outstanding.min(members.started.len());
        while waits && !members.over && members.count < wanted {
            members.start(&start)?;
        }
        Ok(())
    }

    /// Starts the first thread, which stays, if it is not started yet.
    pub(super) fn begin(&self, start: impl Fn(usize) -> Result<()>) -> Result<()> {
        let mut members = self.members();
        match members.started[0] {
            true => Ok(()),
            false => members.start(&start),
        }
    }

    /// The next piece of work for the thread of this number; none when it is to end.
    pub(super) fn next(&self, number: usize) -> Option<T> {
        loop {
            if let Ok(work) = self.waiting.1.try_recv() {
                return Some(work);
            }
            let (idle, given) = bounded(1);
            {
                let mut members = self.members();
                // Nothing begins to wait while this lock is held.
                if let Ok(work) = self.waiting.1.try_recv() {
                    return Some(work);
                }
                if members.over {
                    return None;
                }
                members.idle.push((number, idle));
            }
            match given.recv_timeout(self.kept) {
                Ok(work) => return Some(work),
                Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let mut members = self.members();
                    members.idle.retain(|(one, _)| *one != number);
                    if let Ok(work) = given.try_recv() {
                        return Some(work);
                    }
                    if number > 0 {
                        members.started[number] = false;
                        members.count -= 1;
                        return None;
                    }
                }
            }
        }
    }

    /// No more work comes: threads end when what waits is done.
    pub(super) fn end(&self) {
        let mut members = self.members();
        members.over = true;
        members.idle.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(3600);

    /// The numbers of the threads that were started for these jobs.
    fn started(
        pool: &ThreadPool<i64>,
        ids: std::ops::Range<i64>,
        outstanding: usize,
    ) -> Vec<usize> {
        let started = RefCell::new(Vec::new());
        let start = |number| {
            started.borrow_mut().push(number);
            Ok(())
        };
        pool.hand_out(ids, outstanding, start).unwrap();
        started.into_inner()
    }

    fn idle(pool: &ThreadPool<i64>) -> Vec<usize> {
        let members = pool.members();
        members.idle.iter().map(|(number, _)| *number).collect()
    }

    fn until(holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < Duration::from_secs(10));
            std::thread::yield_now();
        }
    }

    #[test]
    fn threads_are_started_for_the_jobs_at_once_and_no_more_than_there_may_be() {
        let pool = ThreadPool::new(3, 5, LONG);
        pool.begin(|_| Ok(())).unwrap();
        assert_eq!(started(&pool, 0..1, 1), Vec::<usize>::new());
        assert_eq!(pool.next(0).unwrap(), 0);
        assert_eq!(started(&pool, 1..2, 2), [1]);
        // One of the two is through its job and about to take the next.
        assert_eq!(started(&pool, 2..3, 2), Vec::<usize>::new());
        assert_eq!(started(&pool, 3..8, 7), [2]);
        let rest: Vec<i64> = (0..7).map(|n| pool.next(n % 3).unwrap()).collect();
        assert_eq!(rest, (1..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_job_goes_to_the_thread_that_was_idle_last() {
        let pool = ThreadPool::new(2, 0, LONG);
        assert_eq!(started(&pool, 0..2, 2), [0, 1]);
        let taken = [pool.next(0), pool.next(1)].map(Option::unwrap);
        assert_eq!(taken, [0, 1]);
        std::thread::scope(|scope| {
            let pool = &pool;
            let next = |number| pool.next(number);
            let first = scope.spawn(move || next(0));
            until(|| idle(pool) == [0]);
            let last = scope.spawn(move || next(1));
            until(|| idle(pool) == [0, 1]);
            assert_eq!(started(pool, 2..3, 1), Vec::<usize>::new());
            assert_eq!(last.join().unwrap(), Some(2));
            pool.end();
            assert_eq!(first.join().unwrap(), None);
        });
    }

    #[test]
    fn an_idle_thread_ends_after_a_while_but_for_the_first() {
        let pool = ThreadPool::new(2, 0, Duration::from_millis(1));
        assert_eq!(started(&pool, 0..2, 2), [0, 1]);
        assert!(pool.next(1).is_some() && pool.next(1).is_some());
        assert!(pool.next(1).is_none(), "it was kept");
        std::thread::scope(|scope| {
            let first = scope.spawn(|| pool.next(0));
            let channel = || pool.members().idle.first().map(|(_, idle)| idle.clone());
            until(|| channel().is_some());
            let idle = channel();
            // It was idle for as long as another is kept, and waits anew.
            until(|| {
                channel()
                    .zip(idle.clone())
                    .is_some_and(|(now, then)| !now.same_channel(&then))
            });
            assert!(!first.is_finished(), "the first one ended");
            assert_eq!(started(&pool, 2..4, 2), [1], "it was not started again");
            assert_eq!(first.join().unwrap(), Some(2));
        });
        assert_eq!(pool.next(1).unwrap(), 3);
    }

    #[test]
    fn what_waits_is_taken_before_the_end() {
        let pool = ThreadPool::new(1, 1, LONG);
        assert_eq!(started(&pool, 0..2, 2), [0]);
        pool.end();
        assert!(pool.next(0).is_some() && pool.next(0).is_some());
        assert!(pool.next(0).is_none());
    }

    #[test]
    fn jobs_wait_for_other_threads_where_none_can_be_started() {
        let pool = ThreadPool::new(2, 0, LONG);
        pool.begin(|_| Ok(())).unwrap();
        let fails = |_| Err(crate::Error::Thread(std::io::Error::other("no thread")));
        assert!(pool.hand_out(0..2, 2, fails).is_err());
        let taken = [pool.next(0), pool.next(0)].map(Option::unwrap);
        assert_eq!(taken, [0, 1]);
        assert_eq!(started(&pool, 2..4, 2), [1], "it is tried again");
    }
}
