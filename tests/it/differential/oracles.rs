//! Asks OpenFGA and the API what the plain role function answers.

use super::driver::Driver;
use super::model::{Action, Object, Role, Tenant, Way};
use crate::harness::openfga::OpenFga;
use crate::sweep::world::authorization;
use agent_runtime::authz::fga::{Client, Options, Pinned, Question, Tuple};
use agent_runtime::authz::roles;
use agent_runtime::outbound::{self, Outbound};
use agent_runtime::store::project_memberships::Role as ProjectRole;
use agent_runtime::store::team_memberships::Role as TeamRole;
use agent_runtime::store::users::TenantRole;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Where the oracles do not agree, a line each.
pub(super) fn compare(driver: &Driver) -> Vec<String> {
    let outbound = Outbound::new(outbound::Options::default()).unwrap();
    let reached = authorization();
    let client = Client::new(
        &outbound,
        &Options {
            url: OpenFga::shared().url(),
            timeout: reached.timeout,
            connections: reached.connections,
        },
    );
    let client = client.unwrap();
    let (client, driver) = (&client, &Shared::of(driver));
    // The replicas wait for their audit: a few at once take a fraction of the time.
    std::thread::scope(|scope| {
        let mut asked = Vec::new();
        for tenant in &driver.tenants {
            asked.push(scope.spawn(move || of_openfga(client, driver, tenant)));
            for replica in 0..2 {
                asked.push(scope.spawn(move || of_api(driver, tenant, replica)));
            }
        }
        asked
            .into_iter()
            .flat_map(|asked| asked.join().unwrap())
            .collect()
    })
}

/// What the threads need of the driver.
struct Shared {
    tenants: Vec<Tenant>,
    /// By replica and user: with a key that may whatever its owner may, and with a member key.
    clients: [BTreeMap<Uuid, [crate::harness::Client; 2]>; 2],
    stores: BTreeMap<Uuid, Pinned>,
}

impl Shared {
    fn of(driver: &Driver) -> Self {
        let clients = [0, 1].map(|replica| {
            let keys = driver.keys.keys();
            let of = |user: Uuid| [false, true].map(|is| driver.client(replica, user, is));
            keys.map(|user| (*user, of(*user))).collect()
        });
        let stores = "select tenant_id, store_id, model_id from authz_stores";
        let mut database = driver.replicas[0].database.client();
        let stores = database.query(stores, &[]).unwrap();
        let stores = stores.iter().map(|row| {
            let (store_id, model_id) = (row.get(1), row.get(2));
            (row.get(0), Pinned { store_id, model_id })
        });
        Self {
            tenants: driver.tenants.clone(),
            clients,
            stores: stores.collect(),
        }
    }
}

fn of_openfga(client: &Client, driver: &Shared, tenant: &Tenant) -> Vec<String> {
    let on = &driver.stores[&tenant.id];
    let mut faults = Vec::new();
    for (user, action, object) in questions(driver, tenant) {
        let name = object.to_string();
        let contextual: Vec<Tuple> = match object {
            Object::Agent(_, project) => vec![Tuple {
                user: format!("project:{project}"),
                relation: "project".into(),
                object: name.clone(),
            }],
            _ => Vec::new(),
        };
        let subject = format!("user:{user}");
        let question = Question {
            user: &subject,
            relation: action.relation(),
            object: &name,
            contextual: &contextual,
        };
        let said = client.check(on, &question).unwrap();
        let expected = tenant.may(user, action, object);
        let shown = shown_roles(tenant, user, action, object);
        if said != expected || shown != expected {
            faults.push(format!(
                "{user} {action:?} {name}: the role function says {expected}, the roles that the API shows {shown}, OpenFGA {said}"
            ));
        }
    }
    faults
}

/// Every user of both tenants with every object of this one.
fn questions(driver: &Shared, tenant: &Tenant) -> Vec<(Uuid, Action, Object)> {
    let users = driver.tenants.iter().flat_map(|tenant| tenant.users.keys());
    let mut all = Vec::new();
    for user in users {
        let is_own = tenant.users.contains_key(user);
        for object in tenant.objects() {
            // Of a stranger, one action says it.
            let actions = if is_own {
                &Action::ALL[..]
            } else {
                &Action::ALL[..1]
            };
            all.extend(actions.iter().map(|action| (*user, *action, object)));
        }
    }
    all
}

