//! The bytes of answers that their clients have not taken yet.
//!
//! A whole answer counts from its beginning until its last byte is with the kernel, because until then all of it is in
//! memory. There is a budget over all connections, and one for each address. At a budget's end the slowest answer that it
//! holds is cut off: the one whose client has taken the fewest bytes for its time.
//!
//! An answer younger than [`JUDGED_AFTER`] is not cut off, since its time says nothing yet. Where all are so young, the
//! new answer is refused. One that stands alone is never refused.
//!
//! Not counted: bytes that all answers share; answers below [`COUNTED_FROM_BYTES`], of which a connection has one, and which
//! the kernel mostly takes at once; streams, whose buffers have bounds of their own.

use super::counters::Counters;
use super::limits::Limits;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// The shortest answer that counts.
pub(super) const COUNTED_FROM_BYTES: u64 = 16 * 1024;

const JUDGED_AFTER: Duration = Duration::from_secs(1);

/// Every counted answer.
#[derive(Default)]
pub(super) struct Answers(Mutex<Held>);

#[derive(Default)]
struct Held {
    bytes: u64,
    by_address: HashMap<IpAddr, u64>,
    answers: HashMap<u64, Arc<Taking>>,
    next: u64,
}

/// How a client takes one answer.
struct Taking {
    address: IpAddr,
    bytes: u64,
    began: Instant,
    taken: AtomicU64,
    is_cut: AtomicBool,
    connection: Mutex<Option<Waker>>,
}

/// One answer's share of the budgets, given back when it is dropped.
pub(super) struct Share {
    answers: Arc<Answers>,
    counters: Arc<Counters>,
    number: u64,
    taking: Arc<Taking>,
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an answer. `None`: there is no room, and none to be made.
    pub(super) fn begin(
        self: &Arc<Self>,
        limits: &Limits,
        counters: &Arc<Counters>,
        address: IpAddr,
        bytes: u64,
    ) -> Option<Share> {
        let mut held = self.lock();
        let now = Instant::now();
        loop {
            let own = held.by_address.get(&address).copied().unwrap_or(0);
            let beyond = |held: u64, most: u64| held > 0 && held.saturating_add(bytes) > most;
            let among = if beyond(own, limits.answers_per_address_bytes) {
                Some(address)
            } else if beyond(held.bytes, limits.answers_in_flight_bytes) {
                None
            } else {
                break;
            };
            let slowest = held.slowest(among, now)?;
            let cut = held.remove(slowest)?;
            counters.answers_cut.fetch_add(1, Ordering::Relaxed);
            cut.cut();
        }
        let taking = Arc::new(Taking {
            address,
            bytes,
            began: now,
            taken: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
            connection: Mutex::default(),
        });
        let number = held.add(Arc::clone(&taking));
        counters.answer_bytes.store(held.bytes, Ordering::Relaxed);
        drop(held);
        Some(Share {
            answers: Arc::clone(self),
            counters: Arc::clone(counters),
            number,
            taking,
        })
    }
}

impl Held {
    fn add(&mut self, taking: Arc<Taking>) -> u64 {
        self.bytes += taking.bytes;
        *self.by_address.entry(taking.address).or_insert(0) += taking.bytes;
        self.next += 1;
        self.answers.insert(self.next, taking);
        self.next
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Taking>> {
        let taking = self.answers.remove(&number)?;
        self.bytes -= taking.bytes;
        if let Some(own) = self.by_address.get_mut(&taking.address) {
            *own -= taking.bytes;
            if *own == 0 {
                self.by_address.remove(&taking.address);
            }
        }
        Some(taking)
    }

    /// The slowest answer, of one address or of all.
    fn slowest(&self, among: Option<IpAddr>, now: Instant) -> Option<u64> {
        let pace = |taking: &Taking| {
            let age = now.saturating_duration_since(taking.began);
            let taken = taking.taken.load(Ordering::Relaxed);
            (age >= JUDGED_AFTER).then(|| taken as f64 / age.as_secs_f64())
        };
        self.answers
            .iter()
            .filter(|(_, taking)| among.is_none_or(|address| taking.address == address))
            .filter_map(|(number, taking)| Some((pace(taking)?, *number)))
            .min_by(|(one, _), (other, _)| one.total_cmp(other))
            .map(|(_, number)| number)
    }
}

impl Taking {
    fn connection(&self) -> MutexGuard<'_, Option<Waker>> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        if let Some(connection) = self.connection().take() {
            connection.wake();
        }
    }
}

impl Share {
    /// The client has taken so many more bytes.
    pub(super) fn took(&self, bytes: usize) {
        self.taking.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the answer is cut off. If not, the connection is woken when it is.
    pub(super) fn is_cut(&self, cx: &Context<'_>) -> bool {
        let mut connection = self.taking.connection();
        match &mut *connection {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        self.taking.is_cut.load(Ordering::Acquire)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.answers.lock();
        held.remove(self.number);
        self.counters
            .answer_bytes
            .store(held.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Budget {
        answers: Arc<Answers>,
        counters: Arc<Counters>,
        limits: Limits,
    }

    impl Budget {
        fn begin(&self, last: u8, bytes: u64) -> Option<Share> {
            let address = IpAddr::from([10, 0, 0, last]);
            self.answers
                .begin(&self.limits, &self.counters, address, bytes)
        }

        /// Makes all answers so old.
        fn age(&self, by: Duration) {
            let mut held = self.answers.lock();
            for taking in held.answers.values_mut() {
                *taking = Arc::new(Taking {
                    address: taking.address,
                    bytes: taking.bytes,
                    began: taking.began.checked_sub(by).unwrap(),
                    taken: AtomicU64::new(taking.taken.load(Ordering::Relaxed)),
                    is_cut: AtomicBool::new(false),
                    connection: Mutex::default(),
                });
            }
        }

        fn stands(&self, share: &Share) -> bool {
            self.answers.lock().answers.contains_key(&share.number)
        }
    }

    fn budget() -> Budget {
        Budget {
            answers: Arc::default(),
            counters: Arc::default(),
            limits: Limits {
                answers_in_flight_bytes: 100,
                answers_per_address_bytes: 60,
                ..Limits::default()
            },
        }
    }

    #[test]
    fn the_slowest_of_the_budget_that_ends_is_cut_off() {
        let budget = budget();
        let [quick, slow] = [1, 1].map(|address| budget.begin(address, 30).unwrap());
        quick.took(20);
        slow.took(10);
        let other = budget.begin(2, 30).unwrap();
        assert!(budget.begin(1, 30).is_none(), "a young one was cut off");
        budget.age(JUDGED_AFTER);
        // The address's own budget ends, although another's answer is slower.
        let third = budget.begin(1, 30).unwrap();
        assert!(budget.stands(&quick) && !budget.stands(&slow) && budget.stands(&other));
        // All together: the slowest of all.
        let last = budget.begin(3, 40).unwrap();
        assert!(budget.stands(&quick) && !budget.stands(&other) && budget.stands(&third));
        assert_eq!(budget.counters.answers_cut.load(Ordering::Relaxed), 2);
        drop((quick, slow, other, third, last));
        let held = budget.answers.lock();
        assert_eq!((held.bytes, held.by_address.len()), (0, 0));
    }

    #[test]
    fn an_answer_that_stands_alone_is_never_refused() {
        let budget = budget();
        let large = budget.begin(1, 1000).unwrap();
        assert!(budget.begin(2, 1).is_none());
        drop(large);
        assert!(budget.begin(2, 1).is_some());
    }
}
