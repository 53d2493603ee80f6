//! One decision as it is recorded (specification sections 2.5 and 5.6).

use crate::ids::Clock;
pub use crate::store::audit::Outcome;
use crate::store::audit::Row;
use crate::store::tokens::CredentialKind;
use crate::texts;
use std::net::IpAddr;
use std::time::Duration;
use uuid::Uuid;

texts! {
    /// Which check decided: the authorization model, or an earlier check whose refusals are recorded
    /// (section 5.6 rules 1 and 3). No other refusal is recorded.
    Stage {
        /// The authorization model.
        Model = "model",
        /// A member key was used where a tenant admin's is needed.
        KeyRole = "key-role",
        /// The key is limited to another project, or to a project while the tenant is to be changed.
        KeyProject = "key-project",
        /// The key lacks the capability that the route needs.
        KeyCapability = "key-capability",
        /// A key that is limited to one project was used to create a key for another.
        KeyProjectMismatch = "key-project-mismatch",
        /// The new key would have a capability that its creator's key lacks.
        CapabilityNotHeld = "capability-not-held",
        /// The caller is not a reviewer, or not one with the role.
        NotReviewer = "not-reviewer",
        /// A reviewer may see approvals, or act on one.
        Reviewer = "reviewer",
        /// The reviewer started the run that asks.
        ApprovalOwnRequest = "approval-own-request",
        /// The reviewer may not decide for this class.
        JudgeClassNotAllowed = "judge-class-not-allowed",
        /// Only the operator may change identity providers.
        IdentityProvidersOperatorManaged = "identity-providers-operator-managed",
        /// This sign-in by token is not allowed.
        TokenSignInNotAllowed = "token-sign-in-not-allowed",
        /// Sign-in by token is off.
        TokenSignInOff = "token-sign-in-off",
        /// This deployment does not let tenants reach that host, or run commands.
        HostAccessDenied = "host-access-denied",
        /// The credential was denied too often of late, and nothing else was looked at. Once a minute.
        DenialLimit = "denial-limit",
        /// An enrolment code was accepted. A refused code belongs to no user and is not recorded.
        Enrolment = "enrolment",
        /// Somebody signed in. A refused code or token belongs to no user and is not recorded.
        SignIn = "sign-in",
        /// A subject of an identity provider was bound to a person.
        IdentityBound = "identity-bound",
    }
}

/// The question to the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The user, such as `user:<id>`.
    pub user: String,
    /// The relation, such as `can_read`.
    pub relation: String,
    /// The object, such as `project:<id>`.
    pub object: String,
    /// The store.
    pub store_id: String,
    /// The authorization model's id.
    pub model_id: String,
}

/// A decision to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The actor, as `user:<id>`.
    pub actor_subject: String,
    /// The action: `read`, `write`, `admin` or `sign-in`.
    pub action: String,
    /// The object, as `<kind>:<id>`.
    pub resource: String,
    /// Allowed or denied.
    pub outcome: Outcome,
    /// Why, or which check refused.
    pub reason: String,
    /// Which check decided.
    pub stage: Stage,
    /// The part of that check that refused.
    pub failing_part: Option<String>,
    /// The question to the authorization server; none if it was not asked.
    pub check: Option<Check>,
    /// How long the decision took.
    pub duration: Duration,
    /// The request.
    pub request_id: Option<Uuid>,
    /// The request's trace (W3C Trace Context).
    pub trace_id: Option<String>,
    /// The credential of the request.
    pub key_id: Option<Uuid>,
    /// What kind of credential that is.
    pub credential_kind: Option<CredentialKind>,
    /// The route, as `METHOD /path/{parameter}`.
    pub route: Option<String>,
    /// The run, if the object is one.
    pub run_id: Option<Uuid>,
    /// The client's address.
    pub client_address: Option<IpAddr>,
}

impl Decision {
    /// The row to store. The writer fills in its position.
    pub(super) fn into_row(self, clock: &Clock) -> Row {
        let (user, relation, object, store_id, model_id) = match self.check {
            Some(check) => (
                Some(check.user),
                Some(check.relation),
                Some(check.object),
                Some(check.store_id),
                Some(check.model_id),
            ),
            None => (None, None, None, None, None),
        };
        Row {
            id: clock.new_id(),
            tenant_id: self.tenant_id,
            slot: 0,
            position: 0,
            decided_at: clock.now(),
            outcome: self.outcome,
            actor_subject: self.actor_subject,
            action: self.action,
            resource: self.resource,
            reason: self.reason,
            stage: self.stage.text().to_owned(),
            failing_part: self.failing_part,
            check_user: user,
            check_relation: relation,
            check_object: object,
            store_id,
            model_id,
            duration_us: i64::try_from(self.duration.as_micros()).unwrap_or(i64::MAX),
            request_id: self.request_id,
            trace_id: self.trace_id,
            key_id: self.key_id,
            credential_kind: self.credential_kind,
            route: self.route,
            run_id: self.run_id,
            client_address: self.client_address.map(|address| address.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_own_text() {
        let mut texts: Vec<_> = Stage::ALL.iter().map(|stage| stage.text()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Stage::ALL.len());
    }
}