/// The same by the function whose table `GET /v1/identity/me/permissions` shows.
fn shown_roles(tenant: &Tenant, user: Uuid, action: Action, object: Object) -> bool {
    let Some(known) = tenant.users.get(&user).filter(|user| user.is_active) else {
        return false;
    };
    let mut held = vec![roles::Role::Tenant(match known.is_admin {
        true => TenantRole::Admin,
        false => TenantRole::Member,
    })];
    let kind = match object {
        Object::Tenant(_) => roles::ObjectKind::Tenant,
        Object::Org(org) => {
            held.extend(tenant.orgs[&org].get(&user).map(|_| roles::Role::OrgAdmin));
            roles::ObjectKind::Org
        }
        Object::Team(team) => {
            held.extend(tenant.teams[&team].get(&user).map(|is_admin| {
                roles::Role::Team(if *is_admin {
                    TeamRole::Admin
                } else {
                    TeamRole::Member
                })
            }));
            roles::ObjectKind::Team
        }
        Object::Project(project) | Object::Agent(_, project) => {
            for way in tenant.ways(user, &tenant.projects[&project]) {
                held.extend(match way {
                    Way::Direct(role) | Way::Team(_, role) => {
                        Some(roles::Role::Project(shown(role)))
                    }
                    Way::OrgAdmin => Some(roles::Role::OrgAdmin),
                    Way::TenantAdmin => None,
                });
            }
            match object {
                Object::Agent(..) => roles::ObjectKind::Agent,
                _ => roles::ObjectKind::Project,
            }
        }
    };
    let action = match action {
        Action::Read => roles::Action::Read,
        Action::Write => roles::Action::Write,
        Action::Admin => roles::Action::Admin,
    };
    roles::may(&held, action, kind)
}

fn shown(role: Role) -> ProjectRole {
    match role {
        Role::Viewer => ProjectRole::Viewer,
        Role::Editor => ProjectRole::Editor,
        Role::Admin => ProjectRole::Admin,
        Role::Owner => ProjectRole::Owner,
    }
}

fn of_api(driver: &Shared, tenant: &Tenant, replica: usize) -> Vec<String> {
    let mut faults = Vec::new();
    let active = tenant.users.iter().filter(|(_, user)| user.is_active);
    for (at, (user, _)) in active.enumerate() {
        // Each replica is asked of every other person, and of all lists of the one that it is asked of; the other replica
        // meanwhile by the person's member key.
        let by_member_key = at % 2 != replica;
        let client = &driver.clients[replica][user][usize::from(by_member_key)];
        let tenant = tenant.for_key(*user, by_member_key);
        let mut expect = |what: String, said: String, expected: String| {
            if said != expected {
                faults.push(format!(
                    "replica {replica}, {user}, member key {by_member_key}: {what}: the API says {said}, the role function {expected}"
                ));
            }
        };
        for object in tenant.objects() {
            for (action, method, path, body) in requests(object) {
                let answer = client.send(method, &path, body.map(|body| body.to_string()), &[]);
                let expected = if tenant.may(*user, action, object) {
                    200
                } else {
                    403
                };
                let what = format!("{method} {path}");
                expect(what, answer.status.to_string(), expected.to_string());
            }
        }
        for (list, expected) in lists(&tenant, *user) {
            let said = ids(&client.get(&list).expect(200));
            expect(list, format!("{said:?}"), format!("{expected:?}"));
        }
    }
    if replica == 0 {
        faults.extend(access_lists(driver, tenant));
    }
    faults
}

/// A request that takes an action on an object and changes nothing.
fn requests(object: Object) -> Vec<(Action, &'static str, String, Option<Value>)> {
    let get = |action, path: String| (action, "GET", path, None);
    match object {
        Object::Tenant(_) => vec![get(Action::Admin, "/v1/identity/users".into())],
        Object::Org(id) => vec![get(Action::Read, format!("/v1/orgs/{id}"))],
        Object::Team(id) => vec![
            get(Action::Read, format!("/v1/teams/{id}")),
            get(Action::Admin, format!("/v1/teams/{id}/memberships")),
        ],
        Object::Project(id) => vec![
            get(Action::Read, format!("/v1/projects/{id}")),
            get(Action::Write, format!("/v1/projects/{id}/memberships")),
            (
                Action::Admin,
                "PATCH",
                format!("/v1/projects/{id}"),
                Some(json!({"name": "project"})),
            ),
        ],
        Object::Agent(id, _) => vec![get(Action::Read, format!("/v1/agents/{id}"))],
    }
}

