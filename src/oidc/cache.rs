//! What is known of each provider, kept between sign-ins: its document for an hour, its keys for a day, and for a moment
//! that its document could not be read.
//!
//! Guarantees: there is one fetch from a provider at a time, whoever waits for it does so until a deadline of its own. A token
//! with a key that is not known makes the keys be fetched again, at most once in [`KEYS_AGAIN`] for each provider, whatever
//! ids somebody makes up. Where a document could not be read, nobody asks for it again within [`FAILED_FOR`], so those who
//! waited for it do not wait one after the other. There are [`PROVIDERS`] providers at most: the one that was used longest ago is forgotten.

use super::discovery::{self, Metadata};
use super::exchange::Exchange;
use super::fault::Fault;
use super::issuer::Issuer;
use super::keys::{self, Keys};
use crate::ids::Clock;
use crate::outbound::Policy;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// How long a document, and keys, serve before they are fetched again.
const FRESH_FOR: Duration = Duration::from_secs(3600);
/// How often keys are fetched again because one is not known.
pub(super) const KEYS_AGAIN: Duration = Duration::from_secs(30);
/// How long a document that could not be read is not asked for again.
const FAILED_FOR: Duration = Duration::from_secs(1);
/// Providers that are kept.
const PROVIDERS: usize = 256;

/// A provider, as one policy sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name {
    issuer: String,
    policy: Policy,
}

#[derive(Default)]
struct Entry {
    metadata: Option<(Arc<Metadata>, OffsetDateTime)>,
    /// Why the document could not be read, and when that was.
    failure: Option<(Fault, OffsetDateTime)>,
    keys: Option<Arc<Keys>>,
    /// When keys were asked for last, with or without success.
    keys_asked_at: Option<OffsetDateTime>,
    is_fetching: bool,
    used: u64,
}

impl Entry {
    fn knows(&mut self, metadata: Arc<Metadata>, at: OffsetDateTime) {
        self.metadata = Some((metadata, at));
        self.failure = None;
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<Name, Entry>,
    uses: u64,
}

impl State {
    fn entry(&mut self, name: &Name) -> &mut Entry {
        self.uses += 1;
        if !self.entries.contains_key(name) && self.entries.len() >= PROVIDERS {
            let idle = self.entries.iter().filter(|(_, entry)| !entry.is_fetching);
            let oldest = idle.min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.entries.remove(&oldest);
            }
        }
        let entry = self.entries.entry(name.clone()).or_default();
        entry.used = self.uses;
        entry
    }
}

/// The cache.
pub(super) struct Cache {
    clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

/// What a look into the cache gives.
enum Turn<'c, T> {
    /// It is known.
    Known(T),
    /// It is to be fetched by whoever has this.
    Fetch(Fetching<'c>),
}

/// The right to fetch from a provider. Dropped: the next one may.
struct Fetching<'c> {
    cache: &'c Cache,
    name: &'c Name,
}

impl Fetching<'_> {
    fn keep(&self, change: impl FnOnce(&mut Entry)) {
        change(self.cache.lock().entry(self.name));
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.cache.lock().entries.get_mut(self.name) {
            entry.is_fetching = false;
        }
        self.cache.changed.notify_all();
    }
}

