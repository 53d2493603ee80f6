//! Somebody who may read one project, through a team.

use super::Outcome;
use super::world::World;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) struct Reader {
    pub(crate) user_id: Uuid,
    /// Their key.
    pub(crate) token: String,
    pub(crate) project_id: Uuid,
}

impl Reader {
    /// Adds a person, a team and a project to the world's tenant.
    pub(crate) fn of(world: &World) -> Outcome<Self> {
        let post = |path: &str, body: Value| world.client.post(path, &body);
        let person = post(
            "/v1/identity/users",
            json!({"email": "reader@example.com", "displayName": "reader", "tenantRole": "member"}),
        )?;
        let code = json!({"code": person["enrolment"]["code"]});
        let key = post("/v1/identity/enrolments", code)?;
        let team = post("/v1/teams", json!({"name": "readers", "slug": "readers"}))?;
        let project = post("/v1/projects", json!({"name": "read"}))?;
        let (user_id, team_id, project_id) = (id(&person)?, id(&team)?, id(&project)?);
        post(
            &format!("/v1/teams/{team_id}/memberships"),
            json!({"userId": user_id, "role": "member"}),
        )?;
        post(
            &format!("/v1/projects/{project_id}/team-grants"),
            json!({"teamId": team_id, "role": "viewer"}),
        )?;
        Ok(Self {
            user_id,
            token: key["token"]
                .as_str()
                .ok_or("a key has no token")?
                .to_owned(),
            project_id,
        })
    }

    /// The route that they read.
    pub(crate) fn path(&self) -> String {
        format!("/v1/projects/{}", self.project_id)
    }
}

fn id(made: &Value) -> Outcome<Uuid> {
    Ok(made["id"]
        .as_str()
        .ok_or("what was made has no id")?
        .parse()?)
}
