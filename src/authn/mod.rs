//! Authentication: the caller is identified by the credential alone, never by a path or a body
//! (`tenant-from-credential`).
//!
//! Bearer tokens are looked up by digest. A result is cached for [`KNOWN_FOR`], so a busy token
//! costs one look-up a second. A replica that revokes a token drops it from its cache; the others
//! refuse it within that second. Sessions are looked up and cached likewise; the look-up also notes that the person is
//! there ([`session`]). When tokens are used is written beside the requests (`uses`). Public run tokens are verified without
//! the database.
//!
//! Not here: what the caller may do (`authz`).

pub mod bearer;
pub mod public;
pub mod session;
mod uses;

pub use public::PublicToken;

use crate::error::{Code, Error, Result};
use crate::ids::Clock;
use crate::proof::KnownBy;
use crate::store::{Store, sessions, tokens, tokens::Known};
use crate::text::trim_ows;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
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
    /// A session, by the cookie of a browser.
    Session(Known),
    /// A public run token.
    Public(PublicToken),
}

/// Identifies callers by their credentials.
pub struct Authn {
    store: Store,
    clock: Clock,
    signer: Option<public::Signer>,
    sign_in: session::Options,
    sign_ins: session::SignIns,
    uses: uses::Uses,
    remembered: Mutex<HashMap<[u8; 32], (Instant, Known)>>,
    /// Counts the revocations here. A look-up that began before one is not cached.
    forgotten: AtomicU64,
}

fn refused(why: &str) -> Error {
    Error::new(Code::Unauthenticated, why)
}

impl Authn {
    /// `signer` is absent if public run tokens are off.
    pub fn new(
        store: Store,
        clock: Clock,
        signer: Option<public::Signer>,
        sign_in: session::Options,
    ) -> Self {
        Self {
            store,
            clock,
            signer,
            sign_in,
            sign_ins: session::SignIns::default(),
            uses: uses::Uses::default(),
            remembered: Mutex::default(),
            forgotten: AtomicU64::new(0),
        }
    }

    /// Signs public run tokens, if they are on.
    pub fn signer(&self) -> Option<&public::Signer> {
        self.signer.as_ref()
    }

    /// How people sign in.
    pub fn sign_in(&self) -> &session::Options {
        &self.sign_in
    }

    /// How often people signed in, and were refused.
    pub fn sign_ins(&self) -> &session::SignIns {
        &self.sign_ins
    }

    /// Parses an `Authorization` header and looks its credential up.
    ///
    /// # Errors
    /// `unauthenticated`; `database-unavailable` if the token could not be looked up.
    pub fn credential(&self, header: Option<&str>) -> Result<Credential> {
        let header = header.ok_or_else(|| {
            refused("This route needs a token. Send Authorization: Bearer <token>, or sign in.")
        })?;
        let token = header
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| trim_ows(token))
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

    /// The caller behind a bearer token, for whom it is looked up.
    ///
    /// # Errors
    /// `unauthenticated`, `database-unavailable`.
    pub fn bearer(&self, token: &str) -> Result<Known> {
        let unknown =
            || refused("The token is not known here. It may have been revoked, or have ended.");
        let digest = bearer::digest(token);
        let known = match self.cached(&digest, |known| known.session.is_none()) {
            Some(known) => known,
            None => {
                let found = self.look_up(&digest, |session| tokens::by_digest(session, &digest));
                let known = found?.ok_or_else(unknown)?;
                self.uses.note(&known, self.clock.now());
                known
            }
        };
        if known.expires_at.is_some_and(|end| end <= self.clock.now()) {
            return Err(unknown());
        }
        Ok(known)
    }

    /// Looks a session up by the value that its browser keeps. `is_used`: by its person, which keeps it open, not by a page
    /// that asks by itself.
    ///
    /// # Errors
    /// `unauthenticated`; `database-unavailable` if it could not be looked up.
    pub fn session(&self, value: &str, is_used: bool) -> Result<Credential> {
        let unknown = || refused("The session has ended. Sign in again.");
        let digest = bearer::digest(value);
        let now = self.clock.now();
        // Of a use, the first in a minute is written.
        let is_noted = |known: &Known| {
            let session = known.session.as_ref();
            session
                .is_some_and(|session| !is_used || session.active_at + session::NOTED_EVERY > now)
        };
        let known = match self.cached(&digest, is_noted) {
            Some(known) => known,
            None => self
                .look_up(&digest, |database| {
                    sessions::by_digest(database, &digest, is_used, self.sign_in.moment(now))
                })?
                .ok_or_else(unknown)?,
        };
        // What was cached may be over by now.
        let is_over = |end: Option<OffsetDateTime>| end.is_none_or(|end| end <= now);
        let idle_at = known.session.as_ref().map(|session| session.idle_at);
        match is_over(known.expires_at) || is_over(idle_at) {
            true => Err(unknown()),
            false => Ok(Credential::Session(known)),
        }
    }

    /// Writes the uses of tokens that wait to be written.
    ///
    /// # Errors
    /// `database-unavailable`: they wait on.
    pub fn write_uses(&self) -> Result<()> {
        self.uses.write(&self.store)
    }

    fn cached(&self, digest: &[u8; 32], serves: impl Fn(&Known) -> bool) -> Option<Known> {
        let remembered = self.remembered();
        let (at, known) = remembered.get(digest)?;
        (at.elapsed() < KNOWN_FOR && serves(known)).then(|| known.clone())
    }

    fn look_up(
        &self,
        digest: &[u8; 32],
        find: impl FnOnce(&mut crate::store::Session) -> Result<Option<Known>>,
    ) -> Result<Option<Known>> {
        let asked_at = Instant::now();
        let forgotten = self.forgotten.load(Ordering::Relaxed);
        let known = find(&mut self.store.session()?)?;
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

    /// Drops a token that was revoked here with the sessions that came from it, or a session that was ended here.
    pub fn forget(&self, token_id: Uuid) {
        let mut remembered = self.remembered();
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        remembered.retain(|_, (_, known)| {
            let of_token = KnownBy::Session {
                of_token: Some(token_id),
            };
            known.caller.token_id != token_id && known.caller.known_by != of_token
        });
    }

    /// Drops every token and session of a user who was deactivated or signed out here: what is theirs still is looked up
    /// again.
    pub fn forget_user(&self, tenant_id: Uuid, user_id: Uuid) {
        let mut remembered = self.remembered();
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        remembered.retain(|_, (_, known)| {
            (known.caller.tenant_id, known.caller.user_id) != (tenant_id, user_id)
        });
    }

    /// Drops every session of a tenant whose settings changed here: those that are open still are looked up again.
    pub fn forget_sessions(&self, tenant_id: Uuid) {
        let mut remembered = self.remembered();
        self.forgotten.fetch_add(1, Ordering::Relaxed);
        remembered
            .retain(|_, (_, known)| known.session.is_none() || known.caller.tenant_id != tenant_id);
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], (Instant, Known)>> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
