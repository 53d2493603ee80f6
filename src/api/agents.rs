//! `/v1/agents`: agents, their versions, and which version is live.
//!
//! A version is live for an agent within the agent's project.

use super::guardrail_fields::{answers_text_fault, guardrails_fault, stored};
use super::page_query::{PageQuery, page_query};
use super::request_parts::{SOME_ID, invalid_body};
use super::version_fields::{check_model, parameters_fault};
use super::versions::{Promotion, SemanticVersion};
use crate::error::{Code, Error, Result};
use crate::guardrails::{GUARDRAILS_MOST, Guardrail, Streaming};
use crate::http::access::{BodyOn, Names};
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::{Body, Name, Nothing, Query, Text};
use crate::http::output::{Created, Found};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::model::Parameters;
use crate::proof::{Admin, Authorized, Listing, Read, Write};
use crate::runtime::turn::definition::Limits;
use crate::store::agent_versions::{self, AgentVersion, Listed, NewVersion, Override, RefersTo};
use crate::store::agents::{self, Agent};
use crate::store::page::{Page, position_id};
use crate::store::projects::Project;
use crate::tools::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use uuid::Uuid;

/// Instructions may have 200,000 characters, which JSON writes as several bytes each.
const VERSION_BODY_BYTES: u64 = 2 * 1024 * 1024;

const TOOLS_MOST: usize = 64;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Get, Patch, Post};
    let (all, one) = ("/v1/agents", "/v1/agents/{agentId}");
    let versions = "/v1/agents/{agentId}/versions";
    vec![
        route(
            Post,
            all,
            "agents.create",
            "Register an agent in a project",
            create,
        )
        .answers(&[Code::AlreadyExists, Code::ProjectArchived]),
        route(
            Get,
            all,
            "agents.list",
            "List the agents that the caller may read",
            list,
        ),
        route(Get, one, "agents.get", "Read an agent", read),
        route(
            Patch,
            one,
            "agents.update",
            "Change an agent's name or description; what is left out stays",
            change,
        )
        .answers(&[Code::AlreadyExists]),
        route(
            Post,
            versions,
            "agents.versions.create",
            "Make a version of an agent; it is never changed",
            create_version,
        )
        .takes(VERSION_BODY_BYTES)
        .answers(&[
            Code::AlreadyExists,
            Code::Conflict,
            Code::ProjectArchived,
            Code::AgentArchived,
        ]),
        route(
            Get,
            versions,
            "agents.versions.list",
            "List the versions of an agent, in the order of making",
            list_versions,
        ),
        route(
            Get,
            "/v1/agents/{agentId}/versions/{version}",
            "agents.versions.get",
            "Read a version of an agent",
            read_version,
        ),
        route(
            Post,
            "/v1/agents/{agentId}/promote",
            "agents.promote",
            "Make a version the live one of the agent's project; null leaves none live",
            promote,
        ),
    ]
}

/// An agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Agent")]
pub(super) struct View {
    id: Uuid,
    project_id: Uuid,
    name: String,
    description: String,
    /// The highest version; a release is above every pre-release. Null until one is made.
    latest_version: Option<String>,
    /// The version that was promoted for the project; null while none is.
    live_version: Option<String>,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Since when the agent is archived; null while it is not. Its project may be archived, too.
    archived_at: Option<Timestamp>,
}

impl From<Agent> for View {
    fn from(agent: Agent) -> Self {
        Self {
            id: agent.agent_id,
            project_id: agent.project_id,
            name: agent.name,
            description: agent.description,
            latest_version: agent.latest_version,
            live_version: agent.live_version,
            created_by: agent.created_by,
            created_at: agent.created_at.into(),
            updated_at: agent.updated_at.into(),
            archived_at: agent.archived_at.map(Into::into),
        }
    }
}

