//! What a run needs, made over the API: a project, a model provider, an agent with its versions,
//! tools, a conversation.

use super::Client;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

/// US dollars per million tokens.
pub(crate) const PROMPT_PRICE: f64 = 2.0;
pub(crate) const COMPLETION_PRICE: f64 = 8.0;

/// Makes objects in the tenant of its client.
pub(crate) struct Maker<'a>(&'a Client);

/// A tool to make.
pub(crate) struct NewTool<'a> {
    pub(crate) name: &'a str,
    pub(crate) url: &'a str,
    pub(crate) schema: Value,
    pub(crate) timeout_ms: i32,
    pub(crate) idempotent: bool,
    /// Null: its calls ask nobody.
    pub(crate) approval: Value,
    /// Null: a dry run does not call it.
    pub(crate) dry_run: Value,
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
            approval: Value::Null,
            dry_run: Value::Null,
        }
    }
}

/// A version to make.
pub(crate) struct NewVersion {
    pub(crate) version: &'static str,
    pub(crate) limits: Value,
    pub(crate) parameters: Value,
    pub(crate) output_schema: Value,
    pub(crate) tools: Vec<Uuid>,
    pub(crate) overrides: Value,
}

impl NewVersion {
    pub(crate) fn new(version: &'static str) -> Self {
        Self {
            version,
            limits: json!({}),
            parameters: json!({}),
            output_schema: Value::Null,
            tools: Vec::new(),
            overrides: json!([]),
        }
    }
}

impl Client {
    pub(crate) fn maker(&self) -> Maker<'_> {
        Maker(self)
    }

    /// An agent of a new project with one version that asks the provider there.
    #[track_caller]
    pub(crate) fn agent(&self, base_url: &str) -> Uuid {
        self.agent_with(base_url, |_| {})
    }

    /// The same with another version.
    #[track_caller]
    pub(crate) fn agent_with(&self, base_url: &str, change: impl FnOnce(&mut NewVersion)) -> Uuid {
        let maker = self.maker();
        maker.agent_of(maker.project(), base_url, change)
    }
}

fn name(what: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("{what}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Maker<'_> {
    #[track_caller]
    fn make(&self, path: &str, body: &Value) -> Uuid {
        let made = self.0.post(path, body).expect(201);
        made["id"].as_str().unwrap().parse().unwrap()
    }

    #[track_caller]
    pub(crate) fn project(&self) -> Uuid {
        self.make("/v1/projects", &json!({"name": name("project")}))
    }

    /// A provider with the model `m`.
    #[track_caller]
    pub(crate) fn provider(&self, base_url: &str, api_key_name: Option<&str>) -> Uuid {
        let prices = json!({"prompt": PROMPT_PRICE, "completion": COMPLETION_PRICE});
        let body = json!({
            "name": name("provider"),
            "baseUrl": base_url,
            "apiKeyName": api_key_name,
            "models": [{"name": "m", "prices": prices}],
        });
        self.make("/v1/model-providers", &body)
    }

    #[track_caller]
    pub(crate) fn tool(&self, project_id: Uuid, new: &NewTool<'_>) -> Uuid {
        let body = json!({
            "projectId": project_id,
            "name": new.name,
            "description": "A tool.",
            "argumentsSchema": new.schema,
            "url": new.url,
            "timeoutMs": new.timeout_ms,
            "idempotent": new.idempotent,
            "approval": new.approval,
            "dryRun": new.dry_run,
        });
        self.make("/v1/tools", &body)
    }

    /// An agent without a version.
    #[track_caller]
    pub(crate) fn bare_agent(&self, project_id: Uuid) -> Uuid {
        let body = json!({"projectId": project_id, "name": name("agent")});
        self.make("/v1/agents", &body)
    }

    #[track_caller]
    pub(crate) fn version(&self, agent_id: Uuid, provider_id: Uuid, new: &NewVersion) {
        let body = json!({
            "version": new.version,
            "instructions": "Be brief.",
            "modelProviderId": provider_id,
            "model": "m",
            "limits": new.limits,
            "parameters": new.parameters,
            "outputSchema": new.output_schema,
            "toolIds": new.tools,
            "overrides": new.overrides,
        });
        let path = format!("/v1/agents/{agent_id}/versions");
        self.0.post(&path, &body).expect(201);
    }

    /// An agent with version 1.0.0 of a provider of its own.
    #[track_caller]
    pub(crate) fn agent_of(
        &self,
        project_id: Uuid,
        base_url: &str,
        change: impl FnOnce(&mut NewVersion),
    ) -> Uuid {
        let mut version = NewVersion::new("1.0.0");
        change(&mut version);
        let agent_id = self.bare_agent(project_id);
        self.version(agent_id, self.provider(base_url, None), &version);
        agent_id
    }

    /// Makes a version live for the agent's project.
    #[track_caller]
    pub(crate) fn promote(&self, agent_id: Uuid, version: &str) {
        let path = format!("/v1/agents/{agent_id}/promote");
        self.0.post(&path, &json!({"version": version})).expect(200);
    }

    /// A conversation, with its own version or without.
    #[track_caller]
    pub(crate) fn conversation(&self, agent_id: Uuid, version: Option<&str>) -> Uuid {
        let body = json!({"agentId": agent_id, "version": version});
        self.make("/v1/conversations", &body)
    }
}
