//! The access checks of one request: the caller, the limits of the key, the authorization model,
//! and the record.
//!
//! Guarantees: every decision is handed to the audit before its outcome is used, and its ticket
//! stays with the request (`audit-before-commit`). An object that is not found, and a question that
//! the authorization server did not answer, are no decisions.
//!
//! Not here: waiting for the tickets (`http`).

use super::admission::{Admission, Limited};
use super::permissions::Answer;
use super::roles::{self, Action, ObjectKind, Role};
use super::target::Target;
use crate::audit::{Audit, Check, Decision, Outcome, Stage, Ticket};
use crate::error::{Code, Error, Result};
use crate::proof::{Action as _, Caller, Capabilities, Capability, KeyRole, Read, Write};
use crate::store::Store;
use crate::store::authz::{InSync, KeyOwner};
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long a change waits for its decisions to be on disk. The audit gives up before.
const RECORDED_WITHIN: Duration = Duration::from_secs(20);

/// What is recorded of the request beside the decision.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The request's id.
    pub request_id: Uuid,
    /// Its trace.
    pub trace_id: String,
    /// `METHOD /path/{parameter}`.
    pub route: String,
    /// The other end of the connection.
    pub client_address: IpAddr,
    /// What the route takes of a key.
    pub capability: Option<Capability>,
}

/// The decisions of one request, on their way to the disk: from when the request does something else, or ends.
#[derive(Default)]
pub struct Tickets {
    all: RefCell<Vec<Ticket>>,
    /// The audit, where some of them are queued and its writer was not woken.
    left: Cell<Option<Audit>>,
}

impl Tickets {
    fn add(&self, ticket: Ticket, audit: &Audit) {
        self.all.borrow_mut().push(ticket);
        self.left.set(Some(audit.clone()));
    }

    /// There are none: nothing was decided.
    pub fn is_empty(&self) -> bool {
        self.all.borrow().is_empty()
    }

    /// The request goes on to something that takes time, and they are written meanwhile.
    pub fn start_writing(&self) {
        if let Some(audit) = self.left.take() {
            audit.wake_writer();
        }
    }

    /// Waits until all are on disk.
    ///
    /// # Errors
    /// `audit-unavailable`: one is not, and nothing that it was to allow may happen.
    pub fn wait(&self) -> Result<()> {
        self.start_writing();
        let deadline = Instant::now() + RECORDED_WITHIN;
        let waiting = self.all.borrow();
        waiting.iter().try_for_each(|ticket| ticket.wait(deadline))
    }

    /// Calls `f` once all are on disk, or one of them never will be: on the thread that writes them,
    /// so `f` must not block. That is this thread, if no other writes them.
    pub fn then(self, f: impl FnOnce(Result<()>) + Send + 'static) {
        all(self.all.take(), f);
        if let Some(audit) = self.left.take() {
            audit.write_waiting();
        }
    }
}

/// A request may break off.
impl Drop for Tickets {
    fn drop(&mut self) {
        self.start_writing();
    }
}

fn all(mut tickets: Vec<Ticket>, f: impl FnOnce(Result<()>) + Send + 'static) {
    let Some(last) = tickets.pop() else {
        return f(Ok(()));
    };
    last.then(move |recorded| match recorded {
        Ok(()) => all(tickets, Box::new(f) as Box<dyn FnOnce(Result<()>) + Send>),
        Err(error) => f(Err(error)),
    });
}

fn relation(action: &str) -> &'static str {
    Action::named(action).relation()
}

/// What is recorded of one decision.
struct Recorded<'r> {
    stage: Stage,
    outcome: Outcome,
    action: &'r str,
    resource: &'r str,
    reason: String,
    failing_part: Option<String>,
    check: Option<Check>,
    duration: Duration,
    run_id: Option<Uuid>,
}

/// Asks on behalf of one request's caller.
pub struct Checker<'a> {
    pub(super) store: &'a Store,
    admission: Option<&'a Admission>,
    pub(super) caller: Caller,
    facts: &'a Facts,
    tickets: &'a Tickets,
}

impl<'a> Checker<'a> {
    /// For the pipeline. Without admission authorization is off.
    pub fn new(
        store: &'a Store,
        admission: Option<&'a Admission>,
        caller: Caller,
        facts: &'a Facts,
        tickets: &'a Tickets,
    ) -> Self {
        Self {
            store,
            admission,
            caller,
            facts,
            tickets,
        }
    }

