//! A tenant with people of every role, made past the API.

use crate::harness::openfga::OpenFga;
use crate::harness::{Answer, App, Client, NewTool};
use agent_runtime::authn::bearer;
use agent_runtime::authz::desired_tuples::{self, Object};
use agent_runtime::authz::permissions::{self, Model};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::secret::Secret;
use agent_runtime::server::Options;
use std::time::Duration;
use uuid::Uuid;

/// A server with authorization on, and what its tenant has.
pub(super) struct World {
    pub(super) app: App,
    pub(super) provider: Provider,
    pub(super) model_provider: Uuid,
    pub(super) project: Uuid,
    pub(super) tool: Uuid,
    pub(super) agent: Uuid,
    pub(super) conversation: Uuid,
    pub(super) run: String,
}

/// Somebody with a key.
pub(super) struct Person {
    pub(super) user_id: Uuid,
    pub(super) key_id: Uuid,
    pub(super) token: Secret,
    pub(super) client: Client,
}

/// What a key may do at most.
pub(super) struct Key {
    pub(super) role: &'static str,
    pub(super) capabilities: Vec<&'static str>,
    pub(super) project_id: Option<Uuid>,
}

impl Key {
    pub(super) fn whole() -> Self {
        Self {
            role: "admin",
            capabilities: vec!["access:write", "env:write", "keys:write", "secrets:write"],
            project_id: None,
        }
    }
}

/// A decision as it is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) actor: String,
    pub(super) action: String,
    pub(super) resource: String,
    pub(super) outcome: String,
    pub(super) stage: String,
    pub(super) reason: String,
    pub(super) failing_part: Option<String>,
    pub(super) check: Option<[String; 3]>,
    pub(super) key_id: Option<Uuid>,
    pub(super) route: Option<String>,
    pub(super) run_id: Option<Uuid>,
    pub(super) client_address: Option<String>,
    pub(super) trace_id: Option<String>,
}

const COLUMNS: &str = "actor_subject, action, resource, outcome, stage, reason, failing_part, check_user, \
     check_relation, check_object, key_id, route, run_id, client_address, trace_id";

/// Turns authorization on.
pub(super) fn authorized(options: &mut Options, url: &str) {
    options.authorization = Some(permissions::Options {
        url: url.to_owned(),
        timeout: Duration::from_secs(25),
        connections: 16,
        model: Model::own(),
    });
}

