//! Who may act on approvals. One function decides, for every route and for what a reviewer is shown ([`lacks`]).
//!
//! Guarantees: nobody has a way around it, owners and tenant admins included. What is allowed is recorded as well as what is
//! refused, and a refusal names the reviewer role. With authorization off there are no reviewers: whoever holds a token of the
//! tenant decides.
//!
//! The database alone says who is a reviewer, so the authorization model is not asked.

use super::admission::Admission;
use super::check::{Checker, Facts, Tickets};
use super::target::Target;
use crate::audit::Stage;
use crate::error::{Code, Error, Result};
use crate::proof::{Action, Caller, May, Read, Write};
use crate::store::approvals::Actor;
use crate::store::approvals::for_reviewers::{self, Approval, Sight, WithStarters};
use crate::store::reviewers::OfTenant;
use crate::store::{Store, reviewers};
use std::marker::PhantomData;
use time::OffsetDateTime;
use uuid::Uuid;

/// What a reviewer does with one approval.
pub trait Act {
    /// Its name in the decision record.
    const ACTION: &'static str;
    /// It decides, or chooses who does, which is not for whoever started the run.
    const DECIDES: bool;
}

/// Reads it.
#[derive(Debug)]
pub enum Reads {}
/// Gives it to somebody else.
#[derive(Debug)]
pub enum Reassigns {}
/// Decides.
#[derive(Debug)]
pub enum Decides {}

impl Act for Reads {
    const ACTION: &'static str = Read::NAME;
    const DECIDES: bool = false;
}
impl Act for Reassigns {
    const ACTION: &'static str = Write::NAME;
    const DECIDES: bool = true;
}
impl Act for Decides {
    const ACTION: &'static str = Write::NAME;
    const DECIDES: bool = true;
}

/// Somebody may see approvals: those of the roles that this person has.
#[derive(Debug)]
pub struct Reviewer {
    sight: Sight,
    user_id: Uuid,
}

impl Reviewer {
    /// Which approvals.
    pub fn sight(&self) -> &Sight {
        &self.sight
    }

    /// Who.
    pub fn user_id(&self) -> Uuid {
        self.user_id
    }
}

/// A reviewer who gets events of approvals as long as the stream is open.
#[derive(Debug)]
pub struct ReviewerFollower {
    reviewer: Reviewer,
    ends_at: Option<OffsetDateTime>,
    caller: Caller,
    facts: Facts,
}

impl ReviewerFollower {
    /// The person, and the tenant.
    pub fn person(&self) -> OfTenant {
        (self.caller.tenant_id, self.caller.user_id)
    }

    /// The bearer token.
    pub fn token_id(&self) -> Uuid {
        self.caller.token_id
    }

    /// When the credential ends: the stream ends with it.
    pub fn ends_at(&self) -> Option<OffsetDateTime> {
        self.ends_at
    }

    /// Takes the roles that the person has by now. With authorization off there are none.
    pub fn has_now(&mut self, roles: Option<&Vec<String>>) {
        if let Some(held) = &mut self.reviewer.sight.roles {
            *held = roles.cloned().unwrap_or_default();
        }
    }

    /// Whether this person is still a reviewer, by the roles taken last.
    pub fn is_reviewer(&self) -> bool {
        lacks(&self.reviewer, None, false).is_none()
    }

    /// Whether this person may see an approval of this project with this role.
    pub fn sees(&self, tenant_id: Uuid, project_id: Uuid, required_role: &str) -> bool {
        let sight = &self.reviewer.sight;
        let of_role = |roles: &Vec<String>| roles.iter().any(|held| held == required_role);
        sight.tenant_id == tenant_id
            && sight.project_id.is_none_or(|own| own == project_id)
            && sight.roles.as_ref().is_none_or(of_role)
    }

    /// Records that this person is no reviewer any more, and calls `then` once that is on disk. It does not wait for it.
    pub fn refuse(
        &self,
        store: &Store,
        admission: &Admission,
        then: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let tickets = Tickets::default();
        let (caller, facts) = (self.caller.clone(), &self.facts);
        let checker = Checker::new(store, Some(admission), caller, facts, &tickets);
        refuse(&checker, Read::NAME, &Target::approvals(), Lack::Standing);
        tickets.then(then);
    }
}