    /// Who asks.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether authorization is on: with it off there are no decisions, and no rules for keys.
    pub fn enforces(&self) -> bool {
        self.admission.is_some()
    }

    pub(super) fn facts(&self) -> &Facts {
        self.facts
    }

    /// Records a refusal that the model is not asked about, and gives the error for it. With
    /// authorization off nothing is recorded.
    #[track_caller]
    pub fn refuse(
        &self,
        stage: Stage,
        action: &'static str,
        resource: &str,
        sentence: impl Into<String>,
        code: Code,
    ) -> Error {
        let sentence = sentence.into();
        let error = denial(code, &sentence, action, resource);
        self.refused(stage, action, resource, sentence, error)
    }

    /// Records a refusal that has an error of its own, whose message is the reason, and gives that error.
    pub fn refuse_with(
        &self,
        stage: Stage,
        action: &'static str,
        resource: &str,
        error: Error,
    ) -> Error {
        let reason = error.message().to_owned();
        self.refused(stage, action, resource, reason, error)
    }

    /// Records a refusal with the check that refused, and gives its error, or that it could not be recorded.
    fn refused(
        &self,
        stage: Stage,
        action: &'static str,
        resource: &str,
        reason: String,
        error: Error,
    ) -> Error {
        let refused = Recorded {
            stage,
            outcome: Outcome::Denied,
            action,
            resource,
            reason: format!("{}: {reason}", stage.text()),
            failing_part: Some(stage.text().to_owned()),
            check: None,
            duration: Duration::ZERO,
            run_id: None,
        };
        match self
            .admission
            .map(|admission| self.record(admission, refused))
        {
            Some(Err(unrecorded)) => unrecorded,
            _ => error,
        }
    }

    /// Records what was allowed by a check that is not the model's. With authorization off nothing is
    /// recorded.
    ///
    /// # Errors
    /// `audit-unavailable`.
    pub fn allow(
        &self,
        stage: Stage,
        action: &'static str,
        resource: &str,
        reason: impl Into<String>,
    ) -> Result<()> {
        let Some(admission) = self.admission else {
            return Ok(());
        };
        let allowed = Recorded {
            stage,
            outcome: Outcome::Allowed,
            action,
            resource,
            reason: reason.into(),
            failing_part: None,
            check: None,
            duration: Duration::ZERO,
            run_id: None,
        };
        self.record(admission, allowed)
    }

    /// Refuses a credential that was denied too often, before anything is decided about it. That is
    /// recorded once a minute.
    pub(super) fn admit(&self) -> Result<()> {
        let limited = self
            .admission
            .and_then(|admission| admission.limited(self.caller.denied_as()));
        let Some(limited) = limited else {
            return Ok(());
        };
        let error = Error::new(
            Code::TooManyRequests,
            "This credential was refused too often. Ask for what it may do, after a while.",
        );
        if limited == Limited::Still {
            return Err(error);
        }
        let action = match self.facts.route.starts_with("GET ") {
            true => Read::NAME,
            false => Write::NAME,
        };
        let tenant = Target::tenant(self.caller.tenant_id);
        Err(self.refuse_with(Stage::DenialLimit, action, &tenant.resource, error))
    }

    /// What the route takes of a key, where the route checks nothing else.
    pub(super) fn check_key(&self) -> Result<()> {
        self.facts
            .capability
            .map_or(Ok(()), |needed| self.needs(needed))
    }

    /// The key has this capability, which a part of what the route does takes of it.
    ///
    /// # Errors
    /// `permission-denied`, `audit-unavailable`.
    pub fn needs(&self, needed: Capability) -> Result<()> {
        let tenant = Target::tenant(self.caller.tenant_id);
        match self.lacking(needed) {
            Some(lacking) if self.enforces() => {
                Err(self.refuse_key(Stage::KeyCapability, Write::NAME, &tenant, &lacking))
            }
            _ => Ok(()),
        }
    }