/// A version of an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentVersion")]
struct VersionView {
    agent_id: Uuid,
    version: String,
    instructions: String,
    model_provider_id: Uuid,
    model: String,
    #[schemars(with = "Parameters")]
    parameters: Value,
    tool_ids: Vec<Uuid>,
    #[schemars(with = "Limits")]
    limits: Value,
    /// The JSON Schema that the answer of a turn fits; null: an answer is text.
    #[schemars(with = "Option<Map<String, Value>>")]
    output_schema: Option<Value>,
    /// What a run may set in place of the version's own.
    overrides: Vec<Override>,
    /// The version's own guardrails, which judge after those of the tenant's and the project's policies.
    #[schemars(with = "Vec<Guardrail>")]
    guardrails: Value,
    /// When readers of a stream see text that a guardrail of the version judges at `output`.
    streaming: Streaming,
    created_by: Uuid,
    created_at: Timestamp,
}

impl From<AgentVersion> for VersionView {
    fn from(version: AgentVersion) -> Self {
        Self {
            agent_id: version.agent_id,
            version: version.version,
            instructions: version.instructions,
            model_provider_id: version.model_provider_id,
            model: version.model,
            parameters: version.parameters,
            tool_ids: version.tool_ids,
            limits: version.limits,
            output_schema: version.output_schema,
            overrides: version.overrides,
            guardrails: version.guardrails,
            streaming: version.streaming,
            created_by: version.created_by,
            created_at: version.created_at.into(),
        }
    }
}

/// A version in a list: read it for what it says.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ListedAgentVersion")]
struct ListedView {
    agent_id: Uuid,
    version: String,
    model_provider_id: Uuid,
    model: String,
    created_by: Uuid,
    created_at: Timestamp,
}

impl From<Listed> for ListedView {
    fn from(version: Listed) -> Self {
        Self {
            agent_id: version.agent_id,
            version: version.version,
            model_provider_id: version.model_provider_id,
            model: version.model,
            created_by: version.created_by,
            created_at: version.created_at.into(),
        }
    }
}

/// An agent to register.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"projectId": SOME_ID, "name": "support", "description": "Answers customers."}))]
struct NewAgent {
    project_id: Id,
    /// Unique in the project.
    name: Name,
    description: Option<Text<0, 4000>>,
}

impl Names<Project> for NewAgent {
    fn named(&self) -> Uuid {
        self.project_id.0
    }
}

/// What to change of an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"description": "Answers questions about orders."}))]
struct ChangeAgent {
    name: Option<Name>,
    description: Option<Text<0, 4000>>,
}

/// A version of an agent to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "instructions": "Answer briefly.",
    "modelProviderId": SOME_ID,
    "model": "small",
    "toolIds": [SOME_ID],
}))]
struct NewAgentVersion {
    /// Left out: 0.1.0, or what follows the latest (the next patch; of a pre-release, its release).
    version: Option<SemanticVersion>,
    /// What the model is told first.
    instructions: Text<0, 200_000>,
    model_provider_id: Id,
    /// One of the provider's models.
    model: Name,
    #[serde(default)]
    parameters: Parameters,
    /// Tools of the agent's project that the model may call.
    #[serde(default)]
    #[schemars(length(max = 64))]
    tool_ids: Vec<Id>,
    #[serde(default)]
    limits: Limits,
    /// The JSON Schema that the answer of a turn fits: an object, 64 KiB at most, with references into itself alone. A
    /// model whose answer does not fit is told why and asked again, twice at most; then the turn fails. Left out: an answer is text.
    #[schemars(with = "Option<Map<String, Value>>")]
    output_schema: Option<Value>,
    /// What a run may set in place of the version's own, with `overrides` at its start. Left out: nothing.
    #[serde(default)]
    #[schemars(length(max = 3))]
    overrides: Vec<Override>,
    /// Checks of what goes into a turn and what comes out, in this order, after those of the tenant's and the project's policies.
    #[serde(default)]
    #[schemars(length(max = GUARDRAILS_MOST))]
    guardrails: Vec<Guardrail>,
    /// When readers of a stream see text that a guardrail of the version judges at `output`. Left out: after the verdict.
    #[serde(default = "Streaming::held")]
    streaming: Streaming,
}

page_query! {
    /// Which agents.
    ListAgents {
        /// In this project.
        project_id: Option<Id>,
        /// True: those alone that are archived or whose project is. False: the others.
        #[serde(default)]
        archived: bool,
    }
}