/// The caller is a reviewer, and gets events of approvals until the credential ends.
///
/// # Errors
/// As [`reviewer`].
pub fn reviewer_follower(
    checker: &Checker<'_>,
    ends_at: Option<OffsetDateTime>,
) -> Result<ReviewerFollower> {
    Ok(ReviewerFollower {
        reviewer: reviewer(checker, None)?,
        ends_at,
        caller: checker.caller().clone(),
        facts: checker.facts().clone(),
    })
}

/// Somebody may do `A` with one approval.
#[derive(Debug)]
pub struct ApprovalReviewer<A> {
    approval: Approval,
    starters: Vec<Uuid>,
    reviewer: Reviewer,
    token_id: Uuid,
    act: PhantomData<fn() -> A>,
}

impl<A> ApprovalReviewer<A> {
    /// The approval, as the check found it.
    pub fn approval(&self) -> &Approval {
        &self.approval
    }

    /// Who acts.
    pub fn actor(&self) -> Actor {
        Actor {
            user_id: self.reviewer.user_id,
            token_id: self.token_id,
        }
    }

    /// Whether reviewers need roles: not while authorization is off.
    pub fn needs_role(&self) -> bool {
        self.reviewer.sight.roles.is_some()
    }

    /// Who started the run that asks, or one that it retries: they cannot decide, except while authorization is off.
    pub fn starters(&self) -> &[Uuid] {
        match self.needs_role() {
            true => &self.starters,
            false => &[],
        }
    }

    /// Whether this person may decide about the approval, as far as it takes a person.
    pub fn may_decide(&self) -> bool {
        lacks(&self.reviewer, Some((&self.approval, &self.starters)), true).is_none()
    }

    /// The approval as it stands now, for the same person.
    #[must_use]
    pub fn now(self, approval: Approval) -> Self {
        Self { approval, ..self }
    }
}

impl<A> May<Read, Approval> for ApprovalReviewer<A> {
    fn tenant_id(&self) -> Uuid {
        self.reviewer.sight.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.approval.approval_id
    }
}

/// Why somebody may not.
#[derive(Debug, PartialEq, Eq)]
enum Lack {
    /// The person is no reviewer at all.
    Standing,
    /// The key is limited to another project.
    Project(Uuid),
    /// The reviewer lacks the role.
    Role(String),
    /// The reviewer started the run that asks, or one that it retries.
    OwnRequest,
}

/// Why somebody may not see approvals, or not this one, or not decide about it. The only place where that is decided.
fn lacks(
    reviewer: &Reviewer,
    approval: Option<(&Approval, &[Uuid])>,
    decides: bool,
) -> Option<Lack> {
    // With authorization off there are no roles and no rules for keys.
    let roles = reviewer.sight.roles.as_ref()?;
    if roles.is_empty() {
        return Some(Lack::Standing);
    }
    let (approval, starters) = approval?;
    let key_project = reviewer.sight.project_id;
    if let Some(own) = key_project.filter(|own| *own != approval.project_id) {
        return Some(Lack::Project(own));
    }
    if !roles.contains(&approval.required_role) {
        return Some(Lack::Role(approval.required_role.clone()));
    }
    (decides && starters.contains(&reviewer.user_id)).then_some(Lack::OwnRequest)
}

fn refuse(checker: &Checker<'_>, action: &'static str, on: &Target, lack: Lack) -> Error {
    let sentence = match lack {
        Lack::Standing => {
            "it takes a reviewer role, and this person has none. Ask a tenant admin for one"
                .to_owned()
        }
        Lack::Role(role) => format!(
            "it takes the reviewer role {role}, and this person lacks it. Ask a tenant admin for it"
        ),
        Lack::Project(own) => {
            let why = format!("the key is limited to project:{own}");
            return checker.refuse_key(Stage::KeyProject, action, on, &why);
        }
        Lack::OwnRequest => {
            let sentence = "Who started a run does not decide about its approvals, nor about those of its retries, and does not choose who decides. Let another reviewer decide.";
            let (stage, code) = (Stage::ApprovalOwnRequest, Code::ApprovalOwnRequest);
            return checker.refuse(stage, action, on.resource(), sentence, code);
        }
    };
    checker.refuse_role(Stage::NotReviewer, action, on, &sentence)
}