    /// The key holds what is to be given to another key.
    ///
    /// # Errors
    /// `permission-denied`, `audit-unavailable`.
    pub fn gives(&self, capabilities: Capabilities) -> Result<()> {
        let beyond = capabilities.beyond(self.caller.key.capabilities);
        if beyond.is_empty() || !self.enforces() {
            return Ok(());
        }
        let (tenant, stage) = (
            Target::tenant(self.caller.tenant_id),
            Stage::CapabilityNotHeld,
        );
        let why = format!(
            "the key does not hold {} and cannot give it to another key",
            beyond.texts().join(", ")
        );
        Err(self.refuse_key(stage, Write::NAME, &tenant, &why))
    }

    /// The key is not limited to another project than the one that a path, a body or a filter names
    /// by its id, whether or not that one exists.
    ///
    /// # Errors
    /// `key-project-mismatch`, `audit-unavailable`.
    pub fn names_project(&self, action: &'static str, project_id: Uuid) -> Result<()> {
        match self.caller.key.project_id {
            Some(own) if own != project_id && self.enforces() => {
                let resource = format!("project:{project_id}");
                let sentence = format!(
                    "The key is limited to project:{own}, and the request names {resource}. Use a key of that project, or one without a limit."
                );
                let (stage, code) = (Stage::KeyProjectMismatch, Code::KeyProjectMismatch);
                Err(self.refuse(stage, action, &resource, sentence, code))
            }
            _ => Ok(()),
        }
    }

    /// Decides whether the caller may do the action. `in_sync` as of [`super::permissions::Asked`], `owner` as of what was found.
    pub(super) fn check(
        &self,
        action: &'static str,
        target: &Target,
        in_sync: Option<InSync>,
        owner: Option<&KeyOwner>,
    ) -> Result<()> {
        let Some(admission) = self.admission else {
            return Ok(());
        };
        if let Some((stage, why)) = self.key_rule(action, target, owner) {
            return Err(self.refuse_key(stage, action, target, &why));
        }
        let asked = target.asked(self.caller.user_id, relation(action), in_sync);
        let began = Instant::now();
        let answer = admission.ask(self.caller.tenant_id, &asked)?;
        self.decided(admission, action, target, answer, began.elapsed())
    }

    /// Decides again, for what goes on after the request, without a permit. Of the rules of keys, one
    /// can turn out otherwise by then: that of a member key's owner.
    pub(super) fn check_again(
        &self,
        action: &'static str,
        target: &Target,
        owner: Option<&KeyOwner>,
    ) -> Result<()> {
        let Some(admission) = self.admission else {
            return Ok(());
        };
        if let Some(why) = self.member_rule(action, target, owner) {
            return Err(self.refuse_key(Stage::KeyRole, action, target, why));
        }
        let asked = target.asked(self.caller.user_id, relation(action), None);
        let began = Instant::now();
        let answer = admission.ask_unlimited(self.caller.tenant_id, &asked)?;
        self.decided(admission, action, target, answer, began.elapsed())
    }

    fn decided(
        &self,
        admission: &Admission,
        action: &'static str,
        target: &Target,
        answer: Answer,
        duration: Duration,
    ) -> Result<()> {
        let (user, relation) = (format!("user:{}", self.caller.user_id), relation(action));
        let resource = target.resource.as_str();
        let say = |on: &str| match answer.allowed {
            true => format!("{user} has {relation} on {on}"),
            false => self.lacks(action, on),
        };
        let (sentence, reason) = (say(resource), say(&target.recorded()));
        let error =
            (!answer.allowed).then(|| denial(Code::PermissionDenied, &sentence, action, resource));
        let decision = Recorded {
            stage: Stage::Model,
            outcome: if answer.allowed {
                Outcome::Allowed
            } else {
                Outcome::Denied
            },
            action,
            resource,
            reason,
            failing_part: (!answer.allowed).then(|| relation.to_owned()),
            check: Some(Check {
                user,
                relation: relation.to_owned(),
                object: resource.to_owned(),
                store_id: answer.store_id,
                model_id: answer.model_id,
            }),
            duration,
            run_id: target.run_id,
        };
        self.record(admission, decision)?;
        error.map_or(Ok(()), Err)
    }

