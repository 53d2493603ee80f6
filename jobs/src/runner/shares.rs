//! How the threads of a fair queue are shared among fairness keys.
//!
//! A job begins only while fewer threads hold jobs of its key than are free. So the first key holds half of the threads at
//! most, the second half of the rest, and so on: however many jobs of a key wait or hang. Keys that hang hold all
//! threads only when they are as many as the logarithm of the threads.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Shares(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// Jobs that are claimed and not through their handlers.
    all: usize,
    /// Of them, those of each key.
    by_key: HashMap<String, usize>,
    /// When the claimer last looked, some key could have no more jobs.
    has_full: bool,
}

impl Shares {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many jobs may be claimed for so many threads, whichever key each is of, except of the keys that are named: those
    /// can have no more.
    pub(super) fn room(&self, threads: usize) -> (usize, Vec<String>) {
        let mut held = self.lock();
        let free = threads.saturating_sub(held.all);
        let mut room = free.div_ceil(2);
        let mut full = Vec::new();
        for (key, held) in &held.by_key {
            if *held < free {
                room = room.min((free - held).div_ceil(2));
            } else {
                full.push(key.clone());
            }
        }
        held.has_full = !full.is_empty();
        (room, full)
    }

    /// Jobs of these keys were claimed.
    pub(super) fn take<'a>(&self, keys: impl Iterator<Item = Option<&'a str>>) {
        let mut held = self.lock();
        for key in keys {
            held.all += 1;
            let Some(key) = key else { continue };
            match held.by_key.get_mut(key) {
                Some(count) => *count += 1,
                None => {
                    held.by_key.insert(key.to_owned(), 1);
                }
            }
        }
    }

    /// A job of this key is through. Whether a key that was full may have another.
    pub(super) fn give_back(&self, key: Option<&str>) -> bool {
        let mut held = self.lock();
        held.all -= 1;
        if let Some(key) = key
            && let Some(count) = held.by_key.get_mut(key)
        {
            *count -= 1;
            if *count == 0 {
                held.by_key.remove(key);
            }
        }
        held.has_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys' jobs in hand, once each has claimed all that it may.
    fn filled(threads: usize, keys: &[&str]) -> Vec<usize> {
        let shares = Shares::default();
        let count = |key: &&str| {
            loop {
                let (room, full) = shares.room(threads);
                if room == 0 || full.iter().any(|full| full == key) {
                    return shares.lock().by_key.get(*key).copied().unwrap_or(0);
                }
                shares.take(std::iter::repeat_n(Some(*key), room));
            }
        };
        keys.iter().map(count).collect()
    }

    #[test]
    fn each_key_gets_half_of_what_is_left() {
        assert_eq!(filled(64, &["a", "b", "c"]), [32, 16, 8]);
        assert_eq!(filled(7, &["a", "b"]), [4, 2]);
        assert_eq!(filled(2, &["a", "b", "c"]), [1, 1, 0]);
        assert_eq!(filled(1, &["a", "b"]), [1, 0]);
    }

    #[test]
    fn a_key_that_gave_something_back_is_full_no_more() {
        let shares = Shares::default();
        shares.take([Some("a"), Some("a"), Some("b"), None].into_iter());
        assert_eq!(shares.room(6), (1, vec!["a".to_owned()]));
        assert!(shares.give_back(Some("a")));
        assert_eq!(shares.room(6), (1, Vec::new()));
        assert!(!shares.give_back(Some("b")) && !shares.give_back(Some("a")));
        assert_eq!(shares.room(6), (3, Vec::new()));
        assert!(!shares.give_back(None));
    }
}
