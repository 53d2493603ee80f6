//! Who gets hints that something changed: whoever may list its kind, of what the list would hold.
//!
//! Guarantees: the standing on the tenant is decided when the stream is opened, as for a list. What the follower may read of it
//! is asked of the database's own tables of roles at each hint, as a list asks.

use super::check::Checker;
use super::{listing, reviewer, sight};
use crate::error::Result;
use crate::proof::{Caller, KeyRole, Listing};
use crate::store::changes::{Change, ChangeKind, Rights};
use crate::store::reviewers::OfTenant;
use crate::store::runs::Run;
use time::OffsetDateTime;
use uuid::Uuid;

/// Somebody who gets hints of changes as long as the stream is open.
#[derive(Debug)]
pub struct ChangeFollower {
    caller: Caller,
    ends_at: Option<OffsetDateTime>,
    kinds: Vec<ChangeKind>,
    /// Of this project alone.
    project_id: Option<Uuid>,
    /// Authorization is on.
    enforces: bool,
}

impl ChangeFollower {
    /// The user, and the tenant.
    pub fn person(&self) -> OfTenant {
        (self.caller.tenant_id, self.caller.user_id)
    }

    /// The credential.
    pub fn token_id(&self) -> Uuid {
        self.caller.token_id
    }

    /// When the credential ends: the stream ends with it.
    pub fn ends_at(&self) -> Option<OffsetDateTime> {
        self.ends_at
    }

    /// Which kinds.
    pub fn kinds(&self) -> &[ChangeKind] {
        &self.kinds
    }

    /// Whether what this user may read has to be looked up.
    pub fn has_limits(&self) -> bool {
        self.enforces
    }

    /// Whether a list would show this user what changed.
    pub fn sees(&self, change: &Change, rights: &Rights) -> bool {
        let is_asked_for = self.caller.tenant_id == change.tenant_id
            && self.kinds.contains(&change.kind)
            && self.project_id.is_none_or(|own| own == change.project_id);
        if !is_asked_for || !self.enforces {
            return is_asked_for;
        }
        let person = self.person();
        match &change.required_role {
            Some(role) => rights.has_role(person, role),
            None => {
                let reads_all = self.caller.key.role == KeyRole::Admin && rights.is_admin(person);
                reads_all || rights.has_way(person, change.project_id)
            }
        }
    }
}

/// The caller may list these kinds, of the project that a filter names, if one does. Without kinds it is those that the caller may
/// list.
///
/// # Errors
/// As [`listing`]; where approvals are named, as [`reviewer`].
pub fn change_follower(
    checker: &Checker<'_>,
    ends_at: Option<OffsetDateTime>,
    named_kinds: &[ChangeKind],
    named_project: Option<Uuid>,
) -> Result<ChangeFollower> {
    let list: Listing<Run> = listing(checker, named_project)?;
    let mut kinds = named_kinds.to_vec();
    if kinds.contains(&ChangeKind::Approval) {
        reviewer(checker, None)?;
    }
    if kinds.is_empty() {
        kinds.push(ChangeKind::Run);
        if sight(checker)?.is_some() {
            kinds.push(ChangeKind::Approval);
        }
    }
    Ok(ChangeFollower {
        project_id: named_project.or(list.project_id()),
        caller: list.caller().clone(),
        ends_at,
        kinds,
        enforces: checker.enforces(),
    })
}
