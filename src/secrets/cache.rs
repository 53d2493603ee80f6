//! What was read lately: so that a key-management service is not asked for each use of a secret.
//!
//! An entry stands for the whole row that it was read from, whose digest is its key: a row that was
//! changed, replaced or altered has no entry. At most [`ENTRIES`] are kept, each for [`FOR`], and a
//! value is wiped when its entry goes.

use crate::secret::Secret;
use crate::store::secrets::{Sealed, SecretRef};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

const ENTRIES: usize = 1000;
const FOR: Duration = Duration::from_secs(60);

/// What an entry stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

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
        Self(digest.finalize().into())
    }
}

/// The cache.
#[derive(Default)]
pub(super) struct Cache(Mutex<HashMap<Key, (Secret, Instant)>>);

impl Cache {
    pub(super) fn get(&self, key: &Key) -> Option<Secret> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, (_, since)| since.elapsed() < FOR);
        entries.get(key).map(|(value, _)| value.clone())
    }

    pub(super) fn put(&self, key: Key, value: &Secret) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ENTRIES && !entries.contains_key(&key) {
            let oldest = entries.iter().min_by_key(|(_, (_, since))| *since);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                entries.remove(&oldest);
            }
        }
        entries.insert(key, (value.clone(), Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let cache = Cache::default();
        let key = |n: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&n.to_be_bytes());
            Key(bytes)
        };
        for n in 0..=ENTRIES {
            cache.put(key(n), &Secret::new(n.to_string()));
        }
        assert!(cache.get(&key(0)).is_none());
        assert_eq!(cache.get(&key(1)).unwrap().expose(), "1");
        assert_eq!(cache.get(&key(ENTRIES)).unwrap().expose(), "1000");
        assert_eq!(cache.0.lock().unwrap().len(), ENTRIES);
    }

    #[test]
    fn an_entry_is_forgotten_after_its_time() {
        let cache = Cache::default();
        let key = Key([1; 32]);
        let long_ago = Instant::now().checked_sub(FOR).unwrap();
        let entry = (Secret::new("a"), long_ago);
        cache.0.lock().unwrap().insert(key, entry);
        assert!(cache.get(&key).is_none());
        assert!(cache.0.lock().unwrap().is_empty(), "and wiped");
    }
}
