//! Limits how many callers do something at once, such as request threads that wait for the
//! authorization server, a name server or a key service.
//!
//! When all permits are taken, callers queue: until a deadline of their own, or briefly. Briefly means
//! 100 ms at most, and no more callers than there are permits. Once one has waited in vain, others
//! are refused at once until a permit is released, so a dependency that hangs holds the threads that
//! wait for its answer and no others (`bounded-everything`, `bulkheads`).
//!
//! Not here: an order among the callers that wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a caller queues briefly. Most calls take less, so a short queue moves on within it.
pub const BRIEFLY: Duration = Duration::from_millis(100);

/// A bounded number of permits. Clones share them.
#[derive(Clone)]
pub struct Limiter(Arc<Shared>);

struct Shared {
    permits: usize,
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Default)]
struct State {
    taken: usize,
    waiting: usize,
    /// A caller waited in vain since a permit was last released.
    is_stuck: bool,
}

/// One permit, released when dropped.
pub struct Permit(Limiter);

impl Limiter {
    /// A limiter with this many permits.
    pub fn new(permits: usize) -> Self {
        Self(Arc::new(Shared {
            permits,
            state: Mutex::default(),
            released: Condvar::new(),
        }))
    }

    /// A permit, without a wait. None: all are taken.
    pub fn try_acquire(&self) -> Option<Permit> {
        let mut state = self.lock();
        if self.is_exhausted(&state) {
            return None;
        }
        state.taken += 1;
        Some(Permit(self.clone()))
    }

    /// A permit; waits for one until the deadline. None: none was released in time.
    pub fn acquire(&self, deadline: Instant) -> Option<Permit> {
        self.wait(self.lock(), deadline)
    }

    /// A permit, after a brief wait where all are taken. None: none was released in time, too many
    /// callers wait already, or one of them has just waited in vain.
    pub fn acquire_briefly(&self) -> Option<Permit> {
        let state = self.lock();
        let may_wait = !state.is_stuck && state.waiting < self.0.permits;
        if self.is_exhausted(&state) && !may_wait {
            return None;
        }
        self.wait(state, Instant::now() + BRIEFLY)
    }

    /// How many permits are taken, and how many callers wait for one.
    pub fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.taken, state.waiting)
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, deadline: Instant) -> Option<Permit> {
        state.waiting += 1;
        let left = deadline.saturating_duration_since(Instant::now());
        let released = &self.0.released;
        let waited = released.wait_timeout_while(state, left, |state| self.is_exhausted(state));
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.waiting -= 1;
        if self.is_exhausted(&state) {
            state.is_stuck = true;
            return None;
        }
        state.taken += 1;
        Some(Permit(self.clone()))
    }

    fn is_exhausted(&self, state: &State) -> bool {
        state.taken >= self.0.permits
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.taken -= 1;
        state.is_stuck = false;
        drop(state);
        self.0.0.released.notify_one();
    }
}

/// As many permits for each key. It holds the keys that are in use, and at most about as many that were.
pub struct LimiterByKey<K> {
    permits: usize,
    known: Mutex<Known<K>>,
}

struct Known<K> {
    limiters: HashMap<K, Limiter>,
    /// How many were in use when the others were last forgotten.
    in_use: usize,
}

impl<K: Hash + Eq> LimiterByKey<K> {
    /// This many permits for each key.
    pub fn new(permits: usize) -> Self {
        Self {
            permits,
            known: Mutex::new(Known {
                limiters: HashMap::new(),
                in_use: 0,
            }),
        }
    }

    /// How many permits each key has.
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// As [`Limiter::try_acquire`], among the callers with this key.
    pub fn try_acquire(&self, key: K) -> Option<Permit> {
        self.limiter(key).try_acquire()
    }

    /// As [`Limiter::acquire_briefly`], among the callers with this key.
    pub fn acquire_briefly(&self, key: K) -> Option<Permit> {
        self.limiter(key).acquire_briefly()
    }

