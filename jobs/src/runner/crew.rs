//! The threads of one queue that call handlers: as many as its work needs at once, up to their number.
//!
//! A job goes to the thread that was idle last, whose stack and memory are warm; only where none is idle and all are
//! started does it wait for the next one that is free. So a queue with room for hundreds of threads touches the memory
//! of as many as it has jobs at once. A thread that nobody needed for a while ends; the first stays.

use super::handler::Work;
use crate::Result;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread is kept that has nothing to do.
pub(super) const KEPT: Duration = Duration::from_secs(60);

pub(super) struct Crew {
    /// Jobs for which no thread was idle when they came.
    waiting: (Sender<Work>, Receiver<Work>),
    members: Mutex<Members>,
    kept: Duration,
}

struct Members {
    /// Which numbers have a thread.
    started: Box<[bool]>,
    /// How many have.
    count: usize,
    /// Threads that wait, the one that was idle last at the end, each with a channel for one job.
    idle: Vec<(usize, Sender<Work>)>,
    /// One that claims has joined.
    joined: bool,
    over: bool,
}

impl Members {
    /// Whether one more job may be in a handler.
    fn have_room(&self) -> bool {
        self.count - self.idle.len() + usize::from(self.joined) < self.started.len()
    }

    /// The thread that was idle last, if one more may work.
    fn take_idle(&mut self) -> Option<Sender<Work>> {
        match self.have_room() {
            true => self.idle.pop().map(|(_, idle)| idle),
            false => None,
        }
    }