impl World {
    pub(super) fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub(super) fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        Self::start_at(&OpenFga::shared().url(), change)
    }

    pub(super) fn start_at(url: &str, change: impl FnOnce(&mut Options)) -> Self {
        let app = App::start_with(|options| {
            authorized(options, url);
            change(options);
        });
        let provider = Provider::start(Script {
            queue: Vec::new(),
            then: Step::text("said"),
        });
        let provider = provider.unwrap();
        let project = project(&app);
        let maker = app.maker();
        let model_provider = maker.provider(&provider.base_url(), None);
        let tool = maker.tool(project, &NewTool::new("tool", &provider.base_url()));
        let agent = maker.agent_of(project, &provider.base_url(), |_| {});
        let conversation = maker.conversation(agent, None);
        let run = app.start_turn(agent, "say");
        app.finished(&run);
        Self {
            app,
            provider,
            model_provider,
            project,
            tool,
            agent,
            conversation,
            run,
        }
    }

    pub(super) fn tenant_id(&self) -> Uuid {
        self.app.seeds.tenant_id
    }

    /// Another project of the tenant.
    pub(super) fn another_project(&self) -> Uuid {
        project(&self.app)
    }

    /// Somebody in the tenant with a key of their own.
    pub(super) fn person(&self, tenant_role: &str) -> Person {
        self.user("person", tenant_role)
    }

    pub(super) fn service_account(&self) -> Person {
        self.user("service-account", "member")
    }

    fn user(&self, kind: &str, tenant_role: &str) -> Person {
        let user_id = self.app.clock.new_id();
        self.write(
            "insert into users (tenant_id, user_id, display_name, created_at, kind, tenant_role)
             values ($1, $2, 'somebody', now(), $3, $4)",
            &[&self.tenant_id(), &user_id, &kind, &tenant_role],
        );
        self.apply(&[Object::Tenant(self.tenant_id())]);
        self.key(user_id, &Key::whole())
    }

    /// A key of a user's.
    pub(super) fn key(&self, user_id: Uuid, key: &Key) -> Person {
        let (token, key_id) = (bearer::mint().unwrap(), self.app.clock.new_id());
        self.write(
            "insert into tokens (tenant_id, token_id, user_id, name, digest, last_four, created_at, role,
               capabilities, project_id)
             values ($1, $2, $3, 'key', $4, $5, now(), $6, $7, $8)",
            &[
                &self.tenant_id(),
                &key_id,
                &user_id,
                &bearer::digest(token.expose()).as_slice(),
                &bearer::last_four(&token),
                &key.role,
                &key.capabilities,
                &key.project_id,
            ],
        );
        Person {
            user_id,
            key_id,
            client: self.app.with_token(Some(token.expose())),
            token,
        }
    }

    /// A role on a project.
    pub(super) fn grant(&self, project_id: Uuid, user_id: Uuid, role: &str) {
        self.write(
            "insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
             values ($1, $2, $3, $4, now())",
            &[&self.tenant_id(), &project_id, &user_id, &role],
        );
        self.apply(&[Object::Project(project_id)]);
    }

    /// Takes it away.
    pub(super) fn revoke(&self, project_id: Uuid, user_id: Uuid) {
        self.write(
            "delete from project_memberships where tenant_id = $1 and project_id = $2 and user_id = $3",
            &[&self.tenant_id(), &project_id, &user_id],
        );
        self.apply(&[Object::Project(project_id)]);
    }

    /// A role on a project through a team.
    pub(super) fn grant_by_team(&self, project_id: Uuid, user_id: Uuid, role: &str) {
        let team_id = self.team();
        self.grant_to_team(project_id, team_id, role);
        self.join_team(team_id, user_id, "member");
    }

    /// A team with nobody in it.
    pub(super) fn team(&self) -> Uuid {
        let team_id = self.app.clock.new_id();
        self.write(
            "insert into teams (tenant_id, team_id, name, slug, created_by, created_at, updated_at)
             values ($1, $2::uuid, 'team', $2::uuid::text, $3, now(), now())",
            &[&self.tenant_id(), &team_id, &self.app.seeds.user_id],
        );
        self.apply(&[Object::Team(team_id)]);
        team_id
    }

    pub(super) fn grant_to_team(&self, project_id: Uuid, team_id: Uuid, role: &str) {
        self.write(
            "insert into team_grants (tenant_id, project_id, team_id, role, created_by, created_at, updated_at)
             values ($1, $2, $3, $4, $5, now(), now())",
            &[&self.tenant_id(), &project_id, &team_id, &role, &self.app.seeds.user_id],
        );
        self.apply(&[Object::Project(project_id)]);
    }

    pub(super) fn join_team(&self, team_id: Uuid, user_id: Uuid, role: &str) {
        self.write(
            "insert into team_memberships (tenant_id, team_id, user_id, role, joined_at)
             values ($1, $2, $3, $4, now())",
            &[&self.tenant_id(), &team_id, &user_id, &role],
        );
        self.apply(&[Object::Team(team_id)]);
    }

    /// Puts the project into an org with this admin.
    pub(super) fn grant_by_org(&self, project_id: Uuid, user_id: Uuid) {
        let org_id = self.org_of(project_id);
        self.write(
            "insert into org_admins (tenant_id, org_id, user_id, joined_at) values ($1, $2, $3, now())",
            &[&self.tenant_id(), &org_id, &user_id],
        );
        self.apply(&[Object::Org(org_id)]);
    }

    /// Puts the project into an org without an admin.
    pub(super) fn org_of(&self, project_id: Uuid) -> Uuid {
        let org_id = self.app.clock.new_id();
        self.write(
            "with org as (
               insert into orgs (tenant_id, org_id, name, created_by, created_at, updated_at)
               values ($1, $2::uuid, $2::uuid::text, $3, now(), now()) returning org_id
             )
             update projects p set org_id = org.org_id from org
             where p.tenant_id = $1 and p.project_id = $4",
            &[
                &self.tenant_id(),
                &org_id,
                &self.app.seeds.user_id,
                &project_id,
            ],
        );
        self.apply(&[Object::Org(org_id), Object::Project(project_id)]);
        org_id
    }

    pub(super) fn write(
        &self,
        statement: &str,
        parameters: &[&(dyn postgres::types::ToSql + Sync)],
    ) {
        self.app
            .database
            .client()
            .execute(statement, parameters)
            .unwrap();
    }

    pub(super) fn apply(&self, objects: &[Object]) {
        apply(&self.app, objects);
    }

    /// The decisions of one request.
    #[track_caller]
    pub(super) fn decisions(&self, answer: &Answer) -> Vec<Row> {
        let request = answer.header("x-request-id").unwrap();
        let request: Uuid = request.strip_prefix("req-").unwrap().parse().unwrap();
        self.rows("request_id = $1", &[&request])
    }

    pub(super) fn rows(
        &self,
        condition: &str,
        parameters: &[&(dyn postgres::types::ToSql + Sync)],
    ) -> Vec<Row> {
        let query =
            format!("select {COLUMNS} from audit_decisions where {condition} order by position");
        let rows = self.app.database.client().query(&query, parameters);
        rows.unwrap().iter().map(row).collect()
    }
}

fn row(row: &postgres::Row) -> Row {
    let user: Option<String> = row.get(7);
    Row {
        actor: row.get(0),
        action: row.get(1),
        resource: row.get(2),
        outcome: row.get(3),
        stage: row.get(4),
        reason: row.get(5),
        failing_part: row.get(6),
        check: user.map(|user| [user, row.get(8), row.get(9)]),
        key_id: row.get(10),
        route: row.get(11),
        run_id: row.get(12),
        client_address: row.get(13),
        trace_id: row.get(14),
    }
}

fn project(app: &App) -> Uuid {
    let project = app.maker().project();
    apply(app, &[Object::Project(project)]);
    project
}

fn apply(app: &App, objects: &[Object]) {
    let (shared, tenant_id) = (app.server().shared(), app.seeds.tenant_id);
    let marked =
        |tx: &mut agent_runtime::store::Tx<'_>| desired_tuples::mark(tx, tenant_id, objects);
    shared.store.transact(marked).unwrap();
    let permissions = shared.permissions.as_ref().unwrap();
    permissions.apply(tenant_id, objects).unwrap();
}
