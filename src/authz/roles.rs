//! What each role allows, as a pure function. The console shows it (section 4.2), and tests compare
//! the authorization server's answers with it.
//!
//! A test holds it equal to `model.fga`. Not here: who has which role.

use crate::store::project_memberships::Role as ProjectRole;
use crate::store::team_memberships::Role as TeamRole;
use crate::store::users::TenantRole;
use schemars::JsonSchema;
use serde::Serialize;

/// What one may do, each including the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AccessAction")]
pub enum Action {
    /// See it.
    Read,
    /// Work in it.
    Write,
    /// Decide about it.
    Admin,
}

impl Action {
    /// Every action, the least first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// The one that a proof's action is called (`proof::Action::NAME`). What is called otherwise
    /// takes the most.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "read" => Self::Read,
            "write" => Self::Write,
            _ => Self::Admin,
        }
    }

    /// The relation by which the model says it.
    pub const fn relation(self) -> &'static str {
        match self {
            Self::Read => "can_read",
            Self::Write => "can_write",
            Self::Admin => "can_admin",
        }
    }
}

/// A kind of object that access is checked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// The tenant, and what belongs to it as a whole.
    Tenant,
    /// An org.
    Org,
    /// A team.
    Team,
    /// A project.
    Project,
    /// An agent of a project.
    Agent,
    /// A flow of a project.
    Flow,
    /// A tool of a project.
    Tool,
    /// A conversation with an agent.
    Conversation,
    /// A run.
    Run,
}

impl ObjectKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Tenant,
        Self::Org,
        Self::Team,
        Self::Project,
        Self::Agent,
        Self::Flow,
        Self::Tool,
        Self::Conversation,
        Self::Run,
    ];

    /// Its type in the model.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Org => "org",
            Self::Team => "team",
            Self::Project => "project",
            Self::Agent => "agent",
            Self::Flow => "flow",
            Self::Tool => "tool",
            Self::Conversation => "conversation",
            Self::Run => "run",
        }
    }

    /// The one of a type in the model.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.text() == name)
    }

    /// What roles on it are roles in, as [`Role::texts`] names it.
    const fn scope(self) -> &'static str {
        match self {
            Self::Tenant | Self::Org | Self::Team => self.text(),
            _ => "project",
        }
    }

    /// It is a project, or lies in one.
    pub const fn is_of_project(self) -> bool {
        !matches!(self, Self::Tenant | Self::Org | Self::Team)
    }
}

/// One role of somebody's, on what concerns the object that is asked about: its tenant, its org, the
/// team itself, its project. A project role that came through a team is one like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// In the tenant.
    Tenant(TenantRole),
    /// Admin of the org.
    OrgAdmin,
    /// In the team.
    Team(TeamRole),
    /// On the project.
    Project(ProjectRole),
}

impl Role {
    /// Every role that is given, the highest of each scope first.
    pub const ALL: [Self; 9] = [
        Self::Tenant(TenantRole::Admin),
        Self::Tenant(TenantRole::Member),
        Self::OrgAdmin,
        Self::Team(TeamRole::Admin),
        Self::Team(TeamRole::Member),
        Self::Project(ProjectRole::Owner),
        Self::Project(ProjectRole::Admin),
        Self::Project(ProjectRole::Editor),
        Self::Project(ProjectRole::Viewer),
    ];

    /// The role of this name on an object of this kind.
    pub(super) fn named(kind: ObjectKind, name: &str) -> Option<Self> {
        let wanted = (kind.scope(), name);
        Self::ALL.into_iter().find(|role| role.texts() == wanted)
    }

    /// What it is a role in, and its name there.
    pub const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Tenant(role) => ("tenant", role.text()),
            Self::OrgAdmin => ("org", "admin"),
            Self::Team(TeamRole::Admin) => ("team", "admin"),
            Self::Team(TeamRole::Member) => ("team", "member"),
            Self::Project(role) => ("project", role.text()),
        }
    }

    /// The most that the role allows on an object of this kind.
    pub const fn most(self, kind: ObjectKind) -> Option<Action> {
        match (self, kind) {
            (Self::Tenant(TenantRole::Admin), _)
            | (Self::OrgAdmin, ObjectKind::Org)
            | (Self::Team(TeamRole::Admin), ObjectKind::Team) => Some(Action::Admin),
            (Self::Tenant(TenantRole::Member), ObjectKind::Tenant)
            | (Self::Team(TeamRole::Member), ObjectKind::Team) => Some(Action::Read),
            (Self::OrgAdmin, kind) if kind.is_of_project() => Some(Action::Admin),
            (Self::Project(role), kind) if kind.is_of_project() => Some(match role {
                ProjectRole::Owner | ProjectRole::Admin => Action::Admin,
                ProjectRole::Editor => Action::Write,
                ProjectRole::Viewer | ProjectRole::Member => Action::Read,
            }),
            _ => None,
        }
    }
}