    /// How many threads may be started.
    fn most(&self) -> usize {
        self.started.len() - usize::from(self.joined)
    }

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

impl Crew {
    /// Room for so many threads and, beside the jobs that they hold, for so many that wait.
    pub(super) fn new(threads: usize, prefetch: usize, kept: Duration) -> Self {
        let members = Members {
            started: vec![false; threads].into(),
            count: 0,
            idle: Vec::new(),
            joined: false,
            over: false,
        };
        Self {
            waiting: bounded(threads + prefetch),
            members: Mutex::new(members),
            kept,
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands jobs out. `outstanding` jobs, these included, are not through their handlers: of the threads that are
    /// started or have joined, those beyond that are about to be idle. `start` starts the thread of a number, which
    /// begins with [`Crew::next`].
    ///
    /// # Errors
    /// A thread could not be started; all jobs are handed out nonetheless, and wait for the other threads.
    pub(super) fn hand_out(
        &self,
        jobs: impl Iterator<Item = Work>,
        outstanding: usize,
        start: impl Fn(usize) -> Result<()>,
    ) -> Result<()> {
        let mut members = self.members();
        let mut waits = false;
        for job in jobs {
            let unheard = match members.take_idle() {
                // It waits, and its channel has room for one.
                Some(idle) => idle.send(job),
                None => {
                    waits = true;
                    // There is room for all that can be outstanding.
                    self.waiting.0.send(job)
                }
            };
            // Both ends stand: the one as long as this crew, the other until it is taken from those that are idle.
            debug_assert!(unheard.is_ok());
        }
        let for_others = outstanding.saturating_sub(usize::from(members.joined));
        while waits && !members.over && members.count < for_others.min(members.most()) {
            members.start(&start)?;
        }
        Ok(())
    }

    /// A thread that claims asks to handle a job of its own. False: one has joined already, or as many jobs as may be
    /// are in handlers. One that has joined goes on with [`Crew::next_or_leave`].
    pub(super) fn join(&self) -> bool {
        let mut members = self.members();
        let joins = !members.joined && members.have_room();
        members.joined |= joins;
        joins
    }

    /// The next job that waits, for the thread that has joined; with none, it has left.
    pub(super) fn next_or_leave(&self) -> Option<Work> {
        let mut members = self.members();
        // Nothing begins to wait while this lock is held.
        let next = self.waiting.1.try_recv().ok();
        members.joined = next.is_some();
        next
    }

    /// Starts the first thread, which stays, if it is not started yet.
    pub(super) fn begin(&self, start: impl Fn(usize) -> Result<()>) -> Result<()> {
        let mut members = self.members();
        match members.started[0] {
            true => Ok(()),
            false => members.start(&start),
        }
    }

    /// The next job for the thread of this number; none when it is to end.
    pub(super) fn next(&self, number: usize) -> Option<Work> {
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

    /// No more jobs come: threads end when what waits is done.
    pub(super) fn end(&self) {
        let mut members = self.members();
        members.over = true;
        members.idle.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claimed::Batch;
    use crate::protocol::ClaimedRow;
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(3600);

    fn job(id: i64) -> Work {
        let lease_id = 1;
        Work {
            batch: Arc::new(Batch::new(lease_id, [id].into_iter(), Instant::now(), LONG)),
            place: 0,
            beside: None,
            row: ClaimedRow {
                id,
                lease_id,
                attempt: 1,
                max_attempts: 1,
                name: String::new(),
                key: None,
                key_cap: None,
                payload: String::new(),
            },
        }
    }

    /// The numbers of the threads that were started for these jobs.
    fn started(crew: &Crew, ids: std::ops::Range<i64>, outstanding: usize) -> Vec<usize> {
        let started = RefCell::new(Vec::new());
        let start = |number| {
            started.borrow_mut().push(number);
            Ok(())
        };
        crew.hand_out(ids.map(job), outstanding, start).unwrap();
        started.into_inner()
    }

    fn idle(crew: &Crew) -> Vec<usize> {
        let members = crew.members();
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
        let crew = Crew::new(3, 5, LONG);
        crew.begin(|_| Ok(())).unwrap();
        assert_eq!(started(&crew, 0..1, 1), Vec::<usize>::new());
        assert_eq!(crew.next(0).unwrap().row.id, 0);
        assert_eq!(started(&crew, 1..2, 2), [1]);
        // One of the two is through its job and about to take the next.
        assert_eq!(started(&crew, 2..3, 2), Vec::<usize>::new());
        assert_eq!(started(&crew, 3..8, 7), [2]);
        let rest: Vec<i64> = (0..7).map(|n| crew.next(n % 3).unwrap().row.id).collect();
        assert_eq!(rest, (1..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_job_goes_to_the_thread_that_was_idle_last() {
        let crew = Crew::new(2, 0, LONG);
        assert_eq!(started(&crew, 0..2, 2), [0, 1]);
        let taken = [crew.next(0), crew.next(1)].map(|work| work.unwrap().row.id);
        assert_eq!(taken, [0, 1]);
        std::thread::scope(|scope| {
            let crew = &crew;
            let next = |number| crew.next(number).map(|work| work.row.id);
            let first = scope.spawn(move || next(0));
            until(|| idle(crew) == [0]);
            let last = scope.spawn(move || next(1));
            until(|| idle(crew) == [0, 1]);
            assert_eq!(started(crew, 2..3, 1), Vec::<usize>::new());
            assert_eq!(last.join().unwrap(), Some(2));
            crew.end();
            assert_eq!(first.join().unwrap(), None);
        });
    }

    #[test]
    fn an_idle_thread_ends_after_a_while_but_for_the_first() {
        let crew = Crew::new(2, 0, Duration::from_millis(1));
        assert_eq!(started(&crew, 0..2, 2), [0, 1]);
        assert!(crew.next(1).is_some() && crew.next(1).is_some());
        assert!(crew.next(1).is_none(), "it was kept");
        std::thread::scope(|scope| {
            let first = scope.spawn(|| crew.next(0).map(|work| work.row.id));
            // Longer than it would be kept, by far.
            std::thread::sleep(Duration::from_millis(50));
            assert!(!first.is_finished(), "the first one ended");
            assert_eq!(started(&crew, 2..4, 2), [1], "it was not started again");
            assert_eq!(first.join().unwrap(), Some(2));
        });
        assert_eq!(crew.next(1).unwrap().row.id, 3);
    }

    #[test]
    fn what_waits_is_taken_before_the_end() {
        let crew = Crew::new(1, 1, LONG);
        assert_eq!(started(&crew, 0..2, 2), [0]);
        crew.end();
        assert!(crew.next(0).is_some() && crew.next(0).is_some());
        assert!(crew.next(0).is_none());
    }

    #[test]
    fn jobs_wait_for_other_threads_where_none_can_be_started() {
        let crew = Crew::new(2, 0, LONG);
        crew.begin(|_| Ok(())).unwrap();
        let fails = |_| Err(crate::Error::Thread(std::io::Error::other("no thread")));
        assert!(crew.hand_out((0..2).map(job), 2, fails).is_err());
        let taken = [crew.next(0), crew.next(0)].map(|work| work.unwrap().row.id);
        assert_eq!(taken, [0, 1]);
        assert_eq!(started(&crew, 2..4, 2), [1], "it is tried again");
    }

    #[test]
    fn one_that_claims_joins_as_one_of_the_threads_that_there_may_be() {
        let crew = Crew::new(2, 2, LONG);
        crew.begin(|_| Ok(())).unwrap();
        assert!(crew.join());
        assert!(!crew.join(), "a second one joined");
        // It handles one; of the next two, one is for the other thread and one waits.
        assert_eq!(started(&crew, 1..3, 3), Vec::<usize>::new());
        assert_eq!(crew.next(0).unwrap().row.id, 1);
        assert_eq!(crew.next_or_leave().unwrap().row.id, 2);
        assert!(crew.next_or_leave().is_none());
        // Now that it has left, its place is free for a thread.
        assert_eq!(started(&crew, 3..4, 2), [1]);
        assert!(!crew.join(), "it joined where all were busy");
        assert_eq!(crew.next(1).unwrap().row.id, 3);
    }

    #[test]
    fn an_idle_thread_gets_no_job_while_one_that_joined_has_its_place() {
        let crew = Crew::new(1, 1, LONG);
        crew.begin(|_| Ok(())).unwrap();
        std::thread::scope(|scope| {
            let crew = &crew;
            let idle_thread = scope.spawn(move || crew.next(0).map(|work| work.row.id));
            until(|| idle(crew) == [0]);
            assert!(crew.join());
            assert_eq!(started(crew, 1..2, 2), Vec::<usize>::new());
            assert_eq!(idle(crew), [0]);
            assert_eq!(crew.next_or_leave().unwrap().row.id, 1);
            assert!(crew.next_or_leave().is_none());
            assert_eq!(started(crew, 2..3, 1), Vec::<usize>::new());
            assert_eq!(idle_thread.join().unwrap(), Some(2));
        });
    }
}