/// Records that a reviewer may.
fn allow(
    checker: &Checker<'_>,
    action: &'static str,
    on: &Target,
    role: Option<&str>,
) -> Result<()> {
    let user_id = checker.caller().user_id;
    let by = match role {
        Some(role) => format!("by the reviewer role {role}"),
        None => "as a reviewer".to_owned(),
    };
    let reason = format!("user:{user_id} may {action} {}, {by}", on.resource());
    checker.allow(Stage::Reviewer, action, on.resource(), reason)
}

fn standing(checker: &Checker<'_>) -> Result<Reviewer> {
    checker.admit()?;
    let caller = checker.caller();
    let roles = match checker.enforces() {
        true => {
            let mut session = checker.store.session()?;
            let (tenant_id, user_id) = (caller.tenant_id, caller.user_id);
            Some(reviewers::roles(&mut session, tenant_id, user_id)?)
        }
        false => None,
    };
    let project_id = caller.key.project_id.filter(|_| checker.enforces());
    Ok(Reviewer {
        sight: Sight {
            tenant_id: caller.tenant_id,
            roles,
            project_id,
        },
        user_id: caller.user_id,
    })
}

/// Which approvals the caller may see; none of who is no reviewer, which is no refusal.
///
/// # Errors
/// `too-many-requests`, `database-unavailable`.
pub fn sight(checker: &Checker<'_>) -> Result<Option<Sight>> {
    let reviewer = standing(checker)?;
    let lack = lacks(&reviewer, None, false);
    Ok(lack.is_none().then_some(reviewer.sight))
}

/// The caller is a reviewer, whose key is not limited to another project than the one that a filter names, if one does.
///
/// # Errors
/// `permission-denied`, `key-project-mismatch`, `too-many-requests`, `audit-unavailable`, `database-unavailable`.
pub fn reviewer(checker: &Checker<'_>, named: Option<Uuid>) -> Result<Reviewer> {
    let reviewer = standing(checker)?;
    if let Some(lack) = lacks(&reviewer, None, false) {
        return Err(refuse(checker, Read::NAME, &Target::approvals(), lack));
    }
    if let Some(project_id) = named {
        checker.names_project(Read::NAME, project_id)?;
    }
    allow(checker, Read::NAME, &Target::approvals(), None)?;
    Ok(reviewer)
}

/// The caller is a reviewer who may do `A` with this approval. Who is no reviewer does not learn whether there is one.
///
/// # Errors
/// `not-found`, `approval-own-request`, and those of [`reviewer`].
pub fn approval_reviewer<A: Act>(
    checker: &Checker<'_>,
    approval_id: Uuid,
) -> Result<ApprovalReviewer<A>> {
    let reviewer = standing(checker)?;
    let target = Target::approval(approval_id);
    if let Some(lack) = lacks(&reviewer, None, A::DECIDES) {
        return Err(refuse(checker, A::ACTION, &target, lack));
    }
    let tenant_id = reviewer.sight.tenant_id;
    let mut session = checker.store.session()?;
    let WithStarters {
        approval,
        mut starters,
    } = for_reviewers::with_starters(&mut session, tenant_id, approval_id)?;
    starters.push(approval.requested_by);
    drop(session);
    if let Some(lack) = lacks(&reviewer, Some((&approval, &starters)), A::DECIDES) {
        return Err(refuse(checker, A::ACTION, &target, lack));
    }
    allow(checker, A::ACTION, &target, Some(&approval.required_role))?;
    Ok(ApprovalReviewer {
        approval,
        starters,
        reviewer,
        token_id: checker.caller().token_id,
        act: PhantomData,
    })
}

/// Refuses a reviewer whose role was taken away after the check.
pub fn role_lost(checker: &Checker<'_>, approval: &Approval) -> Error {
    let target = Target::approval(approval.approval_id);
    let lack = Lack::Role(approval.required_role.clone());
    refuse(checker, Write::NAME, &target, lack)
}
