//! Places for request threads that wait for something outside: the authorization server, a name
//! server, a key service, an attempt that is in flight.
//!
//! Guarantees (invariants 6 and 14): a bounded number waits at once. Beyond that the answer comes at
//! once, unless places move quickly just now: then one is worth a moment's wait, to as many requests
//! as there are places. With places for half of the request threads, that is all of them: what waits
//! for nothing then has its turn among the others, and comes at once where places are held for long.
//!
//! And permits, for what is worth waiting for until a deadline.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where places are held for longer, nobody waits for one.
const QUICK: Duration = Duration::from_millis(100);

/// Where none was taken or given back for longer, nobody waits for one: a pause that a busy machine may make is shorter.
const STILL: Duration = Duration::from_millis(250);

/// How many holds make up how long places are held of late: one that is slow among many says little.
const OF_LATE: u32 = 8;

/// The longest wait for a place.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bounded number of places.
pub struct Places {
    /// And as many may wait for one.
    most: usize,
    state: Mutex<Taken>,
    changed: Condvar,
}

struct Taken {
    in_use: usize,
    waiting: usize,
    /// When a place was last taken or given back.
    moved_at: Instant,
    /// How long they are held of late.
    held: Duration,
}

/// One of them, free again when dropped.
pub struct Place<'a> {
    places: &'a Places,
    since: Instant,
}

impl Places {
    /// So many places.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            state: Mutex::new(Taken {
                in_use: 0,
                waiting: 0,
                moved_at: Instant::now(),
                held: Duration::ZERO,
            }),
            changed: Condvar::new(),
        }
    }

    /// A place, after a wait as long as they move quickly and not too many wait. None: there is none.
    pub fn take(&self) -> Option<Place<'_>> {
        let since = Instant::now();
        let mut taken = self.lock();
        while taken.in_use >= self.most {
            let wait = self.wait(&taken, since.elapsed())?;
            taken.waiting += 1;
            taken = self
                .changed
                .wait_timeout(taken, wait)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(taken, _)| taken);
            taken.waiting -= 1;
        }
        taken.in_use += 1;
        taken.moved_at = Instant::now();
        Some(Place {
            places: self,
            since: taken.moved_at,
        })
    }

    /// How many places are in use, and how many wait for one.
    pub fn load(&self) -> (usize, usize) {
        let taken = self.lock();
        (taken.in_use, taken.waiting)
    }

    /// How long a place is worth waiting for, to one who has waited this long. None: it is not.
    fn wait(&self, taken: &Taken, waited: Duration) -> Option<Duration> {
        let left = STILL.saturating_sub(taken.moved_at.elapsed());
        let is_quick = taken.held < QUICK && !left.is_zero() && waited < PATIENCE;
        (is_quick && taken.waiting < self.most).then_some(left)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.in_use -= 1;
        taken.moved_at = Instant::now();
        let others = taken.held * (OF_LATE - 1);
        taken.held = (others + self.since.elapsed()) / OF_LATE;
        drop(taken);
        self.places.changed.notify_one();
    }
}

/// So many at once. Clones share them.
#[derive(Clone)]
pub struct Permits(Arc<Free>);

struct Free {
    count: Mutex<usize>,
    freed: Condvar,
}

/// One of them. Dropping it gives it back.
pub struct Permit(Permits);

impl Permits {
    /// So many permits.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Free {
            count: Mutex::new(count),
            freed: Condvar::new(),
        }))
    }

    /// A permit. None: none came free in time.
    pub fn take(&self, deadline: Instant) -> Option<Permit> {
        let left = deadline.saturating_duration_since(Instant::now());
        let free = self.0.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .0
            .freed
            .wait_timeout_while(free, left, |free| *free == 0);
        let mut free = waited.unwrap_or_else(PoisonError::into_inner).0;
        *free = free.checked_sub(1)?;
        Some(Permit(self.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let free = &self.0.0;
        *free.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        free.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back_and_waited_for_while_they_move_quickly() {
        let places = Places::new(2);
        let first = places.take().unwrap();
        let mut second = places.take().unwrap();
        assert!(places.take().is_none(), "nothing moves");
        let taken = places.lock();
        let wait = places.wait(&taken, Duration::ZERO);
        assert_eq!(wait, None, "nothing has moved for long");
        drop(taken);
        // This was held for too long for anybody to wait for the next.
        second.since -= 10 * QUICK;
        drop(first);
        drop(second);
        let held = [places.take().unwrap(), places.take().unwrap()];
        let mut taken = places.lock();
        taken.moved_at = Instant::now() + Duration::from_secs(3600);
        assert_eq!(places.wait(&taken, Duration::ZERO), None);
        drop(taken);
        drop(held);
        // A busy machine may be too late for one that waits.
        let is_given = (0..20).any(|_| {
            let held = [places.take().unwrap(), places.take().unwrap()];
            // As though they had just moved, and quickly, however late the other thread begins.
            let mut taken = places.lock();
            taken.moved_at = Instant::now() + Duration::from_secs(3600);
            taken.held = Duration::ZERO;
            drop(taken);
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| places.take().is_some());
                while places.lock().waiting == 0 && !waits.is_finished() {
                    std::thread::yield_now();
                }
                drop(held);
                waits.join().unwrap()
            })
        });
        assert!(is_given);
        let taken = places.lock();
        assert_eq!((taken.in_use, taken.waiting), (0, 0));
    }

    #[test]
    fn as_many_may_wait_as_there_are_places() {
        let places = Places::new(8);
        let mut taken = places.lock();
        // As though they moved all the time, so that nothing but the bound refuses.
        taken.moved_at = Instant::now() + Duration::from_secs(3600);
        taken.waiting = 7;
        assert_eq!(places.wait(&taken, Duration::ZERO), Some(STILL));
        assert_eq!(places.wait(&taken, PATIENCE), None);
        taken.waiting = 8;
        assert_eq!(places.wait(&taken, Duration::ZERO), None);
    }

    #[test]
    fn one_that_is_slow_among_many_says_little() {
        let places = Places::new(1);
        let hold = |time: Duration| places.take().unwrap().since -= time;
        hold(4 * QUICK);
        let is_quick = || {
            let mut taken = places.lock();
            taken.moved_at = Instant::now() + Duration::from_secs(3600);
            places.wait(&taken, Duration::ZERO).is_some()
        };
        assert!(is_quick());
        for _ in 0..2 {
            hold(4 * QUICK);
        }
        assert!(!is_quick(), "several are slow");
        for _ in 0..OF_LATE {
            hold(Duration::ZERO);
        }
        assert!(is_quick(), "they were quick of late");
    }

    #[test]
    fn who_waits_counts() {
        let places = Places::new(1);
        let held = places.take();
        places.lock().moved_at = Instant::now() + Duration::from_secs(3600);
        let was_counted = std::thread::scope(|scope| {
            scope.spawn(|| while places.take().is_none() {});
            let began = Instant::now();
            let is_counted = || loop {
                let waiting = places.lock().waiting;
                if waiting == 1 || began.elapsed() > 10 * PATIENCE {
                    return waiting == 1;
                }
                std::thread::yield_now();
            };
            let was_counted = is_counted();
            drop(held);
            was_counted
        });
        assert!(was_counted);
        assert_eq!(places.lock().waiting, 0, "nobody waits any more");
    }
}