/// The lists, and what they hold for somebody.
fn lists(tenant: &Tenant, user: Uuid) -> Vec<(String, BTreeSet<String>)> {
    let readable = |wanted: fn(&Object) -> Option<Uuid>| {
        let objects = tenant.objects().into_iter();
        let objects = objects.filter(|object| tenant.may(user, Action::Read, *object));
        objects
            .filter_map(|object| wanted(&object))
            .map(|id| id.to_string())
            .collect::<BTreeSet<_>>()
    };
    let projects = readable(|object| match object {
        Object::Project(id) => Some(*id),
        _ => None,
    });
    let teams = readable(|object| match object {
        Object::Team(id) => Some(*id),
        _ => None,
    });
    let orgs = readable(|object| match object {
        Object::Org(id) => Some(*id),
        _ => None,
    });
    let agents = readable(|object| match object {
        Object::Agent(id, _) => Some(*id),
        _ => None,
    });
    vec![
        ("/v1/projects?limit=200".into(), projects),
        ("/v1/teams?limit=200".into(), teams),
        ("/v1/orgs?limit=200".into(), orgs),
        ("/v1/agents?limit=200".into(), agents),
    ]
}

fn ids(page: &Value) -> BTreeSet<String> {
    assert_eq!(page["hasMore"], json!(false), "{page}");
    let rows = page["data"].as_array().unwrap();
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Each project's access list: everyone with a way in, once, with every way and the highest role.
fn access_lists(driver: &Shared, tenant: &Tenant) -> Vec<String> {
    let mut faults = Vec::new();
    let is_admin = |(_, user): &(&Uuid, &super::model::User)| user.is_admin && user.is_active;
    let (admin, _) = tenant.users.iter().find(is_admin).unwrap();
    for (id, project) in &tenant.projects {
        let path = format!("/v1/projects/{id}/access?limit=200");
        let page = driver.clients[1][admin][0].get(&path).expect(200);
        let rows = page["data"].as_array().unwrap();
        let said: Vec<(String, String, BTreeSet<String>)> = rows
            .iter()
            .map(|row| {
                let ways = row["via"].as_array().unwrap().iter().map(way_text);
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                (
                    text(&row["principal"]["id"]),
                    // The retired role reads as it is stored, and ranks as what it grants.
                    text(&row["role"]).replace("member", "viewer"),
                    ways.collect(),
                )
            })
            .collect();
        let order: Vec<&str> = said.iter().map(|(_, role, _)| role.as_str()).collect();
        let rank = |role: &&&str| Role::ALL.iter().rev().position(|own| own.text() == **role);
        if !order.iter().is_sorted_by_key(|role| rank(&role)) {
            faults.push(format!("{path}: not ordered by role: {order:?}"));
        }
        let expected: BTreeMap<String, (String, BTreeSet<String>)> = tenant
            .users
            .keys()
            .filter_map(|user| {
                let role = tenant.role(*user, project)?.text().to_owned();
                let ways = tenant.ways(*user, project);
                let is_legacy = project.legacy.contains(user);
                let ways = ways.into_iter().map(|way| expected_way(way, is_legacy));
                let ways = ways.collect();
                Some((user.to_string(), (role, ways)))
            })
            .collect();
        let found: BTreeMap<_, _> = said
            .iter()
            .map(|(user, role, ways)| (user.clone(), (role.clone(), ways.clone())))
            .collect();
        if found != expected || found.len() != said.len() {
            faults.push(format!(
                "{path}: {said:?}, and the role function says {expected:?}"
            ));
        }
    }
    faults
}

fn way_text(way: &Value) -> String {
    let text = |name: &str| way[name].as_str().unwrap_or_default().to_owned();
    [text("kind"), text("teamId"), text("role")].join(" ")
}

fn expected_way(way: Way, is_legacy: bool) -> String {
    match way {
        Way::Direct(_) if is_legacy => "direct  member".to_owned(),
        Way::Direct(role) => format!("direct  {}", role.text()),
        Way::TenantAdmin => "tenant-admin  ".to_owned(),
        Way::OrgAdmin => "org-admin  ".to_owned(),
        Way::Team(team, role) => format!("team {team} {}", role.text()),
    }
}
