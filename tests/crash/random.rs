//! Random moments that a printed seed repeats.

use std::time::Duration;

/// SplitMix64: small, and the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    /// From `CRASH_SEED`, else from this process's id; the seed is printed.
    pub(crate) fn seeded(test: &str) -> Self {
        let seed = crate::setting("CRASH_SEED", u64::from(std::process::id()));
        crate::report(test, &format!("CRASH_SEED={seed}"));
        let mut random = Self(seed);
        random.next();
        random
    }

    /// Another one, for a thread of its own.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A time below `end_ms` milliseconds.
    pub(crate) fn within(&mut self, end_ms: u64) -> Duration {
        Duration::from_micros(self.below(end_ms * 1000))
    }

    /// Lets a random time pass, so that a fault meets any moment, or lasts any time. Nothing is expected to have
    /// happened by its end.
    pub(crate) fn let_pass(&mut self, least_ms: u64, end_ms: u64) {
        let least = Duration::from_millis(least_ms);
        std::thread::sleep(least + self.within(end_ms - least_ms));
    }
}
