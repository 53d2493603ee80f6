//! Servers with authorization on, and permissions changed in the database as the API changes them.

use super::openfga::OpenFga;
use super::{App, Database, eventually, seeds};
use agent_runtime::authz::desired_tuples::Object;
use agent_runtime::authz::permissions::{Asked, Model, Options, Permissions};
use agent_runtime::error::Result;
use agent_runtime::ids::Clock;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

/// Authorization over this OpenFGA.
pub(crate) fn authorization(url: &str) -> Options {
    Options {
        url: url.to_owned(),
        timeout: Duration::from_secs(10),
        connections: 8,
        model: Model::own(),
    }
}

impl App {
    /// A server with authorization on, over the OpenFGA of the test run, ready to answer checks.
    pub(crate) fn start_authorized() -> Self {
        let app = Self::start_at(&OpenFga::shared().url());
        app.is_in_step();
        app
    }

    /// A server with authorization on, over this OpenFGA, which may be away.
    pub(crate) fn start_at(url: &str) -> Self {
        Self::start_with(|options| options.authorization = Some(authorization(url)))
    }

    /// As [`App::start_at`], with what it logs.
    pub(crate) fn start_at_logged(url: &str) -> (Self, LogLines) {
        let lines = LogLines::default();
        let clock = Clock::system();
        let seeds = seeds(&clock);
        let app = Self::start_logged(
            Database::migrated(),
            clock,
            seeds,
            &lines.logger(),
            |options| options.authorization = Some(authorization(url)),
        );
        (app, lines)
    }

    /// Another replica, with what it logs.
    pub(crate) fn replica_logged(&self, change: impl FnOnce(&mut Options)) -> (Self, LogLines) {
        let lines = LogLines::default();
        let mut authorization = self.authorization.clone().unwrap();
        change(&mut authorization);
        let app = Self::start_logged(
            self.database.clone(),
            self.clock.clone(),
            self.seeds.clone(),
            &lines.logger(),
            |options| options.authorization = Some(authorization),
        );
        (app, lines)
    }

    /// Waits until every store was compared.
    #[track_caller]
    pub(crate) fn is_in_step(&self) {
        eventually("the stores to be compared", || {
            (self.get("/readyz").status == 200).then_some(())
        });
    }

    /// Its permissions.
    pub(crate) fn permissions(&self) -> &Permissions {
        self.server().shared().permissions.as_ref().unwrap()
    }

    /// Asks of an object of the seed tenant.
    pub(crate) fn may(&self, user: Uuid, relation: &'static str, object: Object) -> Result<bool> {
        self.may_in(self.seeds.tenant_id, user, relation, object)
    }

    /// As [`App::may`], asked again until there is an answer: the reconciler may see late that OpenFGA was
    /// away, and doubts every store from then until it has compared it.
    #[track_caller]
    pub(crate) fn may_soon(&self, user: Uuid, relation: &'static str, object: Object) -> bool {
        eventually("an answer", || self.may(user, relation, object).ok())
    }

    /// Tells OpenFGA of an object of the seed tenant, again until it is told; see [`App::may_soon`].
    #[track_caller]
    pub(crate) fn apply_soon(&self, object: Object) {
        eventually("it to be told", || {
            self.permissions()
                .apply(self.seeds.tenant_id, &[object])
                .ok()
        });
    }

    /// Asks of an object of a tenant.
    pub(crate) fn may_in(
        &self,
        tenant_id: Uuid,
        user: Uuid,
        relation: &'static str,
        object: Object,
    ) -> Result<bool> {
        let asked = Asked {
            user,
            relation,
            object: object.to_string(),
            contextual: None,
            project_id: match object {
                Object::Project(id) => Some(id),
                _ => None,
            },
            in_sync: None,
        };
        let answer = self.permissions().ask(tenant_id, &asked)?;
        Ok(answer.allowed)
    }

    /// The permissions of the seed tenant, as they are changed in the database.
    pub(crate) fn world(&self) -> World {
        World::of(&self.database, self.seeds.tenant_id, self.seeds.user_id)
    }
}

/// A tenant's permissions in the database. Each change marks what it concerns and tells nobody.
pub(crate) struct World {
    pub(crate) tenant_id: Uuid,
    maker: Uuid,
    clock: Clock,
    pub(crate) client: postgres::Client,
}

type Parameter<'a> = &'a (dyn postgres::types::ToSql + Sync);

impl World {
    pub(crate) fn of(database: &Database, tenant_id: Uuid, maker: Uuid) -> Self {
        Self {
            tenant_id,
            maker,
            clock: Clock::system(),
            client: database.client(),
        }
    }

