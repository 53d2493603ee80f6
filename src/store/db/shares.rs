//! A part's share of the pool: so many sessions at once, given to tenants in turn.
//!
//! Guarantees: a session that ends goes to another tenant whose threads wait, each tenant in its turn. So a tenant with hundreds
//! of threads delays another one's thread by the end of one session for each tenant that waits, and not by its own hundreds.
//! Within a tenant there is no order: a thread that runs takes what is free, before one that waits is awake. In order, each
//! session would lie idle until a thread awakes.
//!
//! Which tenant a thread works for is the thread's own ([`working_for`]): everything below would have to hand it on. A thread
//! without one waits in a turn with all others without one.
//!
//! Not here: connections (`pool`).

use crossbeam_channel::{Receiver, Sender, bounded};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use uuid::Uuid;

thread_local! {
    static TENANT: Cell<Uuid> = const { Cell::new(Uuid::nil()) };
}

/// Does some work as a thread of a tenant: it waits for sessions in the tenant's turn.
pub fn working_for<T>(tenant_id: Uuid, work: impl FnOnce() -> T) -> T {
    /// Restored however the work ends.
    struct Before(Uuid);
    impl Drop for Before {
        fn drop(&mut self) {
            TENANT.set(self.0);
        }
    }
    let _before = Before(TENANT.replace(tenant_id));
    work()
}

/// Sessions that may be taken at once. Clones share them.
#[derive(Clone)]
pub(super) struct Shares(Arc<Mutex<State>>);

struct State {
    free: usize,
    /// Who waits, of each tenant in its turn: the first tenant is next.
    waiting: VecDeque<(Uuid, VecDeque<Waiter>)>,
    last_id: u64,
}

struct Waiter {
    id: u64,
    /// Told once.
    told: Sender<Told>,
}

/// What a waiter is told, and no longer waits.
enum Told {
    /// It has the share of a session that ended.
    Given,
    /// A share is free, unless another thread takes it.
    Free,
}

/// The right to one session, given on when dropped.
pub(super) struct Share {
    of: Shares,
    tenant_id: Uuid,
}

impl Shares {
    pub(super) fn new(sessions: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: sessions,
            waiting: VecDeque::new(),
            last_id: 0,
        })))
    }

    /// A share for this thread; waits for it until the deadline. None: none came.
    pub(super) fn take(&self, deadline: Instant) -> Option<Share> {
        let tenant_id = TENANT.get();
        let share = || Share {
            of: self.clone(),
            tenant_id,
        };
        loop {
            let (id, told) = {
                let mut state = self.lock();
                if state.free > 0 {
                    state.free -= 1;
                    return Some(share());
                }
                state.enqueue(tenant_id)
            };
            match told.recv_deadline(deadline) {
                Ok(Told::Given) => return Some(share()),
                Ok(Told::Free) => {}
                Err(_) => {
                    let mut state = self.lock();
                    state.forget(tenant_id, id);
                    // It may have been told meanwhile.
                    return match told.try_recv() {
                        Ok(Told::Given) => Some(share()),
                        Ok(Told::Free) => {
                            state.tell_next();
                            None
                        }
                        Err(_) => None,
                    };
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enqueue(&mut self, tenant_id: Uuid) -> (u64, Receiver<Told>) {
        let (told, receiver) = bounded(1);
        self.last_id += 1;
        let waiter = Waiter {
            id: self.last_id,
            told,
        };
        match self.waiting.iter_mut().find(|(key, _)| *key == tenant_id) {
            Some((_, of_tenant)) => of_tenant.push_back(waiter),
            None => self
                .waiting
                .push_back((tenant_id, VecDeque::from([waiter]))),
        }
        (self.last_id, receiver)
    }

    /// The first waiter of the tenant at this place, whose turn ends with it.
    fn next_at(&mut self, place: usize) -> Option<Waiter> {
        let (tenant_id, mut of_tenant) = self.waiting.remove(place)?;
        let next = of_tenant.pop_front();
        if !of_tenant.is_empty() {
            self.waiting.push_back((tenant_id, of_tenant));
        }
        next
    }

    /// The next waiter of another tenant.
    fn next_beside(&mut self, tenant_id: Uuid) -> Option<Waiter> {
        let place = self.waiting.iter().position(|(key, _)| *key != tenant_id)?;
        self.next_at(place)
    }

    /// A share is free.
    fn tell_next(&mut self) {
        if let Some(waiter) = self.next_at(0) {
            // Its receiver outlives its place in the queue, and has room.
            let _ = waiter.told.try_send(Told::Free);
        }
    }

    fn forget(&mut self, tenant_id: Uuid, id: u64) {
        for (key, of_tenant) in &mut self.waiting {
            if *key == tenant_id {
                of_tenant.retain(|waiter| waiter.id != id);
            }
        }
        self.waiting.retain(|(_, of_tenant)| !of_tenant.is_empty());
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        match state.next_beside(self.tenant_id) {
            // As above, it is received.
            Some(waiter) if waiter.told.try_send(Told::Given).is_ok() => {}
            _ => {
                state.free += 1;
                state.tell_next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    fn later() -> Instant {
        Instant::now() + LONG
    }

    /// Waits until so many threads wait.
    fn until_waiting(shares: &Shares, count: usize) {
        let began = Instant::now();
        while shares
            .lock()
            .waiting
            .iter()
            .map(|(_, of)| of.len())
            .sum::<usize>()
            != count
        {
            assert!(began.elapsed() < LONG, "nobody waits");
            std::thread::yield_now();
        }
    }

    #[test]
    fn each_tenant_that_waits_has_its_turn() {
        let shares = Shares::new(1);
        let order = Mutex::new(Vec::new());
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        std::thread::scope(|scope| {
            let held = working_for(one, || shares.take(later())).unwrap();
            for (place, tenant_id) in [one, one, one, two, three].into_iter().enumerate() {
                let (shares, order) = (&shares, &order);
                scope.spawn(move || {
                    let share = working_for(tenant_id, || shares.take(later()));
                    order.lock().unwrap().push(tenant_id);
                    drop(share.unwrap());
                });
                until_waiting(shares, place + 1);
            }
            drop(held);
        });
        assert_eq!(*order.lock().unwrap(), [two, one, three, one, one]);
        assert_eq!(shares.lock().free, 1);
    }

    #[test]
    fn who_gives_up_leaves_the_queue_and_takes_nothing() {
        let shares = Shares::new(1);
        let held = shares.take(later()).unwrap();
        assert!(shares.take(Instant::now()).is_none());
        assert!(shares.lock().waiting.is_empty());
        drop(held);
        assert_eq!(shares.lock().free, 1);
        assert!(shares.take(Instant::now()).is_some(), "one is free");
    }

    #[test]
    fn a_thread_works_for_a_tenant_until_the_work_ends() {
        let of = Uuid::from_u128(7);
        let after_inner_work = working_for(of, || {
            working_for(Uuid::from_u128(8), || ());
            TENANT.get()
        });
        assert_eq!((after_inner_work, TENANT.get()), (of, Uuid::nil()));
        let failed = std::panic::catch_unwind(|| working_for(of, || panic!("as a test wants")));
        assert!(failed.is_err());
        assert_eq!(TENANT.get(), Uuid::nil());
    }
}
