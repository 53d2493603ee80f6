//! Backoff between attempts: exponential, capped, and jittered so that retries do not come
//! together.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// The n-th wait is 75 to 125 % of `first * 2^(n-1)`, at most `most` before the jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub most: Duration,
}

/// Between attempts while the database is unreachable.
pub(crate) const AWAY: Backoff = Backoff {
    first: Duration::from_millis(50),
    most: Duration::from_secs(2),
};

impl Default for Backoff {
    /// One second doubled up to an hour.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            most: Duration::from_secs(3600),
        }
    }
}

impl Backoff {
    /// The wait after the given failed attempt, counted from 1.
    #[must_use]
    pub fn after(&self, tries: u32) -> Duration {
        let doubled = 1_u32
            .checked_shl(tries.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let wait = self.first.saturating_mul(doubled.max(1)).min(self.most);
        jittered(wait, 25)
    }
}

/// The wait, more or less by up to `percent`.
pub(crate) fn jittered(wait: Duration, percent: u32) -> Duration {
    // A new RandomState has new keys: enough randomness to spread waits.
    let drawn = RandomState::new().hash_one(0_u8) % u64::from(2 * percent + 1);
    wait.saturating_mul(100 - percent + drawn as u32) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_stop_at_the_cap() {
        let backoff = Backoff::default();
        for (tries, seconds) in [
            (0, 1),
            (1, 1),
            (2, 2),
            (5, 16),
            (13, 3600),
            (40, 3600),
            (u32::MAX, 3600),
        ] {
            let wait = backoff.after(tries).as_millis();
            assert!(
                (seconds * 750..=seconds * 1250).contains(&wait),
                "try {tries}: {wait} ms"
            );
        }
    }
}
