//! What a run needs: a project, a model provider, an agent with its versions, tools, a conversation.

use super::{App, Database, Seeds};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

/// US dollars per million tokens.
pub(crate) const PROMPT_PRICE: f64 = 2.0;
pub(crate) const COMPLETION_PRICE: f64 = 8.0;

/// Makes rows in one tenant.
pub(crate) struct Maker {
    sql: postgres::Client,
    clock: Clock,
    tenant_id: Uuid,
    user_id: Uuid,
}

/// A tool to make.
pub(crate) struct NewTool<'a> {
    pub(crate) name: &'a str,
    pub(crate) url: &'a str,
    pub(crate) schema: Value,
    pub(crate) timeout_ms: i32,
    pub(crate) idempotent: bool,
}

impl<'a> NewTool<'a> {
    /// A tool that takes any object.
    pub(crate) fn new(name: &'a str, url: &'a str) -> Self {
        Self {
            name,
            url,
            schema: json!({"type": "object"}),
            timeout_ms: 10_000,
            idempotent: true,
        }
    }
}

/// A version to make.
pub(crate) struct NewVersion<'a> {
    pub(crate) version: &'a str,
    pub(crate) instructions: &'a str,
    pub(crate) limits: Value,
    pub(crate) tools: Vec<Uuid>,
}

impl<'a> NewVersion<'a> {
    pub(crate) fn new(version: &'a str) -> Self {
        Self {
            version,
            instructions: "Be brief.",
            limits: json!({}),
            tools: Vec::new(),
        }
    }
}

impl App {
    /// Makes rows in the app's own tenant.
    pub(crate) fn maker(&self) -> Maker {
        Maker::new(&self.database, &self.clock, &self.seeds)
    }

    /// An agent with one version and no tools that asks the provider there.
    pub(crate) fn agent(&self, base_url: &str) -> Uuid {
        self.agent_with(base_url, |_| {})
    }

    /// The same with another version.
    pub(crate) fn agent_with(
        &self,
        base_url: &str,
        change: impl FnOnce(&mut NewVersion<'_>),
    ) -> Uuid {
        let mut maker = self.maker();
        let project_id = maker.project();
        maker.agent_of(project_id, base_url, change)
    }
}

impl Maker {
    pub(crate) fn new(database: &Database, clock: &Clock, seeds: &Seeds) -> Self {
        Self {
            sql: database.client(),
            clock: clock.clone(),
            tenant_id: seeds.tenant_id,
            user_id: seeds.user_id,
        }
    }

    fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    pub(crate) fn project(&mut self) -> Uuid {
        let id = self.clock.new_id();
        let insert = "insert into projects values ($1, $2, $3, $4, $5, $5)";
        let name = format!("project {id}");
        self.sql
            .execute(
                insert,
                &[&self.tenant_id, &id, &name, &self.user_id, &self.now()],
            )
            .unwrap();
        id
    }

    /// A provider with the model `m`.
    pub(crate) fn provider(&mut self, base_url: &str, api_key_name: Option<&str>) -> Uuid {
        let id = self.clock.new_id();
        let insert = "insert into model_providers values ($1, $2, $3, $4, $5, $6, $7, $7)";
        let name = format!("provider {id}");
        self.sql
            .execute(
                insert,
                &[
                    &self.tenant_id,
                    &id,
                    &name,
                    &base_url,
                    &api_key_name,
                    &self.user_id,
                    &self.now(),
                ],
            )
            .unwrap();
        let prices = json!([{"name": "m", "prices":
            {"prompt": PROMPT_PRICE, "completion": COMPLETION_PRICE}}]);
        let statement = include_str!("../../../sql/queries/model_providers/put_models.sql");
        self.sql
            .execute(statement, &[&self.tenant_id, &id, &prices])
            .unwrap();
        id
    }

    pub(crate) fn tool(&mut self, project_id: Uuid, new: &NewTool<'_>) -> Uuid {
        let id = self.clock.new_id();
        let statement = include_str!("../../../sql/queries/tools/insert.sql");
        self.sql
            .query(
                statement,
                &[
                    &self.tenant_id,
                    &id,
                    &project_id,
                    &new.name,
                    &"A tool.",
                    &new.schema,
                    &new.url,
                    &new.timeout_ms,
                    &new.idempotent,
                    &self.user_id,
                    &self.now(),
                ],
            )
            .unwrap();
        id
    }

    /// An agent without a version.
    pub(crate) fn bare_agent(&mut self, project_id: Uuid) -> Uuid {
        let id = self.clock.new_id();
        let statement = include_str!("../../../sql/queries/agents/insert.sql");
        let name = format!("agent {id}");
        self.sql
            .query(
                statement,
                &[
                    &self.tenant_id,
                    &id,
                    &project_id,
                    &name,
                    &"",
                    &self.user_id,
                    &self.now(),
                ],
            )
            .unwrap();
        id
    }

    /// A version that is its agent's latest.
    pub(crate) fn version(&mut self, agent_id: Uuid, provider_id: Uuid, new: &NewVersion<'_>) {
        let statement = include_str!("../../../sql/queries/agents/insert_version.sql");
        self.sql
            .execute(
                statement,
                &[
                    &self.tenant_id,
                    &agent_id,
                    &new.version,
                    &new.instructions,
                    &provider_id,
                    &"m",
                    &json!({}),
                    &new.limits,
                    &new.tools,
                    &self.user_id,
                    &self.now(),
                    &true,
                ],
            )
            .unwrap();
    }

    /// An agent with version 1.0.0 of its own provider.
    pub(crate) fn agent_of(
        &mut self,
        project_id: Uuid,
        base_url: &str,
        change: impl FnOnce(&mut NewVersion<'_>),
    ) -> Uuid {
        let provider_id = self.provider(base_url, None);
        let agent_id = self.bare_agent(project_id);
        let mut version = NewVersion::new("1.0.0");
        change(&mut version);
        self.version(agent_id, provider_id, &version);
        agent_id
    }

    /// Makes a version live for the agent's project.
    pub(crate) fn promote(&mut self, agent_id: Uuid, version: Option<&str>) {
        let statement = include_str!("../../../sql/queries/agents/promote.sql");
        self.sql
            .query(
                statement,
                &[&self.tenant_id, &agent_id, &version, &self.now()],
            )
            .unwrap();
    }

    /// A conversation, with its own version or without.
    pub(crate) fn conversation(&mut self, agent_id: Uuid, version: Option<&str>) -> Uuid {
        let id = self.clock.new_id();
        let project = "select project_id from agents where agent_id = $1";
        let project_id: Uuid = self.sql.query_one(project, &[&agent_id]).unwrap().get(0);
        let statement = include_str!("../../../sql/queries/conversations/insert.sql");
        self.sql
            .query(
                statement,
                &[
                    &self.tenant_id,
                    &id,
                    &project_id,
                    &agent_id,
                    &version,
                    &"",
                    &self.user_id,
                    &self.now(),
                ],
            )
            .unwrap();
        id
    }
}