fn create(
    cx: &Cx<'_>,
    access: BodyOn<NewAgent, Project, Admin>,
    _: Nothing,
) -> Result<Created<View>> {
    let BodyOn { body, on } = access;
    let (id, now) = (cx.new_id(), cx.now());
    let name = body.name.as_str();
    let description = body.description.as_ref().map_or("", Text::as_str);
    let agent =
        cx.transact(|tx| agents::insert(tx, &on, on.caller(), id, name, description, now))?;
    Ok(Created(agent.into()))
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Agent>,
    Query(query): Query<ListAgents>,
) -> Result<Found<Page<View>>> {
    let binding = ("agents", query.project_id, query.archived);
    let page = query.page(&binding)?;
    let rows = agents::list(
        &mut cx.store().session()?,
        &listing,
        query.project_id.map(Uuid::from),
        query.archived,
        &page,
    )?;
    Ok(Found(page.page(rows, |row| row.agent_id, View::from)))
}

fn read(_: &Cx<'_>, agent: Authorized<Agent, Read>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(agent.into_row().into()))
}

fn change(
    cx: &Cx<'_>,
    agent: Authorized<Agent, Admin>,
    Body(change): Body<ChangeAgent>,
) -> Result<Found<View>> {
    let now = cx.now();
    let name = change.name.as_ref().map(Name::as_str);
    let description = change.description.as_ref().map(Text::as_str);
    let changed = cx.transact(|tx| agents::update(tx, &agent, name, description, now))?;
    Ok(Found(changed.into()))
}

fn create_version(
    cx: &Cx<'_>,
    agent: Authorized<Agent, Write>,
    Body(body): Body<NewAgentVersion>,
) -> Result<Created<VersionView>> {
    if let Some((path, expected)) = fault_of(&body) {
        return Err(invalid_body(&path, expected));
    }
    let parameters = serde_json::to_value(&body.parameters).map_err(Error::internal)?;
    let limits = serde_json::to_value(&body.limits).map_err(Error::internal)?;
    let overrides: BTreeSet<Override> = body.overrides.into_iter().collect();
    let overrides: Vec<Override> = overrides.into_iter().collect();
    let guardrails = stored(&body.guardrails)?;
    let tool_ids: Vec<Uuid> = body.tool_ids.into_iter().map(Uuid::from).collect();
    let new = NewVersion {
        version: body.version.map(|version| version.0),
        instructions: body.instructions.as_str(),
        refers_to: RefersTo {
            model_provider_id: body.model_provider_id.into(),
            model: body.model.as_str(),
            tool_ids: &tool_ids,
        },
        overrides: &overrides,
        parameters: &parameters,
        limits: &limits,
        output_schema: body.output_schema.as_ref(),
        guardrails: &guardrails,
        streaming: body.streaming,
    };
    let project_id = agent.row().project_id;
    let now = cx.now();
    let version = cx.transact(|tx| {
        let references = agent_versions::references(tx, &agent, project_id, new.refers_to)?;
        let model = check_model(&references, "$");
        let foreign = |id: &Uuid| references.foreign_tools.contains(id);
        let tools = match tool_ids.iter().position(foreign) {
            None => Ok(()),
            Some(index) => {
                let path = format!("$.toolIds[{index}]");
                let expected = "the id of a tool of the agent's project";
                Err(invalid_body(&path, expected))
            }
        };
        both(model, tools)?;
        agent_versions::insert(tx, &agent, &new, now)
    })?;
    Ok(Created(version.into()))
}

/// What is out of bounds: its place, and what is expected there.
fn fault_of(body: &NewAgentVersion) -> Option<(String, String)> {
    let fault = |path: &str, expected: String| Some((path.to_owned(), expected));
    if let Some(found) = parameters_fault(&body.parameters, "$") {
        return Some(found);
    }
    if let Some(Err(misfit)) = body.output_schema.as_ref().map(schema::compile) {
        return fault(&format!("$.outputSchema{}", misfit.path), misfit.expected);
    }
    if body.tool_ids.len() > TOOLS_MOST {
        return fault("$.toolIds", format!("at most {TOOLS_MOST} tools"));
    }
    let mut seen = HashSet::new();
    if let Some(index) = body.tool_ids.iter().position(|id| !seen.insert(id.0)) {
        let path = format!("$.toolIds[{index}]");
        return fault(&path, "a tool that stands once".to_owned());
    }
    let limits = body.limits.fault();
    if let Some(said) = limits {
        return fault("$.limits", said.trim_end_matches('.').to_owned());
    }
    guardrails_fault(&body.guardrails, "$.guardrails").or_else(|| {
        body.output_schema.as_ref()?;
        answers_text_fault(&body.guardrails, "$.guardrails")
    })
}

