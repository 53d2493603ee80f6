//! Authorization: whether a caller may do something. The only code that makes proofs.
//!
//! Without an authorization server, section 1.1 rule 3 applies: whoever holds a token of a tenant
//! may do anything in that tenant, and nothing outside it. An object of another tenant is not
//! found.

mod admission;
mod changes;
mod check;
mod erasers;
pub mod fga;
mod grants;
pub mod model;
mod reviewers;
pub mod roles;
mod sync;
mod target;

pub use crate::audit::Stage;
pub use admission::{Admission, Options, Stats};
pub use changes::{ChangeFollower, change_follower};
pub use check::{Checker, Facts, Tickets};
pub use erasers::{ConversationEraser, conversation_eraser};
pub use grants::{GrantsReader, grants_reader};
pub use reviewers::{
    Act, ApprovalReviewer, Decides, Reads, Reassigns, Reviewer, ReviewerFollower,
    approval_reviewer, reviewer, reviewer_follower, role_lost, sight,
};
pub use sync::{desired_tuples, health, permissions, report};

use crate::authn::PublicToken;
use crate::error::{Code, Error, Result};
use crate::proof::{Action, Authorized, Caller, KeyRole, Kind, Listing, May, Read};
use crate::store::authz::{Found, find};
use crate::store::projects::Project;
use crate::store::runs::Run;
use crate::store::tenants::{self, Tenant};
use crate::store::{Find, Store};
use target::Target;
use time::OffsetDateTime;
use uuid::Uuid;

/// The caller is known, and the key is one that the route takes.
///
/// # Errors
/// `permission-denied`, `too-many-requests`, `audit-unavailable`.
pub fn as_caller(checker: &Checker<'_>) -> Result<Caller> {
    checker.admit()?;
    checker.check_key()?;
    Ok(checker.caller.clone())
}

/// The caller's key is not limited to another project than this one, which the request names to do `A`.
///
/// # Errors
/// `key-project-mismatch`, `too-many-requests`, `audit-unavailable`.
pub fn names_project<A: Action>(checker: &Checker<'_>, project_id: Uuid) -> Result<()> {
    checker.admit()?;
    checker.names_project(A::NAME, project_id)
}

/// The caller may do `A` to the tenant of the credential.
///
/// # Errors
/// `permission-denied`, and those of every check: `too-many-requests`, `authorization-unavailable`,
/// `overloaded`, `audit-unavailable`, `database-unavailable`.
pub fn on_tenant<A: Action>(checker: &Checker<'_>) -> Result<Authorized<Tenant, A>> {
    let tenant_id = checker.caller.tenant_id;
    checker.admit()?;
    checker.check(A::NAME, &Target::tenant(tenant_id), None, None)?;
    Ok(Authorized::mint(
        Tenant { tenant_id },
        checker.caller.clone(),
    ))
}

/// The caller may do `A` to the object, which is found in the caller's tenant.
///
/// # Errors
/// `not-found`, `permission-denied`, of a project `key-project-mismatch`, and those of every check.
pub fn on_object<K: Find, A: Action>(checker: &Checker<'_>, id: Uuid) -> Result<Authorized<K, A>> {
    let caller = &checker.caller;
    checker.admit()?;
    if K::NAME == Project::NAME {
        checker.names_project(A::NAME, id)?;
    }
    let not_found = || Error::not_found(K::NAME, id);
    if !checker.enforces() {
        let row = K::find(&mut checker.store.session()?, caller.tenant_id, id)?;
        return Ok(Authorized::mint(row.ok_or_else(not_found)?, caller.clone()));
    }
    // No connection is held while the authorization server is asked.
    let found = find(&mut checker.store.session()?, caller, id)?;
    let Found {
        row,
        in_sync,
        owner,
    } = found.ok_or_else(not_found)?;
    let target = Target::of(&row, caller.tenant_id);
    checker.check(A::NAME, &target, in_sync, owner.as_ref())?;
    Ok(Authorized::mint(row, caller.clone()))
}

/// The caller may list the kind `K`, of the project that a filter names, if one does: the standing on
/// the tenant is decided, once. What a member may read of it is a question for the database's own
/// tables of roles.
///
/// # Errors
/// `permission-denied`, `key-project-mismatch`, and those of every check.
pub fn listing<K: Kind>(checker: &Checker<'_>, named: Option<Uuid>) -> Result<Listing<K>> {
    let caller = checker.caller.clone();
    checker.admit()?;
    if !checker.enforces() {
        return Ok(Listing::mint(caller, None, None));
    }
    if let Some(project_id) = named {
        checker.names_project(Read::NAME, project_id)?;
    }
    let (is_admin, in_sync) = {
        let mut session = checker.store.session()?;
        tenants::is_admin(&mut session, caller.tenant_id, caller.user_id)?
    };
    checker.check(Read::NAME, &Target::tenant(caller.tenant_id), in_sync, None)?;
    let reads_all = is_admin && caller.key.role == KeyRole::Admin;
    let (reader, project_id) = (
        (!reads_all).then_some(caller.user_id),
        caller.key.project_id,
    );
    Ok(Listing::mint(caller, reader, project_id))
}