    /// Runs a statement of which `$1` is the tenant, and marks objects with it.
    pub(crate) fn change(&mut self, sql: &str, more: &[Parameter<'_>], objects: &[Object]) {
        let mut all: Vec<Parameter<'_>> = vec![&self.tenant_id];
        all.extend_from_slice(more);
        let mut tx = self.client.transaction().unwrap();
        tx.execute(sql, &all).unwrap();
        for object in objects {
            tx.execute(
                "insert into authz_objects (tenant_id, object) values ($1, $2)
                 on conflict (tenant_id, object) do update set desired = authz_objects.desired + 1",
                &[&self.tenant_id, &object.to_string()],
            )
            .unwrap();
        }
        tx.commit().unwrap();
    }

    pub(crate) fn tenant(&self) -> Object {
        Object::Tenant(self.tenant_id)
    }

    pub(crate) fn person(&mut self, role: &str) -> Uuid {
        let id = self.clock.new_id();
        let tenant = self.tenant();
        self.change(
            "insert into users (tenant_id, user_id, display_name, created_at, tenant_role)
             values ($1, $2, 'a person', now(), $3)",
            &[&id, &role],
            &[tenant],
        );
        id
    }

    pub(crate) fn org(&mut self) -> Uuid {
        let (id, maker) = (self.clock.new_id(), self.maker);
        self.change(
            "insert into orgs (tenant_id, org_id, name, created_by, created_at, updated_at)
             values ($1, $2, $2::uuid::text, $3, now(), now())",
            &[&id, &maker],
            &[Object::Org(id)],
        );
        id
    }

    pub(crate) fn team(&mut self) -> Uuid {
        let (id, maker) = (self.clock.new_id(), self.maker);
        self.change(
            "insert into teams (tenant_id, team_id, name, slug, created_by, created_at, updated_at)
             values ($1, $2, 'a team', $2::uuid::text, $3, now(), now())",
            &[&id, &maker],
            &[Object::Team(id)],
        );
        id
    }

    pub(crate) fn project(&mut self, org: Option<Uuid>) -> Uuid {
        let (id, maker) = (self.clock.new_id(), self.maker);
        self.change(
            "insert into projects
               (tenant_id, project_id, name, created_by, created_at, updated_at, org_id)
             values ($1, $2, 'a project', $3, now(), now(), $4)",
            &[&id, &maker, &org],
            &[Object::Project(id)],
        );
        id
    }

    /// Gives a person a role on a project, or another one.
    pub(crate) fn join(&mut self, project: Uuid, user: Uuid, role: &str) {
        self.change(
            "insert into project_memberships (tenant_id, project_id, user_id, role, joined_at)
             values ($1, $2, $3, $4, now())
             on conflict (tenant_id, project_id, user_id) do update set role = excluded.role",
            &[&project, &user, &role],
            &[Object::Project(project)],
        );
    }

    pub(crate) fn leave(&mut self, project: Uuid, user: Uuid) {
        self.change(
            "delete from project_memberships
             where tenant_id = $1 and project_id = $2 and user_id = $3",
            &[&project, &user],
            &[Object::Project(project)],
        );
    }

    pub(crate) fn join_team(&mut self, team: Uuid, user: Uuid, role: &str) {
        self.change(
            "insert into team_memberships (tenant_id, team_id, user_id, role, joined_at)
             values ($1, $2, $3, $4, now())",
            &[&team, &user, &role],
            &[Object::Team(team)],
        );
    }

    pub(crate) fn leave_team(&mut self, team: Uuid, user: Uuid) {
        self.change(
            "delete from team_memberships where tenant_id = $1 and team_id = $2 and user_id = $3",
            &[&team, &user],
            &[Object::Team(team)],
        );
    }

    pub(crate) fn grant(&mut self, project: Uuid, team: Uuid, role: &str) {
        let maker = self.maker;
        self.change(
            "insert into team_grants
               (tenant_id, project_id, team_id, role, created_by, created_at, updated_at)
             values ($1, $2, $3, $4, $5, now(), now())",
            &[&project, &team, &role, &maker],
            &[Object::Project(project)],
        );
    }

    /// How many objects are marked and were not told.
    pub(crate) fn unapplied(&mut self) -> i64 {
        let row = self.client.query_one(
            "select count(*) from authz_objects where tenant_id = $1 and applied < desired",
            &[&self.tenant_id],
        );
        row.unwrap().get(0)
    }

    /// The tenant's store and model, as Postgres has them.
    pub(crate) fn tenant_store(&mut self) -> Option<(String, String, i32)> {
        let row = self.client.query_opt(
            "select store_id, model_id, model_version from authz_stores where tenant_id = $1",
            &[&self.tenant_id],
        );
        row.unwrap().map(|row| (row.get(0), row.get(1), row.get(2)))
    }
}

/// What was logged, a line a record.
#[derive(Clone, Default)]
pub(crate) struct LogLines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl LogLines {
    pub(crate) fn logger(&self) -> slog::Logger {
        agent_runtime::log::open(&Default::default(), Clock::system(), self.clone())
    }

    /// A logger of every record down to debug.
    pub(crate) fn debug_logger(&self) -> slog::Logger {
        let options = agent_runtime::log::Options {
            level: agent_runtime::log::Level::Debug,
            ..Default::default()
        };
        agent_runtime::log::open(&options, Clock::system(), self.clone())
    }

    /// The records that have this text in them.
    pub(crate) fn records(&self, text: &str) -> Vec<serde_json::Value> {
        let lines = self.with(text);
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The lines that have this text in them.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let all = String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned();
        let found = all.lines().filter(|line| line.contains(text));
        found.map(str::to_owned).collect()
    }
}