impl Cache {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, or the right to fetch it, once nobody else does.
    fn turn<'c, T>(
        &'c self,
        name: &'c Name,
        exchange: &Exchange<'_>,
        what: &str,
        mut known: impl FnMut(&mut Entry) -> Option<T>,
    ) -> Result<Turn<'c, T>, Fault> {
        let mut state = self.lock();
        loop {
            let entry = state.entry(name);
            if let Some(known) = known(entry) {
                return Ok(Turn::Known(known));
            }
            if !entry.is_fetching {
                entry.is_fetching = true;
                return Ok(Turn::Fetch(Fetching { cache: self, name }));
            }
            let left = exchange.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(exchange.late(what));
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The provider's document.
    pub(super) fn metadata(
        &self,
        exchange: &mut Exchange<'_>,
        issuer: &Issuer<'_>,
    ) -> Result<Arc<Metadata>, Fault> {
        let name = name_of(issuer);
        let known = |entry: &mut Entry| {
            // Whoever waited for a fetch looks after it.
            let now = self.clock.now();
            if let Some((metadata, at)) = &entry.metadata
                && *at + FRESH_FOR > now
            {
                return Some(Ok(Arc::clone(metadata)));
            }
            let (fault, at) = entry.failure.as_ref()?;
            (*at <= now && now < *at + FAILED_FOR).then(|| Err(fault.clone()))
        };
        match self.turn(&name, exchange, "The provider's document", known)? {
            Turn::Known(known) => known,
            Turn::Fetch(fetching) => {
                let answer = discovery::fetch(exchange, issuer);
                let read = answer.and_then(|answer| discovery::metadata(exchange, issuer, &answer));
                let (read, now) = (read.map(Arc::new), self.clock.now());
                fetching.keep(|entry| match &read {
                    Ok(metadata) => entry.knows(Arc::clone(metadata), now),
                    Err(fault) => entry.failure = Some((fault.clone(), now)),
                });
                read
            }
        }
    }

    /// The provider's keys. `unfit` are those among which one was not: then newer ones, if it is time to ask.
    pub(super) fn keys(
        &self,
        exchange: &mut Exchange<'_>,
        issuer: &Issuer<'_>,
        metadata: &Metadata,
        unfit: Option<&Arc<Keys>>,
    ) -> Result<Arc<Keys>, Fault> {
        let (name, now) = (name_of(issuer), self.clock.now());
        let known = |entry: &mut Entry| {
            let keys = entry.keys.as_ref()?;
            let is_tried = unfit.is_some_and(|unfit| Arc::ptr_eq(unfit, keys));
            let asked = entry.keys_asked_at.unwrap_or(keys.fetched_at);
            let serves = match is_tried {
                true => asked + KEYS_AGAIN > now,
                false => keys.fetched_at + FRESH_FOR > now,
            };
            if !serves && !entry.is_fetching {
                entry.keys_asked_at = Some(now);
            }
            serves.then(|| Arc::clone(keys))
        };
        match self.turn(&name, exchange, keys::WHAT, known)? {
            Turn::Known(keys) => Ok(keys),
            Turn::Fetch(fetching) => {
                let before = self.lock().entry(&name).keys.clone();
                let answer = keys::fetch(exchange, &metadata.jwks_uri);
                let fetched = answer.and_then(|answer| Keys::of(&answer, before.as_deref(), now));
                match (fetched, before) {
                    (Ok(keys), _) => {
                        let keys = Arc::new(keys);
                        fetching.keep(|entry| entry.keys = Some(Arc::clone(&keys)));
                        Ok(keys)
                    }
                    // Those of before verify what they verified.
                    (Err(_), Some(before)) if unfit.is_none() && before.serve(now) => Ok(before),
                    (Err(fault), _) => Err(fault),
                }
            }
        }
    }

    /// Takes the document that a check read, so that what was mended at the provider counts at once. Keys need no such way:
    /// one that is not known makes them be fetched again.
    pub(super) fn keep(&self, issuer: &Issuer<'_>, metadata: Metadata) {
        let (name, now) = (name_of(issuer), self.clock.now());
        self.lock().entry(&name).knows(Arc::new(metadata), now);
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.lock().entries.len()
    }
}

fn name_of(issuer: &Issuer<'_>) -> Name {
    Name {
        issuer: issuer.issuer.to_owned(),
        policy: issuer.policy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_providers_is_bounded_and_the_oldest_goes() {
        let cache = Cache::new(Clock::system());
        let name = |number: usize| Name {
            issuer: format!("https://id{number}.plant.example"),
            policy: Policy::Operator,
        };
        cache.lock().entry(&name(0)).is_fetching = true;
        for number in 1..=2 * PROVIDERS {
            cache.lock().entry(&name(number));
            cache.lock().entry(&name(1));
        }
        assert_eq!(cache.count(), PROVIDERS);
        let state = cache.lock();
        // One that is being asked stays, and so does one that is in use.
        for kept in [0, 1, 2 * PROVIDERS] {
            assert!(state.entries.contains_key(&name(kept)), "{kept}");
        }
        assert!(!state.entries.contains_key(&name(2)));
    }
}
