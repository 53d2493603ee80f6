//! Changes a world by random calls, and says of each beforehand how it is answered.

use super::model::{Action, Object, Project, Role, Tenant, User};
use crate::harness::{App, Client, Database, eventually, seeds};
use crate::sweep::world::authorization;
use agent_runtime::authn::bearer;
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Two replicas, two tenants, and what they should hold.
pub(super) struct Driver {
    pub(super) replicas: [App; 2],
    pub(super) tenants: Vec<Tenant>,
    /// The admins that the tenants came with: they stay.
    seeds: Vec<Uuid>,
    /// By user: a key with the role `admin`, and a member key.
    pub(super) keys: BTreeMap<Uuid, [String; 2]>,
    pub(super) story: Vec<String>,
    random: u64,
    made: usize,
    /// From here on calls may be refused.
    is_furnished: bool,
}

/// A call, and how it should be answered.
struct Call {
    method: &'static str,
    path: String,
    body: Option<Value>,
    /// What it takes, in the order of the checks.
    needs: Vec<(Action, Object)>,
    /// The status of who may.
    status: u16,
}

impl Call {
    fn post(path: String, body: Value, needs: (Action, Object)) -> Self {
        Self {
            method: "POST",
            path,
            body: Some(body),
            needs: vec![needs],
            status: 201,
        }
    }

    fn patch(path: String, body: Value, needs: (Action, Object)) -> Self {
        Self {
            method: "PATCH",
            status: 200,
            ..Self::post(path, body, needs)
        }
    }

    fn delete(path: String, needs: (Action, Object)) -> Self {
        Self {
            method: "DELETE",
            path,
            body: None,
            needs: vec![needs],
            status: 204,
        }
    }

    fn unless(mut self, refused: bool, status: u16) -> Self {
        if refused && self.status < 300 {
            self.status = status;
        }
        self
    }
}

