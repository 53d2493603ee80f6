//! Authentication: the caller is identified by the credential alone, never by a path or a body
//! (`tenant-from-credential`).
//!
//! Bearer tokens are looked up by digest. A result is cached for [`KNOWN_FOR`], so a busy token
//! costs one look-up a second. A replica that revokes a token drops it from its cache; the others
//! refuse it within that second. Public run tokens are verified without the database.
//!
//! Not here: what the caller may do (`authz`).

pub mod bearer;
pub mod public;

pub use public::PublicToken;

use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::store::{Store, tokens, tokens::Known};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long a looked-up token is cached.
pub const KNOWN_FOR: Duration = Duration::from_secs(1);

/// Tokens in the cache at most; a full cache is emptied.
const REMEMBERED: usize = 65_536;

/// A valid credential.
#[derive(Debug, Clone)]
pub enum Credential {
    /// A bearer token.
    Bearer(Known),
    /// A public run token.
    Public(PublicToken),
}

/// Identifies callers by their credentials.
pub struct Authn {
    store: Store,
    clock: Clock,
    signer: Option<public::Signer>,
    remembered: Mutex<HashMap<[u8; 32], (Instant, Known)>>,
    /// Counts the revocations here. A look-up that began before one is not cached.
    forgotten: AtomicU64,
}

fn refused(why: &str) -> Error {
    Error::new(Code::Unauthenticated, why)
}

impl Authn {
    /// `signer` is absent if public run tokens are off.
    pub fn new(store: Store, clock: Clock, signer: Option<public::Signer>) -> Self {
        Self {
            store,
            clock,
            signer,
            remembered: Mutex::default(),
            forgotten: AtomicU64::new(0),
        }
    }

    /// Signs public run tokens, if they are on.
    pub fn signer(&self) -> Option<&public::Signer> {
        self.signer.as_ref()
    }

    /// Parses an `Authorization` header and looks its credential up.
    ///
    /// # Errors
    /// `unauthenticated`; `database-unavailable` if the token could not be looked up.
    pub fn credential(&self, header: Option<&str>) -> Result<Credential> {
        let header = header.ok_or_else(|| {
            refused("This route needs a token. Send Authorization: Bearer <token>.")
        })?;
        let token = header
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .filter(|token| !token.is_empty() && token.len() <= 4096)
            .ok_or_else(|| {
                refused("The Authorization header is not of the form Bearer <token>.")
            })?;
        if token.starts_with(public::PREFIX) {
            let signer = self
                .signer
                .as_ref()
                .ok_or_else(|| refused("Public run tokens are off on this server."))?;
            return signer
                .verify(token, self.clock.now())
                .map(Credential::Public);
        }
        self.bearer(token).map(Credential::Bearer)
    }

    fn bearer(&self, token: &str) -> Result<Known> {
        let unknown =
            || refused("The token is not known here. It may have been revoked, or have ended.");
        let digest = bearer::digest(token);
        let remembered = self
            .remembered()
            .get(&digest)
            .filter(|(at, _)| at.elapsed() < KNOWN_FOR)
            .map(|(_, known)| known.clone());
        let known = match remembered {
            Some(known) => known,
            None => self.look_up(&digest)?.ok_or_else(unknown)?,
        };
        if known.expires_at.is_some_and(|end| end <= self.clock.now()) {
            return Err(unknown());
        }
        Ok(known)
    }

    fn look_up(&self, digest: &[u8; 32]) -> Result<Option<Known>> {
        let asked_at = Instant::now();
        let forgotten = self.forgotten.load(Ordering::Relaxed);
        let known = tokens::by_digest(&mut self.store.session()?, digest)?;
        let mut remembered = self.remembered();
        match &known {
            Some(known) if forgotten == self.forgotten.load(Ordering::Relaxed) => {
                if remembered.len() >= REMEMBERED {
                    remembered.clear();
                }
                remembered.insert(*digest, (asked_at, known.clone()));
            }
            _ => {
                remembered.remove(digest);
            }
        }
        Ok(known)
    }

    /// Drops a token that was revoked here.
    pub fn forget(&self, token_id: Uuid) {
        let mut remembered = self.remembered();
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        remembered.retain(|_, (_, known)| known.caller.token_id != token_id);
    }

    /// Drops every token of a user who was deactivated here.
    pub fn forget_user(&self, tenant_id: Uuid, user_id: Uuid) {
        let mut remembered = self.remembered();
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        remembered.retain(|_, (_, known)| {
            (known.caller.tenant_id, known.caller.user_id) != (tenant_id, user_id)
        });
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], (Instant, Known)>> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