    fn limiter(&self, key: K) -> Limiter {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Looking at all of them for each new key would cost more with each one that is in use.
        if known.limiters.len() >= 2 * known.in_use && !known.limiters.contains_key(&key) {
            // Permits and callers that wait share it.
            known
                .limiters
                .retain(|_, limiter| Arc::strong_count(&limiter.0) > 1);
            known.in_use = known.limiters.len();
        }
        let limiter = known.limiters.entry(key);
        let limiter = limiter.or_insert_with(|| Limiter::new(self.permits));
        limiter.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Waits until so many callers queue.
    fn until_waiting(limiter: &Limiter, count: usize) {
        let began = Instant::now();
        while limiter.load().1 != count {
            assert!(began.elapsed() < LONG, "nobody queues");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_released_permit_goes_to_the_caller_that_waits() {
        let limiter = Limiter::new(1);
        let held = limiter.acquire_briefly().unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| limiter.acquire(Instant::now() + LONG).is_some());
            until_waiting(&limiter, 1);
            assert_eq!(limiter.load(), (1, 1));
            drop(held);
            assert!(waits.join().unwrap());
        });
        assert_eq!(limiter.load(), (0, 0));
    }

    #[test]
    fn after_a_wait_in_vain_callers_are_refused_at_once_until_a_release() {
        let limiter = Limiter::new(2);
        let held = [(); 2].map(|()| limiter.acquire_briefly().unwrap());
        assert!(!limiter.lock().is_stuck);
        assert!(limiter.acquire_briefly().is_none(), "nothing is released");
        assert!(limiter.lock().is_stuck, "the next caller does not wait");
        assert!(limiter.acquire_briefly().is_none());
        let [first, _second] = held;
        drop(first);
        assert!(!limiter.lock().is_stuck);
        assert!(limiter.acquire_briefly().is_some());
    }

    #[test]
    fn no_more_callers_queue_briefly_than_there_are_permits() {
        let limiter = Limiter::new(1);
        let held = limiter.acquire_briefly();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| limiter.acquire(Instant::now() + LONG).is_some());
            until_waiting(&limiter, 1);
            assert!(limiter.acquire_briefly().is_none());
            assert!(!limiter.lock().is_stuck, "it was refused without a wait");
            drop(held);
            assert!(waits.join().unwrap());
        });
    }

    #[test]
    fn whoever_does_not_wait_is_refused_at_once_and_stops_nobody_who_does() {
        let limiter = Limiter::new(1);
        let held = limiter.try_acquire();
        assert!(held.is_some() && limiter.try_acquire().is_none());
        assert!(!limiter.lock().is_stuck);
        drop(held);
        assert_eq!(limiter.load(), (0, 0));
        assert!(limiter.try_acquire().is_some());
    }

    #[test]
    fn a_deadline_that_has_passed_takes_a_free_permit_and_waits_for_none() {
        let limiter = Limiter::new(1);
        let now = Instant::now();
        let held = limiter.acquire(now);
        assert!(held.is_some() && limiter.acquire(now).is_none());
    }

    #[test]
    fn each_key_has_its_own_permits_and_a_key_out_of_use_is_forgotten() {
        let limiter = LimiterByKey::new(1);
        let held = limiter.acquire_briefly("a");
        assert!(held.is_some() && limiter.acquire_briefly("a").is_none());
        assert!(limiter.acquire_briefly("b").is_some());
        drop(held);
        assert!(limiter.acquire_briefly("a").is_some());
        drop(limiter.try_acquire("c"));
        assert_eq!(limiter.known.lock().unwrap().limiters.len(), 1);
    }

    #[test]
    fn keys_out_of_use_are_no_more_than_those_in_use() {
        let limiter = LimiterByKey::new(1);
        let held: Vec<_> = (0..100).map(|key| limiter.try_acquire(key)).collect();
        for key in 100..10_000 {
            assert!(limiter.try_acquire(key).is_some());
            assert!(limiter.known.lock().unwrap().limiters.len() <= 200);
        }
        assert!((0..100).all(|key| limiter.try_acquire(key).is_none()));
        drop(held);
        assert!((0..100).all(|key| limiter.try_acquire(key).is_some()));
    }
}