    fn record(&self, admission: &Admission, recorded: Recorded<'_>) -> Result<()> {
        // What the limit refuses is no further denial, or the limit would hold itself up.
        if recorded.outcome == Outcome::Denied && recorded.stage != Stage::DenialLimit {
            admission.denied(self.caller.denied_as());
        }
        let facts = self.facts;
        let ticket = admission.audit.enqueue(Decision {
            tenant_id: self.caller.tenant_id,
            actor_subject: format!("user:{}", self.caller.user_id),
            action: recorded.action.to_owned(),
            resource: recorded.resource.to_owned(),
            outcome: recorded.outcome,
            reason: recorded.reason,
            stage: recorded.stage,
            failing_part: recorded.failing_part,
            check: recorded.check,
            duration: recorded.duration,
            request_id: Some(facts.request_id),
            trace_id: Some(facts.trace_id.clone()),
            key_id: Some(self.caller.token_id),
            credential_kind: Some(self.caller.known_by.into()),
            route: Some(facts.route.clone()),
            run_id: recorded.run_id,
            client_address: Some(facts.client_address),
        })?;
        self.tickets.add(ticket, &admission.audit);
        Ok(())
    }

    /// The rule by which the key rules it out (section 5.6 rule 3), and why.
    fn key_rule(
        &self,
        action: &str,
        target: &Target,
        owner: Option<&KeyOwner>,
    ) -> Option<(Stage, String)> {
        if let Some(why) = self.member_rule(action, target, owner) {
            return Some((Stage::KeyRole, why.to_owned()));
        }
        if let Some(project_id) = self.caller.key.project_id {
            let is_elsewhere = match target.project_id {
                Some(own) => own != project_id,
                None => action != Read::NAME,
            };
            if is_elsewhere {
                let why = format!("the key is limited to project:{project_id}");
                return Some((Stage::KeyProject, why));
            }
        }
        let lacking = self.lacking(self.facts.capability?)?;
        Some((Stage::KeyCapability, lacking))
    }

    /// Why a member key does not do it: it takes the owner's being a tenant admin.
    fn member_rule(
        &self,
        action: &str,
        target: &Target,
        owner: Option<&KeyOwner>,
    ) -> Option<&'static str> {
        if self.caller.key.role != KeyRole::Member {
            return None;
        }
        if target.kind == ObjectKind::Tenant {
            return (action != Read::NAME)
                .then_some("it is a member key, and this takes a tenant admin");
        }
        // Of everybody else the model knows no more than the database does.
        let owner = owner.filter(|owner| owner.is_tenant_admin)?;
        let role = owner.other_role.as_deref();
        let role = role.and_then(|name| Role::named(target.kind, name));
        (!roles::may(role.as_slice(), Action::named(action), target.kind))
            .then_some("it is a member key, and no role of its owner but tenant admin allows this")
    }

    fn lacking(&self, needed: Capability) -> Option<String> {
        (!self.caller.key.capabilities.has(needed))
            .then(|| format!("the key lacks the capability {}", needed.text()))
    }

    /// The sentence of section 7.
    fn lacks(&self, action: &str, on: &str) -> String {
        let (user_id, relation) = (self.caller.user_id, relation(action));
        format!("permission denied, actor user:{user_id} lacks {relation} on {on}")
    }

    /// Says to the client and to the record what the model's refusal says, and which role is missing.
    #[track_caller]
    pub(super) fn refuse_role(
        &self,
        stage: Stage,
        action: &'static str,
        on: &Target,
        why: &str,
    ) -> Error {
        let sentence = format!("{}: {why}.", self.lacks(action, &on.resource));
        self.refuse(
            stage,
            action,
            &on.resource,
            sentence,
            Code::PermissionDenied,
        )
    }

    /// Says to the client what the model's refusal says, and to the record why.
    #[track_caller]
    pub(super) fn refuse_key(
        &self,
        stage: Stage,
        action: &'static str,
        on: &Target,
        why: &str,
    ) -> Error {
        let (sentence, resource) = (self.lacks(action, &on.resource), on.resource.as_str());
        let error = denial(Code::PermissionDenied, &sentence, action, resource);
        let reason = format!("{}; {why}", self.lacks(action, &on.recorded()));
        self.refused(stage, action, resource, reason, error)
    }
}

/// The body of section 7.
#[track_caller]
fn denial(code: Code, sentence: &str, action: &str, resource: &str) -> Error {
    Error::new(code, sentence)
        .detail("action", action)
        .detail("resource", resource)
        .detail("reason", sentence)
}