fn list_versions(
    cx: &Cx<'_>,
    agent: Authorized<Agent, Read>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<ListedView>>> {
    let binding = ("agent-versions", agent.row().agent_id);
    let page = query.page(&binding)?;
    let rows = agent_versions::list(&mut cx.store().session()?, &agent, &page)?;
    let id = |row: &Listed| position_id(row.position);
    Ok(Found(page.page(rows, id, ListedView::from)))
}

fn read_version(
    cx: &Cx<'_>,
    agent: Authorized<Agent, Read>,
    _: Nothing,
) -> Result<Found<VersionView>> {
    let version = cx.parameter("version")?;
    let found = agent_versions::read(&mut cx.store().session()?, &agent, &version)?;
    Ok(Found(found.into()))
}

fn promote(
    cx: &Cx<'_>,
    agent: Authorized<Agent, Admin>,
    Body(promotion): Body<Promotion>,
) -> Result<Found<View>> {
    let version = promotion.version.map(|version| version.0.to_string());
    let now = cx.now();
    let promoted = cx
        .transact(|tx| agents::promote(tx, &agent, version.as_deref(), now))
        .map_err(|error| match error.code() {
            Code::NotFound => error.detail("path", "$.version"),
            _ => error,
        })?;
    Ok(Found(promoted.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A version with these fields, read and judged.
    fn judged(fields: Value) -> Option<String> {
        let mut body = json!({
            "instructions": "", "model": "m", "modelProviderId": Uuid::nil(),
        });
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let body: NewAgentVersion = serde_json::from_value(body).unwrap();
        fault_of(&body).map(|(path, _)| path)
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        let ids: Vec<Uuid> = (0..65).map(Uuid::from_u128).collect();
        for (fields, path) in [
            (
                json!({"parameters": {"temperature": 2.1}}),
                "$.parameters.temperature",
            ),
            (json!({"parameters": {"topP": -0.1}}), "$.parameters.topP"),
            (
                json!({"parameters": {"maxTokens": 0}}),
                "$.parameters.maxTokens",
            ),
            (json!({"parameters": {"stop": [""]}}), "$.parameters.stop"),
            (
                json!({"parameters": {"presencePenalty": 2.1}}),
                "$.parameters.presencePenalty",
            ),
            (
                json!({"parameters": {"frequencyPenalty": -3}}),
                "$.parameters.frequencyPenalty",
            ),
            (
                json!({"parameters": {"reasoningEffort": "very high"}}),
                "$.parameters.reasoningEffort",
            ),
            (
                json!({"parameters": {"toolChoice": ""}}),
                "$.parameters.toolChoice",
            ),
            (
                json!({"parameters": {"stop": vec!["x"; 17]}}),
                "$.parameters.stop",
            ),
            (
                json!({"parameters": {"extra": {"messages": []}}}),
                "$.parameters.extra.messages",
            ),
            (
                json!({"parameters": {"extra": {"x": "x".repeat(16_384)}}}),
                "$.parameters.extra",
            ),
            (json!({"toolIds": ids}), "$.toolIds"),
            (json!({"toolIds": [ids[1], ids[2], ids[1]]}), "$.toolIds[2]"),
            (json!({"limits": {"maxSteps": 0}}), "$.limits"),
            (json!({"limits": {"maxSteps": 201}}), "$.limits"),
        ] {
            assert_eq!(judged(fields).as_deref(), Some(path));
        }
        assert_eq!(judged(json!({})), None);
        let full = json!({
            "parameters": {"temperature": 2, "topP": 1, "maxTokens": 1_000_000, "stop": ["x"], "seed": -1,
                "reasoningEffort": "low", "toolChoice": "required", "parallelToolCalls": false, "presencePenalty": -2,
                "frequencyPenalty": 2, "extra": {"reasoning_effort": "low"}},
            "toolIds": ids[..64], "limits": {"maxSteps": 200},
        });
        assert_eq!(judged(full), None);
    }
}
