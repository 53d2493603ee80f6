//! A cache of opened secrets and of recent failures, so that not every use of a secret calls the
//! key-management service.
//!
//! The key of an entry is a digest of the whole stored row, so a row that was changed or replaced
//! has no entry. At most [`ENTRIES`] entries are kept. An expired entry is not used;
//! [`Cache::sweep`] removes it and wipes its value.

use crate::store::secrets::{Sealed, SecretRef};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

const ENTRIES: usize = 1000;

/// The key of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    tenant_id: Uuid,
    at: SecretRef,
    /// Digest of the whole row.
    digest: [u8; 32],
}

impl Key {
    pub(super) fn of(tenant_id: Uuid, at: &SecretRef, sealed: &Sealed) -> Self {
        let micros = sealed.created_at.unix_timestamp_nanos() / 1000;
        let parts: [&[u8]; 11] = [
            tenant_id.as_bytes(),
            at.environment.as_bytes(),
            at.name.as_bytes(),
            &sealed.version.to_be_bytes(),
            &sealed.format.to_be_bytes(),
            &sealed.nonce,
            &sealed.ciphertext,
            sealed.wrapping_key.as_bytes(),
            &sealed.wrapped_data_key,
            sealed.created_by.as_bytes(),
            &micros.to_be_bytes(),
        ];
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Self {
            tenant_id,
            at: at.clone(),
            digest: digest.finalize().into(),
        }
    }
}

/// The cache.
pub(super) struct Cache<T> {
    entries: Mutex<HashMap<Key, (T, Instant)>>,
    kept_for: Duration,
}

impl<T: Clone> Cache<T> {
    pub(super) fn new(kept_for: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            kept_for,
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, (T, Instant)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &Key) -> Option<T> {
        let entries = self.entries();
        let (value, since) = entries.get(key)?;
        (since.elapsed() < self.kept_for).then(|| value.clone())
    }

    pub(super) fn put(&self, key: Key, value: &T) {
        let mut entries = self.entries();
        if entries.len() >= ENTRIES && !entries.contains_key(&key) {
            let oldest = entries.iter().min_by_key(|(_, (_, since))| *since);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                entries.remove(&oldest);
            }
        }
        entries.insert(key, (value.clone(), Instant::now()));
    }

    /// Wipes every version of a secret.
    pub(super) fn forget(&self, tenant_id: Uuid, at: &SecretRef) {
        self.entries()
            .retain(|key, _| (key.tenant_id, &key.at) != (tenant_id, at));
    }

    /// Removes expired entries and wipes their values.
    pub(super) fn sweep(&self) {
        self.entries()
            .retain(|_, (_, since)| since.elapsed() < self.kept_for);
    }

    pub(super) fn len(&self) -> usize {
        self.entries().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn at(name: &str) -> SecretRef {
        SecretRef {
            environment: "prod".to_owned(),
            name: name.to_owned(),
        }
    }

    fn key(tenant: u128, name: &str, n: usize) -> Key {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&n.to_be_bytes());
        Key {
            tenant_id: Uuid::from_u128(tenant),
            at: at(name),
            digest,
        }
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let cache = Cache::new(Duration::from_secs(60));
        let key = |n| key(1, "A", n);
        for n in 0..=ENTRIES {
            cache.put(key(n), &Secret::new(n.to_string()));
        }
        assert!(cache.get(&key(0)).is_none());
        assert_eq!(cache.get(&key(1)).unwrap().expose(), "1");
        assert_eq!(cache.get(&key(ENTRIES)).unwrap().expose(), "1000");
        assert_eq!(cache.len(), ENTRIES);
    }

    #[test]
    fn an_entry_is_not_used_after_its_time_and_swept() {
        let kept_for = Duration::from_secs(60);
        let cache = Cache::new(kept_for);
        let long_ago = Instant::now().checked_sub(kept_for).unwrap();
        let old = (Secret::new("a"), long_ago);
        cache.entries().insert(key(1, "A", 1), old);
        cache.put(key(1, "A", 2), &Secret::new("b"));
        assert!(cache.get(&key(1, "A", 1)).is_none());
        cache.sweep();
        assert_eq!(cache.len(), 1);
        assert!(cache.get(&key(1, "A", 2)).is_some());
    }

    #[test]
    fn every_version_of_one_secret_is_forgotten() {
        let cache = Cache::new(Duration::from_secs(60));
        let keys = [
            key(1, "A", 1),
            key(1, "A", 2),
            key(1, "B", 1),
            key(2, "A", 1),
        ];
        for key in &keys {
            cache.put(key.clone(), &Secret::new("a"));
        }
        cache.forget(Uuid::from_u128(1), &at("A"));
        let kept = keys.map(|key| cache.get(&key).is_some());
        assert_eq!(kept, [false, false, true, true]);
    }
}