/// Somebody may read one run: with a bearer token, or with a public token that names the run.
#[derive(Debug)]
pub struct RunReader {
    run: Run,
    tenant_id: Uuid,
    ends_at: Option<OffsetDateTime>,
    bearer: Option<Bearer>,
}

/// Who reads a run with a bearer token, and by which request.
#[derive(Debug, Clone)]
struct Bearer {
    caller: Caller,
    facts: Facts,
}

impl RunReader {
    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run, when the proof is no longer needed.
    pub fn into_run(self) -> Run {
        self.run
    }

    /// When the credential ends: a stream ends with it.
    pub fn ends_at(&self) -> Option<OffsetDateTime> {
        self.ends_at
    }

    /// Whether it has a public token, as a browser of the tenant's own users has.
    pub fn is_public(&self) -> bool {
        self.bearer.is_none()
    }

    /// The bearer token, if it was one.
    pub fn token_id(&self) -> Option<Uuid> {
        self.bearer.as_ref().map(|bearer| bearer.caller.token_id)
    }

    /// What it takes to decide again; none for a public token.
    pub fn again(&self) -> Option<Again> {
        Some(Again {
            bearer: self.bearer.clone()?,
            target: Target::of(&self.run, self.tenant_id),
            run_id: self.run.run_id,
        })
    }
}

impl May<Read, Run> for RunReader {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.run.id()
    }
}

/// A reader of a run whose right to it is decided again while the stream is open.
#[derive(Debug, Clone)]
pub struct Again {
    bearer: Bearer,
    target: Target,
    run_id: Uuid,
}

impl Again {
    /// The run.
    pub fn run_id(&self) -> Uuid {
        self.run_id
    }

    /// Its tenant.
    pub fn tenant_id(&self) -> Uuid {
        self.bearer.caller.tenant_id
    }

    /// The bearer token.
    pub fn token_id(&self) -> Uuid {
        self.bearer.caller.token_id
    }

    /// Decides again, and records it. It waits for the authorization server and for the record, so
    /// it is not for a thread that serves others.
    ///
    /// # Errors
    /// `permission-denied`, and those of every check; only the first says that it may not go on.
    pub fn decide(&self, store: &Store, admission: &Admission) -> Result<()> {
        let tickets = Tickets::default();
        let Bearer { caller, facts } = &self.bearer;
        let checker = Checker::new(store, Some(admission), caller.clone(), facts, &tickets);
        let owner = match caller.key.role {
            KeyRole::Admin => None,
            KeyRole::Member => find::<Run>(&mut store.session()?, caller, self.run_id)?
                .and_then(|found| found.owner),
        };
        let decided = checker.check_again(Read::NAME, &self.target, owner.as_ref());
        tickets.wait()?;
        decided
    }
}

/// A bearer token with read on the run.
///
/// # Errors
/// `not-found`, `permission-denied`, and those of every check.
pub fn run_reader(
    checker: &Checker<'_>,
    ends_at: Option<OffsetDateTime>,
    run_id: Uuid,
) -> Result<RunReader> {
    let proof: Authorized<Run, Read> = on_object(checker, run_id)?;
    Ok(RunReader {
        tenant_id: checker.caller.tenant_id,
        run: proof.into_row(),
        ends_at,
        bearer: Some(Bearer {
            caller: checker.caller.clone(),
            facts: checker.facts().clone(),
        }),
    })
}

/// A public token of the run, or of the one at the top of its tree. Nothing is decided: the token says it (section 5.6 rule 4).
///
/// # Errors
/// `not-found`, `public-run-token-not-allowed`, `database-unavailable`.
pub fn public_reader(store: &Store, token: &PublicToken, run_id: Uuid) -> Result<RunReader> {
    let found = Run::find(&mut store.session()?, token.tenant_id, run_id)?;
    let top = found.as_ref().map(|run| run.root_run_id);
    let is_named = |named: &Uuid| *named == run_id || Some(*named) == top;
    if !token.run_ids.iter().any(is_named) {
        return Err(Error::new(
            Code::PublicRunTokenNotAllowed,
            "This public run token is not for this run. Mint one that names it, or the run at the top of its tree.",
        ));
    }
    let run = found.ok_or_else(|| Error::not_found(Run::NAME, run_id))?;
    Ok(RunReader {
        run,
        tenant_id: token.tenant_id,
        ends_at: Some(token.expires_at),
        bearer: None,
    })
}
