//! Who may do what, as plain as it can be said: written from sections 2.2 to 2.5 and 5.2 to 5.4 of the
//! specification, and from nothing else.

use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// A role on a project, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Viewer,
    Editor,
    Admin,
    Owner,
}

impl Role {
    pub(super) const ALL: [Self; 4] = [Self::Viewer, Self::Editor, Self::Admin, Self::Owner];

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

/// What is done, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    Read,
    Write,
    Admin,
}

impl Action {
    pub(super) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    pub(super) fn relation(self) -> &'static str {
        match self {
            Self::Read => "can_read",
            Self::Write => "can_write",
            Self::Admin => "can_admin",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    Tenant(Uuid),
    Org(Uuid),
    Team(Uuid),
    Project(Uuid),
    /// With its project.
    Agent(Uuid, Uuid),
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tenant(id) => write!(f, "tenant:{id}"),
            Self::Org(id) => write!(f, "org:{id}"),
            Self::Team(id) => write!(f, "team:{id}"),
            Self::Project(id) => write!(f, "project:{id}"),
            Self::Agent(id, _) => write!(f, "agent:{id}"),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct User {
    pub(super) is_admin: bool,
    pub(super) is_person: bool,
    pub(super) is_active: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Project {
    pub(super) org: Option<Uuid>,
    pub(super) members: BTreeMap<Uuid, Role>,
    /// Roles with no membership behind them, as an older version left them.
    pub(super) direct: BTreeMap<Uuid, Role>,
    /// Members whose stored role is the retired `member`.
    pub(super) legacy: BTreeSet<Uuid>,
    pub(super) grants: BTreeMap<Uuid, Role>,
    pub(super) agents: BTreeSet<Uuid>,
}

/// One tenant.
#[derive(Debug, Clone)]
pub(super) struct Tenant {
    pub(super) id: Uuid,
    pub(super) users: BTreeMap<Uuid, User>,
    pub(super) orgs: BTreeMap<Uuid, BTreeSet<Uuid>>,
    /// By team: who, and whether as its admin.
    pub(super) teams: BTreeMap<Uuid, BTreeMap<Uuid, bool>>,
    pub(super) projects: BTreeMap<Uuid, Project>,
}

/// A way into a project, as the access list names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Direct(Role),
    TenantAdmin,
    OrgAdmin,
    Team(Uuid, Role),
}

impl Way {
    fn role(self) -> Role {
        match self {
            Self::Direct(role) | Self::Team(_, role) => role,
            Self::TenantAdmin | Self::OrgAdmin => Role::Admin,
        }
    }
}

impl Tenant {
    fn active(&self, user: Uuid) -> Option<&User> {
        self.users.get(&user).filter(|user| user.is_active)
    }

    /// Every way of somebody into a project. A tenant admin is an admin of every team, and therefore
    /// also comes in through team grants (4.5 rule 5).
    pub(super) fn ways(&self, user: Uuid, project: &Project) -> BTreeSet<Way> {
        let mut ways = BTreeSet::new();
        let Some(known) = self.active(user) else {
            return ways;
        };
        let direct = project.members.get(&user).or(project.direct.get(&user));
        ways.extend(direct.map(|role| Way::Direct(*role)));
        if known.is_admin {
            ways.insert(Way::TenantAdmin);
        }
        if project
            .org
            .is_some_and(|org| self.orgs[&org].contains(&user))
        {
            ways.insert(Way::OrgAdmin);
        }
        for (team, role) in &project.grants {
            if known.is_admin || self.teams[team].contains_key(&user) {
                ways.insert(Way::Team(*team, *role));
            }
        }
        ways
    }

    /// The highest role of somebody on a project.
    pub(super) fn role(&self, user: Uuid, project: &Project) -> Option<Role> {
        self.ways(user, project).into_iter().map(Way::role).max()
    }

    /// The most that somebody may do.
    pub(super) fn most(&self, user: Uuid, object: Object) -> Option<Action> {
        let known = self.active(user)?;
        match object {
            Object::Tenant(_) if known.is_admin => Some(Action::Admin),
            Object::Tenant(_) => Some(Action::Read),
            Object::Org(org) => {
                let is_admin = known.is_admin || self.orgs[&org].contains(&user);
                is_admin.then_some(Action::Admin)
            }
            Object::Team(_) if known.is_admin => Some(Action::Admin),
            Object::Team(team) => self.teams[&team].get(&user).map(|is_admin| {
                if *is_admin {
                    Action::Admin
                } else {
                    Action::Read
                }
            }),
            Object::Project(project) | Object::Agent(_, project) => {
                let role = self.role(user, &self.projects[&project])?;
                Some(match role {
                    Role::Viewer => Action::Read,
                    Role::Editor => Action::Write,
                    Role::Admin | Role::Owner => Action::Admin,
                })
            }
        }
    }

    /// The tenant as it is for a key of somebody's: for a member key nothing follows from their being its admin.
    pub(super) fn for_key(&self, user: Uuid, is_member_key: bool) -> Self {
        let mut tenant = self.clone();
        if let Some(user) = tenant.users.get_mut(&user) {
            user.is_admin &= !is_member_key;
        }
        tenant
    }

    pub(super) fn may(&self, user: Uuid, action: Action, object: Object) -> bool {
        self.most(user, object).is_some_and(|most| action <= most)
    }

    pub(super) fn objects(&self) -> Vec<Object> {
        let mut all = vec![Object::Tenant(self.id)];
        all.extend(self.orgs.keys().map(|id| Object::Org(*id)));
        all.extend(self.teams.keys().map(|id| Object::Team(*id)));
        for (id, project) in &self.projects {
            all.push(Object::Project(*id));
            all.extend(
                project
                    .agents
                    .iter()
                    .map(|agent| Object::Agent(*agent, *id)),
            );
        }
        all
    }

    /// The project would have no owner who can act if this one's role went.
    pub(super) fn is_last_owner(&self, project: Uuid, user: Uuid) -> bool {
        let project = &self.projects[&project];
        let owns = |id: &Uuid| {
            let role = project.members.get(id).or(project.direct.get(id));
            role == Some(&Role::Owner)
        };
        let others = |(id, known): (&Uuid, &User)| *id != user && known.is_active && owns(id);
        owns(&user) && !self.users.iter().any(others)
    }
}
