//! What threads do for all readers of theirs, whatever these follow.
//!
//! Not here: readers of runs, which a thread keeps by run (`shard`, `rights`).

use super::format::End;
use super::outgoing::{Outgoing, StreamState};
use crate::error::Result;
use crate::store::open_sessions::Moment;
use crate::store::reviewers::OfTenant;
use crate::store::{Store, tokens};
use std::collections::HashSet;
use std::time::Duration;
use time::OffsetDateTime;

/// Tokens looked up with one query.
const TOKENS: usize = 1000;

/// A reader with a credential.
pub(super) trait Follows {
    /// What it is given.
    fn out(&mut self) -> &mut Outgoing;
    /// Its tenant, and its credential.
    fn token(&self) -> OfTenant;
    /// When the credential ends.
    fn ends_at(&self) -> Option<OffsetDateTime>;
}

/// Ends streams whose credential has ended, and keeps the others open.
pub(super) fn sweep<F: Follows>(followers: &mut [F], now: OffsetDateTime, comment_every: Duration) {
    for follower in followers {
        if follower.ends_at().is_some_and(|end| end <= now) {
            follower.out().end(End::Credential);
        } else {
            follower.out().comment(comment_every);
        }
    }
}

/// Ends the streams whose tokens were revoked, and whose sessions are not open at this moment.
pub(super) fn end_revoked<F: Follows>(
    followers: &mut [F],
    store: &Store,
    moment: Moment,
) -> Result<()> {
    let revoked = revoked(store, followers.iter().map(F::token).collect(), moment)?;
    for follower in followers {
        if revoked.contains(&follower.token()) {
            follower.out().end(End::Credential);
        }
    }
    Ok(())
}

/// Of these credentials, those that were revoked, and the sessions that are not open at this moment.
pub(super) fn revoked(
    store: &Store,
    held: HashSet<OfTenant>,
    moment: Moment,
) -> Result<HashSet<OfTenant>> {
    let held: Vec<OfTenant> = held.into_iter().collect();
    let mut revoked = HashSet::new();
    for some in held.chunks(TOKENS) {
        revoked.extend(tokens::revoked_among(&mut store.session()?, some, moment)?);
    }
    Ok(revoked)
}

/// Drops the readers that are over or take nothing, and says how many.
pub(super) fn drop_over<F: Follows>(followers: &mut Vec<F>, patience: Duration) -> usize {
    let before = followers.len();
    followers.retain_mut(|follower| {
        let out = follower.out();
        if out.flush() == StreamState::Over {
            return false;
        }
        if out.is_stalled(patience) {
            out.reset();
            return false;
        }
        true
    });
    before - followers.len()
}

/// Ends all, because the server stops.
pub(super) fn stop<F: Follows>(followers: &mut [F]) {
    for follower in followers {
        follower.out().end(End::Stopping);
        follower.out().flush();
    }
}
