//! Authorization on: people with keys, what a server says that they may do, and what Postgres and
//! the program's own commands say of it.

use crate::server::{Answer, Client, ServerConfig};
use crate::world::{config, id_of};
use agent_runtime::ids::Clock;
use serde_json::json;
use uuid::Uuid;

/// How servers are started that ask this authorization server.
pub(crate) fn authorized(database_url: String, authorization_url: &str) -> ServerConfig {
    config(database_url)
        .with("SVC_AUTHZ_API_URL", authorization_url)
        .with("SVC_AUTHZ_TIMEOUT_MS", 10_000)
        .with("SVC_MAX_DENIALS_PER_MINUTE", 1_000_000)
}

/// A member of the tenant, with a key.
pub(crate) struct Person {
    pub(crate) id: Uuid,
    token: String,
}

impl Person {
    /// Adds one through the API of a ready server.
    pub(crate) fn add(client: &Client) -> Self {
        let email = format!("{}@example.test", Clock::system().new_id().simple());
        let body = json!({"email": email, "displayName": "Somebody", "tenantRole": "member"});
        let added = client.made("/v1/identity/users", &body, 201);
        let code = json!({"code": added["enrolment"]["code"]});
        let key = client.made("/v1/identity/enrolments", &code, 201);
        Self {
            id: id_of(&added),
            token: key["token"].as_str().unwrap().to_owned(),
        }
    }

    /// Their client of a server.
    pub(crate) fn at(&self, config: &ServerConfig) -> Client {
        Client::new(config.port, &self.token)
    }

    /// What a server says that they may do to a project: read and write. None: it cannot say just
    /// now.
    #[track_caller]
    pub(crate) fn may(&self, config: &ServerConfig, project_id: Uuid) -> Option<[bool; 2]> {
        let client = self.at(config);
        let reads = is_allowed(&client.get(&format!("/v1/projects/{project_id}")).unwrap())?;
        let path = format!("/v1/projects/{project_id}/memberships");
        let writes = is_allowed(&client.get(&path).unwrap())?;
        Some([reads, writes])
    }
}

/// What was decided. None: nothing, for the authorization server is away or slow.
#[track_caller]
pub(crate) fn is_allowed(answer: &Answer) -> Option<bool> {
    match answer.status {
        200 => Some(true),
        403 => Some(false),
        500 | 503 => {
            assert!(is_undecided(answer), "{answer:?}");
            None
        }
        _ => panic!("{answer:?}"),
    }
}

/// Whether it is one of the answers to what could not be asked.
pub(crate) fn is_undecided(answer: &Answer) -> bool {
    let message = answer.body["error"]["message"].as_str().unwrap_or_default();
    match answer.status {
        500 => message.starts_with("FGA Error: "),
        status => status == 503,
    }
}

pub(crate) fn project(client: &Client) -> Uuid {
    id_of(&client.made("/v1/projects", &json!({"name": "project"}), 201))
}

/// A team that may edit the project.
pub(crate) fn team(client: &Client, project_id: Uuid) -> Uuid {
    let slug = Clock::system().new_id().to_string();
    let team = id_of(&client.made("/v1/teams", &json!({"name": "Team", "slug": slug}), 201));
    let path = format!("/v1/projects/{project_id}/team-grants");
    client.made(&path, &json!({"teamId": team, "role": "editor"}), 201);
    team
}

/// What Postgres says that somebody may do to a project: read and write.
pub(crate) fn wanted(sql: &mut postgres::Client, project_id: Uuid, user_id: Uuid) -> [bool; 2] {
    let row = sql
        .query_one(
            "with roles as (
               select role from project_memberships where project_id = $1 and user_id = $2
               union all
               select g.role from team_grants g join team_memberships m using (tenant_id, team_id)
               where g.project_id = $1 and m.user_id = $2
             )
             select count(*) > 0, count(*) filter (where role in ('editor', 'admin', 'owner')) > 0
             from roles",
            &[&project_id, &user_id],
        )
        .unwrap();
    [row.get(0), row.get(1)]
}

/// Holds a server's answer against Postgres, once both stand still and the server can say.
#[track_caller]
pub(crate) fn check_agrees(
    sql: &mut postgres::Client,
    config: &ServerConfig,
    project_id: Uuid,
    person: &Person,
) {
    let mut ask = || {
        let before = wanted(sql, project_id, person.id);
        let said = person.may(config, project_id)?;
        let after = wanted(sql, project_id, person.id);
        (before == after).then_some((said, after))
    };
    let (said, wanted) = crate::eventually("an answer", &mut ask);
    assert_eq!(said, wanted, "see {}", config.log.display());
}

/// `authz verify`: the authorization server has what Postgres asks for.
#[track_caller]
pub(crate) fn verify_permissions(config: &ServerConfig) {
    verify(config, &["authz", "verify"]);
}

/// `audit verify`: the record is complete.
#[track_caller]
pub(crate) fn verify_audit(config: &ServerConfig) {
    verify(config, &["audit", "verify"]);
}

#[track_caller]
fn verify(config: &ServerConfig, arguments: &[&str]) {
    let output = config.run(arguments);
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {said}{complained}"
    );
}
