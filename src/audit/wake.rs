//! What wakes the keeper, and what it is to purge.

use crossbeam_channel::Sender;
use ed25519_dalek::SigningKey;
use std::sync::{Arc, Mutex, PoisonError};

/// Decisions are purged by age, as section 8 says.
#[derive(Clone)]
pub struct Retention {
    /// Signs the anchors of purges, if there is one.
    pub key: Option<SigningKey>,
}

/// Wakes the keeper. Empty once the keeper is to end.
pub(super) type Wake = Arc<Mutex<Option<Sender<()>>>>;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
