//! What is recorded of a decision. Specification sections 2.5 and 5.6.

use crate::ids::Clock;
pub use crate::store::audit::Outcome;
use crate::store::audit::Row;
use std::net::IpAddr;
use std::time::Duration;
use uuid::Uuid;

/// Which check decided: the authorization model, or one of the checks before it whose refusals are
/// recorded (section 5.6 rule 3). What is not in this list is never recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The authorization model.
    Model,
    /// A member's key asks for what takes a tenant admin.
    KeyRole,
    /// The key is limited to another project, or to one where the tenant is to be changed.
    KeyProject,
    /// The key lacks the capability that the route needs.
    KeyCapability,
    /// A key that is limited to a project mints one for another.
    KeyProjectMismatch,
    /// A key is to get a capability that its maker lacks.
    CapabilityNotHeld,
    /// The caller is no reviewer.
    NotReviewer,
    /// The reviewer may not judge as this class.
    JudgeClassNotAllowed,
    /// Identity providers are the operator's.
    IdentityProvidersOperatorManaged,
    /// This sign-in by token is not allowed.
    TokenSignInNotAllowed,
    /// Sign-in by token is off.
    TokenSignInOff,
    /// The deployment runs no commands of a tenant.
    HostAccessDenied,
    /// A code for enrolling was taken. One that is refused belongs to nobody, and is not recorded.
    Enrolment,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 13] = [
        Self::Model,
        Self::KeyRole,
        Self::KeyProject,
        Self::KeyCapability,
        Self::KeyProjectMismatch,
        Self::CapabilityNotHeld,
        Self::NotReviewer,
        Self::JudgeClassNotAllowed,
        Self::IdentityProvidersOperatorManaged,
        Self::TokenSignInNotAllowed,
        Self::TokenSignInOff,
        Self::HostAccessDenied,
        Self::Enrolment,
    ];

    /// As it is recorded.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::KeyRole => "key-role",
            Self::KeyProject => "key-project",
            Self::KeyCapability => "key-capability",
            Self::KeyProjectMismatch => "key-project-mismatch",
            Self::CapabilityNotHeld => "capability-not-held",
            Self::NotReviewer => "not-reviewer",
            Self::JudgeClassNotAllowed => "judge-class-not-allowed",
            Self::IdentityProvidersOperatorManaged => "identity-providers-operator-managed",
            Self::TokenSignInNotAllowed => "token-sign-in-not-allowed",
            Self::TokenSignInOff => "token-sign-in-off",
            Self::HostAccessDenied => "host-access-denied",
            Self::Enrolment => "enrolment",
        }
    }
}

/// What was asked of the authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Who, such as `user:<id>`.
    pub user: String,
    /// What, such as `can_read`.
    pub relation: String,
    /// On what, such as `project:<id>`.
    pub object: String,
    /// In which of its stores.
    pub store_id: String,
    /// Under which model.
    pub model_id: String,
}

/// A decision to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whose.
    pub tenant_id: Uuid,
    /// Who, as `user:<id>`.
    pub actor_subject: String,
    /// What was asked for: `read`, `write` or `admin`.
    pub action: String,
    /// On what, as `<kind>:<id>`.
    pub resource: String,
    /// Allowed or denied.
    pub outcome: Outcome,
    /// Why, or which check refused.
    pub reason: String,
    /// Which check decided.
    pub stage: Stage,
    /// The part of it that refused.
    pub failing_part: Option<String>,
    /// What was asked of the authorization server, if it was.
    pub check: Option<Check>,
    /// How long the decision took.
    pub duration: Duration,
    /// The request.
    pub request_id: Option<Uuid>,
    /// Its trace (W3C Trace Context).
    pub trace_id: Option<String>,
    /// The key that it came with.
    pub key_id: Option<Uuid>,
    /// The route, as `METHOD /path/{parameter}`.
    pub route: Option<String>,
    /// The run that it is about.
    pub run_id: Option<Uuid>,
    /// Where it came from.
    pub client_address: Option<IpAddr>,
}

impl Decision {
    /// As it is kept; its writer adds its place.
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