/// Whether somebody with these roles may do the action to an object of this kind.
pub fn may(roles: &[Role], action: Action, kind: ObjectKind) -> bool {
    roles
        .iter()
        .any(|role| role.most(kind).is_some_and(|most| action <= most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// One line a role: what it allows on tenant, org, team, project and what lies in it.
    const TABLE: &str = "
        tenant admin    admin admin admin admin
        tenant member   read  -     -     -
        org    admin    -     admin -     admin
        team   admin    -     -     admin -
        team   member   -     -     read  -
        project owner   -     -     -     admin
        project admin   -     -     -     admin
        project editor  -     -     -     write
        project viewer  -     -     -     read
    ";

    #[test]
    fn each_role_allows_what_the_table_says() {
        let lines = TABLE.lines().map(str::trim).filter(|line| !line.is_empty());
        for (line, role) in lines.zip(Role::ALL) {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!((words[0], words[1]), role.texts());
            for kind in ObjectKind::ALL {
                let column = ObjectKind::ALL[..4].iter().position(|own| *own == kind);
                let most = match words[2 + column.unwrap_or(3)] {
                    "read" => 1,
                    "write" => 2,
                    "admin" => 3,
                    _ => 0,
                };
                for (at, action) in Action::ALL.into_iter().enumerate() {
                    let allowed = may(&[role], action, kind);
                    assert_eq!(allowed, at < most, "{line}: {action:?} {kind:?}");
                }
            }
        }
    }

    #[test]
    fn roles_add_up_and_none_allows_nothing() {
        let both = [
            Role::Tenant(TenantRole::Member),
            Role::Project(ProjectRole::Editor),
        ];
        assert!(may(&both, Action::Read, ObjectKind::Tenant));
        assert!(may(&both, Action::Write, ObjectKind::Run));
        assert!(!may(&both, Action::Admin, ObjectKind::Run));
        assert!(!may(&[], Action::Read, ObjectKind::Tenant));
    }

    /// Whether the model gives the relation to an object, of which there is one of each type, by
    /// these tuples: type, relation, and whom it names.
    fn holds(model: &Value, tuples: &[(&str, &str, &str)], kind: &str, relation: &str) -> bool {
        let types = model["type_definitions"].as_array().unwrap();
        let own = types.iter().find(|own| own["type"] == kind).unwrap();
        let rewrite = &own["relations"][relation];
        assert!(rewrite.is_object(), "{kind} has no {relation}");
        let text = |value: &Value| value["relation"].as_str().unwrap().to_owned();
        let one = std::slice::from_ref(rewrite);
        let terms = rewrite["union"]["child"].as_array().map_or(one, |all| all);
        terms.iter().any(|term| {
            if term["this"].is_object() {
                return tuples.contains(&(kind, relation, "user"));
            }
            if term["computedUserset"].is_object() {
                return holds(model, tuples, kind, &text(&term["computedUserset"]));
            }
            let by = text(&term["tupleToUserset"]["tupleset"]);
            let further = text(&term["tupleToUserset"]["computedUserset"]);
            let named = tuples
                .iter()
                .filter(|tuple| (tuple.0, tuple.1) == (kind, &by));
            named
                .into_iter()
                .any(|tuple| holds(model, tuples, tuple.2, &further))
        })
    }

    #[test]
    fn the_model_says_the_same() {
        let model = crate::authz::model::json();
        let mut places = vec![
            ("org", "tenant", "tenant"),
            ("team", "tenant", "tenant"),
            ("project", "tenant", "tenant"),
            ("project", "org", "org"),
        ];
        let inside = ["agent", "flow", "tool", "conversation", "run"];
        places.extend(inside.map(|kind| (kind, "project", "project")));
        let types = model["type_definitions"].as_array().unwrap();
        assert_eq!(types.len(), ObjectKind::ALL.len() + 1, "and `user`");
        for first in Role::ALL {
            for second in Role::ALL {
                let mut tuples = places.clone();
                for role in [first, second] {
                    let (scope, name) = role.texts();
                    tuples.push((scope, name, "user"));
                }
                for kind in ObjectKind::ALL {
                    for action in Action::ALL {
                        assert_eq!(
                            may(&[first, second], action, kind),
                            holds(&model, &tuples, kind.text(), action.relation()),
                            "{first:?}, {second:?}: {action:?} {kind:?}"
                        );
                    }
                }
            }
        }
    }
}