impl Driver {
    pub(super) fn start(seed: u64) -> Self {
        let clock = Clock::system();
        let database = Database::migrated();
        let (own, other) = (seeds(&clock), seeds(&clock));
        let start = |database| {
            App::start_on(database, clock.clone(), own.clone(), |options| {
                options.authorization = Some(authorization());
                options.denials_per_minute = 1_000_000;
            })
        };
        let first = start(database.clone());
        agent_runtime::server::seed(&first.server().shared().store, &clock, &other).unwrap();
        let second = start(database);
        let mut driver = Self {
            replicas: [first, second],
            tenants: Vec::new(),
            seeds: vec![own.user_id, other.user_id],
            keys: BTreeMap::new(),
            story: Vec::new(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            made: 0,
            is_furnished: false,
        };
        for seeds in [own, other] {
            driver.add_keys(seeds.tenant_id, seeds.user_id);
            let admin = User {
                is_admin: true,
                is_person: true,
                is_active: true,
            };
            driver.tenants.push(Tenant {
                id: seeds.tenant_id,
                users: BTreeMap::from([(seeds.user_id, admin)]),
                orgs: BTreeMap::new(),
                teams: BTreeMap::new(),
                projects: BTreeMap::new(),
            });
        }
        driver.furnish();
        driver.is_furnished = true;
        driver
    }

    /// Something to begin with.
    fn furnish(&mut self) {
        for (tenant, people) in [(0, 4), (1, 2)] {
            for _ in 0..people {
                self.add_user(tenant, true);
            }
            self.add_user(tenant, false);
            self.add_org(tenant);
            for _ in 0..2 {
                self.add_team(tenant);
                self.add_project(tenant);
            }
            self.leave_older_rows(tenant);
        }
    }

    /// What an older version left behind: a role with no membership, and the retired role `member`.
    fn leave_older_rows(&mut self, tenant: usize) {
        let tenant_id = self.tenants[tenant].id;
        let projects: Vec<Uuid> = self.tenants[tenant].projects.keys().copied().collect();
        let mut database = self.replicas[0].database.client();
        for project in projects {
            let users = self.tenants[tenant].users.iter();
            let people: Vec<Uuid> = users
                .filter(|(id, user)| user.is_person && **id != self.seeds[tenant])
                .map(|(id, _)| *id)
                .collect();
            let role = self.pick(&Role::ALL).unwrap();
            let (direct, legacy) = (self.pick(&people).unwrap(), self.pick(&people).unwrap());
            let known = self.tenants[tenant].projects.get_mut(&project).unwrap();
            if direct == legacy
                || known.members.contains_key(&direct)
                || known.members.contains_key(&legacy)
            {
                continue;
            }
            known.direct.insert(direct, role);
            known.legacy.insert(legacy);
            known.members.insert(legacy, Role::Viewer);
            let role = role.text();
            let rows = format!(
                "insert into project_direct_roles values ('{tenant_id}', '{project}', '{direct}', '{role}');
                 insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
                   values ('{tenant_id}', '{project}', '{legacy}', 'member', now());
                 update authz_objects set desired = desired + 1 where object = 'project:{project}'"
            );
            database.batch_execute(&rows).unwrap();
            self.story.push(format!(
                "{project}: {direct} {role} without a membership, {legacy} member"
            ));
        }
        // No call's answer waits for these: the authorization server, asked directly, may not have heard of them yet.
        eventually("the reconciler to tell of the older rows", || {
            let untold = database.query_opt(
                "select from authz_objects where tenant_id = $1 and applied < desired limit 1",
                &[&tenant_id],
            );
            untold.unwrap().is_none().then_some(())
        });
    }

    /// One random call.
    pub(super) fn step(&mut self) {
        let tenant = usize::from(self.below(4) == 0);
        match self.below(100) {
            0..=2 if self.tenants[tenant].users.len() < 8 => self.add_user(tenant, true),
            3..=8 => self.change_tenant_role(tenant),
            9..=10 => self.deactivate(tenant),
            11..=12 if self.tenants[tenant].orgs.len() < 3 => self.add_org(tenant),
            13..=24 => self.change_org(tenant),
            25..=28 if self.tenants[tenant].projects.len() < 5 => self.add_project(tenant),
            29..=52 => self.change_member(tenant),
            53..=55 if self.tenants[tenant].teams.len() < 4 => self.add_team(tenant),
            56..=58 => self.delete_team(tenant),
            59..=74 => self.change_team(tenant),
            75..=96 => self.change_grant(tenant),
            _ => self.add_agent(tenant),
        }
    }

    /// A number below this one.
    fn below(&mut self, bound: usize) -> usize {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap() % bound
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() {
            return None;
        }
        let at = self.below(from.len());
        Some(from[at].clone())
    }

    fn name(&mut self, what: &str) -> String {
        self.made += 1;
        format!("{what}{}", self.made)
    }

    pub(super) fn client(&self, replica: usize, user: Uuid, by_member_key: bool) -> Client {
        let key = &self.keys[&user][usize::from(by_member_key)];
        self.replicas[replica].with_token(Some(key))
    }

    /// Sends a call as the tenant's first admin, or as somebody active in half of those after furnishing. The answer, if it was
    /// done.
    fn send(&mut self, tenant: usize, call: &Call) -> Option<(Uuid, Value)> {
        let known = &self.tenants[tenant];
        let active = known.users.iter().filter(|(_, user)| user.is_active);
        let active: Vec<Uuid> = active.map(|(id, _)| *id).collect();
        let actor = match self.is_furnished && self.below(2) == 0 {
            true => self.pick(&active).unwrap(),
            false => self.seeds[tenant],
        };
        let by_member_key = self.is_furnished && self.below(6) == 0;
        let replica = self.below(2);
        let known = self.tenants[tenant].for_key(actor, by_member_key);
        let may = call
            .needs
            .iter()
            .all(|(action, object)| known.may(actor, *action, *object));
        let status = if may { call.status } else { 403 };
        let body = call.body.as_ref().map(Value::to_string);
        let client = self.client(replica, actor, by_member_key);
        let answer = client.send(call.method, &call.path, body.clone(), &[]);
        self.story.push(format!(
            "replica {replica}, {actor}, member key {by_member_key}: {} {} {} -> {}",
            call.method,
            call.path,
            body.unwrap_or_default(),
            answer.status
        ));
        assert_eq!(
            answer.status,
            status,
            "{}\nThe calls so far:\n{}",
            answer.text,
            self.story.join("\n")
        );
        (status < 300).then(|| (actor, answer.json()))
    }

    fn add_user(&mut self, tenant: usize, is_person: bool) {
        let id = self.tenants[tenant].id;
        let name = self.name("user");
        let needs = (Action::Admin, Object::Tenant(id));
        let call = if is_person {
            let email = format!("{name}@example.test");
            let body = json!({"email": email, "displayName": name, "tenantRole": "member"});
            Call::post("/v1/identity/users".into(), body, needs)
        } else {
            Call::post("/v1/service-accounts".into(), json!({"name": name}), needs)
        };
        let Some((_, made)) = self.send(tenant, &call) else {
            return;
        };
        let user = id_of(&made);
        self.tenants[tenant].users.insert(
            user,
            User {
                is_admin: false,
                is_person,
                is_active: true,
            },
        );
        self.add_keys(id, user);
    }

    fn add_keys(&mut self, tenant_id: Uuid, user: Uuid) {
        let keys = ["admin", "member"].map(|role| self.key(tenant_id, user, role));
        self.keys.insert(user, keys);
    }

    fn key(&self, tenant_id: Uuid, user: Uuid, role: &str) -> String {
        let token = bearer::mint().unwrap();
        let digest = bearer::digest(token.expose()).to_vec();
        let insert =
            "insert into tokens (tenant_id, token_id, user_id, name, digest, last_four, created_at, role)
             values ($1, $2, $3, 'key', $4, 'last', now(), $5)";
        let mut database = self.replicas[0].database.client();
        let key_id = self.replicas[0].clock.new_id();
        database
            .execute(insert, &[&tenant_id, &key_id, &user, &digest, &role])
            .unwrap();
        token.expose().to_owned()
    }

    /// Somebody of the tenant but its first admin.
    fn somebody(&mut self, tenant: usize, fits: impl Fn(&User) -> bool) -> Option<Uuid> {
        let seed = self.seeds[tenant];
        let users = self.tenants[tenant].users.iter();
        let users: Vec<Uuid> = users
            .filter(|(id, user)| **id != seed && fits(user))
            .map(|(id, _)| *id)
            .collect();
        self.pick(&users)
    }

    fn change_tenant_role(&mut self, tenant: usize) {
        let Some(user) = self.somebody(tenant, |user| user.is_person && user.is_active) else {
            return;
        };
        let is_admin = self.below(3) == 0;
        let role = if is_admin { "admin" } else { "member" };
        let needs = (Action::Admin, Object::Tenant(self.tenants[tenant].id));
        let path = format!("/v1/identity/users/{user}");
        let call = Call::patch(path, json!({"tenantRole": role}), needs);
        if self.send(tenant, &call).is_some() {
            self.tenants[tenant].users.get_mut(&user).unwrap().is_admin = is_admin;
        }
    }

    fn deactivate(&mut self, tenant: usize) {
        let Some(user) = self.somebody(tenant, |user| user.is_active) else {
            return;
        };
        let is_person = self.tenants[tenant].users[&user].is_person;
        let path = match is_person {
            true => format!("/v1/identity/users/{user}/deactivate"),
            false => format!("/v1/service-accounts/{user}/deactivate"),
        };
        let needs = (Action::Admin, Object::Tenant(self.tenants[tenant].id));
        let call = Call {
            method: "POST",
            path,
            body: None,
            needs: vec![needs],
            status: 200,
        };
        if self.send(tenant, &call).is_some() {
            self.tenants[tenant].users.get_mut(&user).unwrap().is_active = false;
        }
    }

    fn add_org(&mut self, tenant: usize) {
        let needs = (Action::Admin, Object::Tenant(self.tenants[tenant].id));
        let name = self.name("org");
        let call = Call::post("/v1/orgs".into(), json!({"name": name}), needs);
        if let Some((_, made)) = self.send(tenant, &call) {
            self.tenants[tenant]
                .orgs
                .insert(id_of(&made), BTreeSet::new());
        }
    }

    fn change_org(&mut self, tenant: usize) {
        let orgs: Vec<Uuid> = self.tenants[tenant].orgs.keys().copied().collect();
        let person = self.somebody(tenant, |user| user.is_person && user.is_active);
        let (Some(org), Some(person)) = (self.pick(&orgs), person) else {
            return;
        };
        let needs = (Action::Admin, Object::Org(org));
        let path = format!("/v1/orgs/{org}/admins");
        let is_admin = self.tenants[tenant].orgs[&org].contains(&person);
        if is_admin && self.below(2) == 0 {
            let call = Call::delete(format!("{path}/{person}"), needs);
            if self.send(tenant, &call).is_some() {
                self.tenants[tenant]
                    .orgs
                    .get_mut(&org)
                    .unwrap()
                    .remove(&person);
            }
            return;
        }
        let call = Call::post(path, json!({"userId": person}), needs);
        if self.send(tenant, &call).is_some() {
            self.tenants[tenant]
                .orgs
                .get_mut(&org)
                .unwrap()
                .insert(person);
        }
    }

    fn add_project(&mut self, tenant: usize) {
        let orgs: Vec<Uuid> = self.tenants[tenant].orgs.keys().copied().collect();
        let org = self.pick(&orgs).filter(|_| self.below(2) == 0);
        let (path, needs) = match org {
            Some(org) => (
                format!("/v1/orgs/{org}/projects"),
                (Action::Admin, Object::Org(org)),
            ),
            None => {
                let id = self.tenants[tenant].id;
                (
                    "/v1/projects".to_owned(),
                    (Action::Write, Object::Tenant(id)),
                )
            }
        };
        let name = self.name("project");
        let call = Call::post(path, json!({"name": name}), needs);
        if let Some((actor, made)) = self.send(tenant, &call) {
            // Creating a project writes its creator's membership; owner is for persons only.
            let role = match self.tenants[tenant].users[&actor].is_person {
                true => Role::Owner,
                false => Role::Admin,
            };
            let project = Project {
                org,
                members: BTreeMap::from([(actor, role)]),
                ..Project::default()
            };
            self.tenants[tenant].projects.insert(id_of(&made), project);
        }
    }

    fn project(&mut self, tenant: usize) -> Option<Uuid> {
        let projects: Vec<Uuid> = self.tenants[tenant].projects.keys().copied().collect();
        self.pick(&projects)
    }

    fn change_member(&mut self, tenant: usize) {
        let (Some(project), Some(user)) = (self.project(tenant), self.somebody(tenant, |_| true))
        else {
            return;
        };
        let known = self.tenants[tenant].users[&user].clone();
        let roles = if known.is_person {
            &Role::ALL[..]
        } else {
            &Role::ALL[..3]
        };
        let role = self.pick(roles).unwrap();
        let in_project = &self.tenants[tenant].projects[&project];
        let held = in_project.members.get(&user).copied();
        // The retired role is another one than viewer, which grants the same.
        let is_legacy = in_project.legacy.contains(&user);
        let is_left = held.is_none() && in_project.direct.contains_key(&user);
        let is_last_owner = self.tenants[tenant].is_last_owner(project, user);
        let needs = (Action::Admin, Object::Project(project));
        let all = format!("/v1/projects/{project}/memberships");
        let one = format!("{all}/{user}");
        match (self.below(3), held) {
            (0, _) | (_, None) => {
                let body = json!({"userId": user, "role": role.text()});
                let call = Call::post(all, body, needs)
                    .unless(!known.is_active, 409)
                    .unless(held.is_some_and(|held| held != role || is_legacy), 409)
                    .unless(is_left && is_last_owner && role != Role::Owner, 409);
                if self.send(tenant, &call).is_some() {
                    self.give(tenant, project, user, Some(role));
                }
            }
            (1, Some(_)) => {
                let demoted = is_last_owner && role != Role::Owner;
                let call =
                    Call::patch(one, json!({"role": role.text()}), needs).unless(demoted, 409);
                if self.send(tenant, &call).is_some() {
                    self.give(tenant, project, user, Some(role));
                }
            }
            _ => {
                let call = Call::delete(one, needs).unless(is_last_owner, 409);
                if self.send(tenant, &call).is_some() {
                    self.give(tenant, project, user, None);
                }
            }
        }
    }

    /// A membership, or none; a role that was left behind goes with either.
    fn give(&mut self, tenant: usize, project: Uuid, user: Uuid, role: Option<Role>) {
        let project = self.tenants[tenant].projects.get_mut(&project).unwrap();
        project.direct.remove(&user);
        project.legacy.remove(&user);
        match role {
            Some(role) => project.members.insert(user, role),
            None => project.members.remove(&user),
        };
    }

    fn add_team(&mut self, tenant: usize) {
        let needs = (Action::Admin, Object::Tenant(self.tenants[tenant].id));
        let name = self.name("team");
        let call = Call::post(
            "/v1/teams".into(),
            json!({"name": name, "slug": name}),
            needs,
        );
        if let Some((actor, made)) = self.send(tenant, &call) {
            // Who makes a team becomes its admin (4.4).
            let members = BTreeMap::from([(actor, true)]);
            self.tenants[tenant].teams.insert(id_of(&made), members);
        }
    }

    fn team(&mut self, tenant: usize) -> Option<Uuid> {
        let teams: Vec<Uuid> = self.tenants[tenant].teams.keys().copied().collect();
        self.pick(&teams)
    }

    fn delete_team(&mut self, tenant: usize) {
        let Some(team) = self.team(tenant) else {
            return;
        };
        let call = Call::delete(
            format!("/v1/teams/{team}"),
            (Action::Admin, Object::Team(team)),
        );
        if self.send(tenant, &call).is_some() {
            self.tenants[tenant].teams.remove(&team);
            for project in self.tenants[tenant].projects.values_mut() {
                project.grants.remove(&team);
            }
        }
    }

    fn change_team(&mut self, tenant: usize) {
        let (Some(team), Some(user)) = (self.team(tenant), self.somebody(tenant, |_| true)) else {
            return;
        };
        let is_active = self.tenants[tenant].users[&user].is_active;
        let held = self.tenants[tenant].teams[&team].get(&user).copied();
        let is_admin = self.below(3) == 0;
        let role = if is_admin { "admin" } else { "member" };
        let needs = (Action::Admin, Object::Team(team));
        let all = format!("/v1/teams/{team}/memberships");
        let one = format!("{all}/{user}");
        let (call, after) = match (self.below(3), held) {
            (0, _) | (_, None) => {
                let body = json!({"userId": user, "role": role});
                let call = Call::post(all, body, needs)
                    .unless(!is_active, 409)
                    .unless(held.is_some_and(|held| held != is_admin), 409);
                (call, Some(is_admin))
            }
            (1, Some(_)) => (
                Call::patch(one, json!({"role": role}), needs),
                Some(is_admin),
            ),
            _ => (Call::delete(one, needs), None),
        };
        if self.send(tenant, &call).is_some() {
            let members = self.tenants[tenant].teams.get_mut(&team).unwrap();
            match after {
                Some(is_admin) => members.insert(user, is_admin),
                None => members.remove(&user),
            };
        }
    }

    fn change_grant(&mut self, tenant: usize) {
        let (Some(project), Some(team)) = (self.project(tenant), self.team(tenant)) else {
            return;
        };
        let role = self.pick(&Role::ALL[..3]).unwrap();
        let held = self.tenants[tenant].projects[&project]
            .grants
            .get(&team)
            .copied();
        let needs = (Action::Admin, Object::Project(project));
        let all = format!("/v1/projects/{project}/team-grants");
        let one = format!("{all}/{team}");
        let (call, after) = match (self.below(3), held) {
            (0, _) | (_, None) => {
                let body = json!({"teamId": team, "role": role.text()});
                let mut call =
                    Call::post(all, body, needs).unless(held.is_some_and(|held| held != role), 409);
                call.needs.push((Action::Read, Object::Team(team)));
                (call, Some(role))
            }
            (1, Some(_)) => {
                let call = Call::patch(one, json!({"role": role.text()}), needs);
                (call, Some(role))
            }
            _ => (Call::delete(one, needs), None),
        };
        if self.send(tenant, &call).is_some() {
            let projects = &mut self.tenants[tenant].projects;
            let grants = &mut projects.get_mut(&project).unwrap().grants;
            match after {
                Some(role) => grants.insert(team, role),
                None => grants.remove(&team),
            };
        }
    }

    fn add_agent(&mut self, tenant: usize) {
        let Some(project) = self.project(tenant) else {
            return;
        };
        let name = self.name("agent");
        let needs = (Action::Admin, Object::Project(project));
        let body = json!({"projectId": project, "name": name});
        let call = Call::post("/v1/agents".into(), body, needs);
        if let Some((_, made)) = self.send(tenant, &call) {
            let projects = &mut self.tenants[tenant].projects;
            projects
                .get_mut(&project)
                .unwrap()
                .agents
                .insert(id_of(&made));
        }
    }
}

#[track_caller]
fn id_of(made: &Value) -> Uuid {
    let id = made["id"].as_str();
    id.unwrap_or_else(|| panic!("{made}")).parse().unwrap()
}
