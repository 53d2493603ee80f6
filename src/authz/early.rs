//! A check that is sent before it is known what it stands on: the statement that says so, and that finds what the check is
//! about, runs while the authorization server works.
//!
//! The check names the store and the model that an earlier request saw. Guarantees (invariant 3): its answer stands only if
//! the statement sees the same again: that store, that model, nothing left to be told, and the same last telling. What was
//! committed before the request began is seen by the statement; so it was told, and that is noted. It was noted before the
//! earlier statement, or another telling would be the last one; so it was told before the check was sent. It does not matter
//! who told it: the database draws a telling, never one that was there before, in the transaction that notes an object as
//! told. A transaction that failed leaves its object untold. What a comparison puts right is noted as told too. In every
//! other case the check is made again, on what the statement saw.
//!
//! What is not found is no decision, whatever the authorization server said: nobody hears of it.
//!
//! Not here: checks that take the row to be named, as of what lies in a project: they are made after it was found.

use super::decide::{Asker, Target, relation};
use super::permissions::Answer;
use crate::error::{Error, Result};
use crate::outbound::Meanwhile;
use crate::store::Session;
use crate::store::authz::{Beside, Calm};
use std::time::{Duration, Instant};

/// What was seen of the tenant after the request began, beside what the check is about.
pub(super) struct Seen {
    /// None: it has no store, or changes that are left to be told.
    pub(super) calm: Option<Calm>,
    early: Option<Early>,
}

/// The outcome of a check on what was seen of the tenant before.
pub(super) struct Early {
    target: Target,
    calm: Calm,
    pub(super) outcome: Result<Answer>,
    pub(super) duration: Duration,
}

impl Seen {
    /// The early check of this target, if it stands.
    pub(super) fn early(&mut self, target: &Target) -> Option<Early> {
        let calm = self.calm.as_ref()?;
        let early = self.early.take();
        early.filter(|early| early.calm == *calm && early.target == *target)
    }
}

impl Asker<'_> {
    /// Runs the statement that finds what a check is about, and beside it the check itself, where that can be named before and
    /// what it stands on is foreseen.
    pub(super) fn find<T: Send + 'static>(
        &self,
        action: &'static str,
        target: Option<Target>,
        statement: impl FnOnce(&mut Session) -> Result<Beside<T>> + Send + 'static,
    ) -> Result<(T, Seen)> {
        let store = self.store.clone();
        // No connection is held while the authorization server is asked.
        let statement = move || statement(&mut store.session()?);
        let (gate, tenant_id) = (self.gate, self.caller.tenant_id);
        let target = target.filter(|target| self.key_rule(action, target).is_none());
        let foreseen = gate
            .zip(target)
            .and_then(|(gate, target)| Some((gate, gate.foresee(tenant_id)?, target)));
        let Some((gate, calm, target)) = foreseen else {
            let (found, calm) = statement()?;
            return Ok((found, Seen { calm, early: None }));
        };
        let (meanwhile, done) = Meanwhile::new(statement);
        let mut asked = target.asked(self.caller.user_id, relation(action), Some(calm.clone()));
        asked.meanwhile = Some(meanwhile.clone());
        let began = Instant::now();
        let outcome = gate.ask(tenant_id, &asked);
        let duration = began.elapsed();
        meanwhile.run();
        let (found, seen) = done.try_recv().map_err(Error::internal)??;
        let early = Some(Early {
            target,
            calm,
            outcome,
            duration,
        });
        Ok((found, Seen { calm: seen, early }))
    }
}
