//! `/v1/tools`: what agents and flows of a project may call: an HTTP server, an agent or a flow.

use super::page_query::page_query;
use super::request_parts::{SOME_ID, all_of, check_url, invalid_body};
use super::tool_secrets::{HEADERS_MOST, Header, Named};
use super::versions::SemanticVersion;
use crate::error::{Code, Result};
use crate::http::access::{BodyOn, Names};
use crate::http::context::Cx;
use crate::http::faults::both;
use crate::http::input::{Nothing, Query, Text};
use crate::http::output::{Created, Found, Gone};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Admin, Authorized, Listing, Read};
use crate::runtime::tool_approvals;
use crate::store::page::Page;
use crate::store::projects::Project;
use crate::store::tool_approvals::ToolApproval;
use crate::store::tools::{self, NewTarget, TargetKind, Tool, ToolDryRun};
use crate::store::{agents, flow_versions, flows};
use crate::tools::{is_tool_name, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub const TIMEOUT_MS_DEFAULT: i32 = 30_000;
const TIMEOUT_MS_MOST: i32 = 600_000;
pub const DRY_RUN_DEFAULT: ToolDryRun = ToolDryRun::Simulate;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    let one = "/v1/tools/{toolId}";
    vec![
        route(
            Post,
            "/v1/tools",
            "tools.register",
            "Register a tool in a project: an HTTP server, an agent or a flow",
            create,
        )
        .answers(&[
            Code::AgentArchived,
            Code::AlreadyExists,
            Code::Conflict,
            Code::FlowArchived,
            Code::HostAccessDenied,
            Code::ProjectArchived,
        ]),
        route(
            Get,
            "/v1/tools",
            "tools.list",
            "List the tools that the caller may read",
            list,
        ),
        route(Get, one, "tools.get", "Read a tool", read),
        route(
            Delete,
            one,
            "tools.delete",
            "Delete a tool that no version of an agent or of a flow calls",
            delete,
        )
        .answers(&[Code::Conflict]),
    ]
}

/// The agent that a tool calls.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ToolAgent")]
struct AgentView {
    id: Uuid,
    /// Null: the live one, else the latest.
    version: Option<String>,
}

/// The flow that a tool calls.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ToolFlow")]
struct FlowView {
    flow_id: String,
    /// Null: the live one, else the latest.
    version: Option<String>,
}

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Tool")]
struct View {
    id: Uuid,
    project_id: Uuid,
    name: String,
    description: String,
    /// What the model is told to fit its arguments to.
    #[schemars(with = "Map<String, Value>")]
    arguments_schema: Value,
    /// What its calls go to.
    target: TargetKind,
    /// Of an HTTP server, else null.
    url: Option<String>,
    /// Of an HTTP server, else null.
    timeout_ms: Option<i32>,
    /// Of an HTTP server; false of others, whose calls are begun once.
    idempotent: bool,
    /// Of an HTTP server, else null: the runs that others begin are dry themselves.
    dry_run: Option<ToolDryRun>,
    /// Of an agent, else null.
    agent: Option<AgentView>,
    /// Of a flow, else null.
    flow: Option<FlowView>,
    #[schemars(with = "Vec<Header>")]
    headers: Value,
    signing_secret: Option<String>,
    /// What each call asks a reviewer before it is made; null: nothing.
    #[schemars(with = "Option<ToolApproval>")]
    approval: Option<Value>,
    created_by: Uuid,
    created_at: Timestamp,
}

impl From<Tool> for View {
    fn from(tool: Tool) -> Self {
        let is_http = match tool.target {
            TargetKind::Http => true,
            TargetKind::Agent | TargetKind::Flow => false,
        };
        let agent = tool.agent_id.map(|id| AgentView {
            id,
            version: tool.agent_version,
        });
        let flow = tool.flow_id.map(|flow_id| FlowView {
            flow_id,
            version: tool.flow_version,
        });
        Self {
            id: tool.tool_id,
            project_id: tool.project_id,
            name: tool.name,
            description: tool.description,
            arguments_schema: tool.arguments_schema,
            target: tool.target,
            url: is_http.then_some(tool.url),
            timeout_ms: is_http.then_some(tool.timeout_ms),
            idempotent: tool.idempotent,
            dry_run: is_http.then_some(tool.dry_run),
            agent,
            flow,
            headers: tool.secret_headers,
            signing_secret: tool.signing_secret,
            approval: tool.approval,
            created_by: tool.created_by,
            created_at: tool.created_at.into(),
        }
    }
}

/// The agent that a tool is to call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewToolAgent")]
struct NewAgent {
    /// An agent of the tool's project.
    id: Id,
    /// Its version; left out: the live one, else the latest, each time that a run is taken up which calls the tool.
    version: Option<SemanticVersion>,
}

/// The flow that a tool is to call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "NewToolFlow")]
struct NewFlow {
    /// `namespace.name` of a flow of the tool's project.
    #[schemars(length(min = 3, max = 127))]
    flow_id: String,
    /// Its version; left out: the live one, else the latest, each time that a run is taken up which calls the tool.
    version: Option<SemanticVersion>,
}

/// A tool to register: with a `url`, an `agent` or a `flow`, whichever it calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "projectId": SOME_ID,
    "name": "order_status",
    "description": "Says where an order is.",
    "argumentsSchema": {
        "type": "object",
        "properties": {"order": {"type": "string"}},
        "required": ["order"],
    },
    "url": "https://tools.example.com/order-status",
}))]
struct NewTool {
    project_id: Id,
    /// What the model calls it by: letters, digits, `_` and `-`; unique in the project.
    #[schemars(regex(pattern = "^[a-zA-Z0-9_-]{1,64}$"))]
    name: String,
    /// What the model is told of it.
    description: Text<0, 4000>,
    /// The JSON Schema of the arguments object: 64 KiB at most, with references into itself alone. Its fields keep their order.
    /// Of a flow, left out: `input.schema` of the version that it would run now. Of an agent it is left out: that takes a
    /// `message`.
    #[schemars(with = "Option<Map<String, Value>>")]
    arguments_schema: Option<Value>,
    /// Of an HTTP server: where it is called, with POST.
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    url: Option<String>,
    /// A call is a turn of this agent, without a conversation, in a run below the caller's.
    agent: Option<NewAgent>,
    /// A call is a run of this flow below the caller's.
    flow: Option<NewFlow>,
    /// Of an HTTP server: how long a call may take.
    #[schemars(range(min = 1, max = TIMEOUT_MS_MOST), extend("default" = TIMEOUT_MS_DEFAULT))]
    timeout_ms: Option<i32>,
    /// Of an HTTP server: it may be called again when a crash or a lost connection leaves it open whether it was called.
    #[serde(default)]
    idempotent: bool,
    /// Of an HTTP server: what a dry run does with a call. Say `call` only of a tool that changes nothing while `dryRun` of its
    /// call is true. Nobody is asked for an approval in a dry run.
    #[schemars(extend("default" = DRY_RUN_DEFAULT))]
    dry_run: Option<ToolDryRun>,
    /// Of an HTTP server: headers of each call whose values are secrets. Each needs a use for the origin of `url` and the project
    /// (`/v1/secret-uses`). A tenant admin with a key that has `secrets:write` creates missing uses with the tool.
    #[serde(default)]
    #[schemars(length(max = HEADERS_MOST))]
    headers: Vec<Header>,
    /// Of an HTTP server: the name of the secret that signs each call, as Standard Webhooks says. It needs a use, too.
    #[schemars(length(min = 1, max = 128))]
    signing_secret: Option<String>,
    /// Each call waits until a reviewer has approved it.
    approval: Option<ToolApproval>,
}

impl<'a> Named<'a> {
    fn by(body: &'a NewTool) -> Self {
        Self {
            url: body.url.as_deref(),
            headers: &body.headers,
            signing_secret: body.signing_secret.as_deref(),
        }
    }
}

impl Names<Project> for NewTool {
    fn named(&self) -> Uuid {
        self.project_id.0
    }
}

page_query! {
    /// Which tools.
    ListTools {
        /// In this project.
        project_id: Option<Id>,
    }
}

/// What its schema does not say, or the access check reads the body too early to say.
fn check(body: &NewTool) -> Result<()> {
    let name = match is_tool_name(&body.name) {
        true => Ok(()),
        false => {
            let expected = "1 to 64 letters, digits, underscores and hyphens";
            Err(invalid_body("$.name", expected))
        }
    };
    let timeout_ms = body.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT);
    let timeout = match (1..=TIMEOUT_MS_MOST).contains(&timeout_ms) {
        true => Ok(()),
        false => Err(invalid_body(
            "$.timeoutMs",
            format!("1 to {TIMEOUT_MS_MOST}"),
        )),
    };
    let arguments = body.arguments_schema.as_ref().map(schema::compile);
    let arguments = arguments.transpose().map_err(|fault| {
        let path = format!("$.argumentsSchema{}", fault.path);
        invalid_body(&path, fault.expected)
    });
    let named = both(Named::by(body).check(), check_approval(body));
    let named = both(check_fields(body), named);
    both(both(both(name, timeout), arguments), named).map(|_| ())
}

/// It has what its kind of tool needs, and nothing of another kind.
fn check_fields(body: &NewTool) -> Result<()> {
    let of_http = [
        ("url", body.url.is_some()),
        ("timeoutMs", body.timeout_ms.is_some()),
        ("idempotent", body.idempotent),
        ("dryRun", body.dry_run.is_some()),
        ("headers", !body.headers.is_empty()),
        ("signingSecret", body.signing_secret.is_some()),
    ];
    let mut faults = Vec::new();
    let mut refuse = |field: &str, expected| faults.push((format!("$.{field}"), expected));
    match (&body.agent, &body.flow) {
        (None, None) => {
            if body.url.is_none() {
                refuse("url", "one of url, agent and flow");
            }
            if body.arguments_schema.is_none() {
                refuse("argumentsSchema", "a JSON Schema as an object");
            }
        }
        (agent, flow) => {
            let own = if agent.is_some() { "agent" } else { "flow" };
            let none = match own {
                "agent" => "nothing here: the tool calls an agent",
                _ => "nothing here: the tool calls a flow",
            };
            for (field, _) in of_http.into_iter().filter(|(_, is_there)| *is_there) {
                refuse(field, none);
            }
            if agent.is_some() && flow.is_some() {
                refuse("flow", none);
            }
            if agent.is_some() && body.arguments_schema.is_some() {
                let expected =
                    "nothing here: an agent takes a message, and its schema is the service's";
                refuse("argumentsSchema", expected);
            }
        }
    }
    all_of(faults)
}

/// What a call of an agent takes. The model is shown this.
fn message_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"message": {
            "type": "string",
            "minLength": 1,
            "description": "What the agent is to do, with all that it has to know: it sees nothing else of this conversation.",
        }},
        "required": ["message"],
        "additionalProperties": false,
    })
}

/// What the tool calls, with the schema of its arguments.
fn target<'a>(
    cx: &Cx<'_>,
    on: &Authorized<Project, Admin>,
    body: &'a NewTool,
    headers: &'a Value,
) -> Result<(NewTarget<'a>, Value)> {
    let schema = body.arguments_schema.clone().unwrap_or_default();
    let text = |version: &Option<SemanticVersion>| version.as_ref().map(|one| one.0.to_string());
    if let Some(agent) = &body.agent {
        let version = text(&agent.version);
        check_agent(cx, on, agent.id.0, version.as_deref())?;
        let agent_id = agent.id.0;
        return Ok((NewTarget::Agent { agent_id, version }, message_schema()));
    }
    if let Some(flow) = &body.flow {
        let version = text(&flow.version);
        let of_flow = input_schema(cx, on, &flow.flow_id, version.as_deref())?;
        let flow_id = &flow.flow_id;
        let schema = match &body.arguments_schema {
            Some(_) => schema,
            None => fitting(of_flow)?,
        };
        return Ok((NewTarget::Flow { flow_id, version }, schema));
    }
    let http = NewTarget::Http {
        url: body.url.as_deref().unwrap_or_default(),
        timeout_ms: body.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT),
        idempotent: body.idempotent,
        dry_run: body.dry_run.unwrap_or(DRY_RUN_DEFAULT),
        secret_headers: headers,
        signing_secret: body.signing_secret.as_deref(),
    };
    Ok((http, schema))
}

/// The project has the agent, with the version if one is named.
fn check_agent(
    cx: &Cx<'_>,
    on: &Authorized<Project, Admin>,
    agent_id: Uuid,
    version: Option<&str>,
) -> Result<()> {
    let found = tools::agent_target(&mut cx.store().session()?, on, agent_id, version)?;
    let Some(found) = found else {
        let expected = "the id of an agent of the tool's project";
        return Err(invalid_body("$.agent.id", expected));
    };
    if found.is_archived {
        return Err(agents::archived(agent_id));
    }
    match found.has_version {
        true => Ok(()),
        false => Err(invalid_body("$.agent.version", "a version of the agent")),
    }
}

/// What the flow is to be given, as the version says that is named, else the live one, else the latest.
fn input_schema(
    cx: &Cx<'_>,
    on: &Authorized<Project, Admin>,
    flow_id: &str,
    version: Option<&str>,
) -> Result<Option<Value>> {
    let project = (on.caller().tenant_id, on.row().project_id);
    let mut session = cx.store().session()?;
    let Some(flow) = flows::named(&mut session, project, flow_id)? else {
        let expected = "the flowId of a flow of the tool's project";
        return Err(invalid_body("$.flow.flowId", expected));
    };
    if flow.archived_at.is_some() {
        return Err(flows::archived(flow_id, flow.id));
    }
    let version = version.or(flow.current_version()).unwrap_or_default();
    let pinned = flow_versions::definition_of(&mut session, project, flow_id, version)?;
    let Some(pinned) = pinned else {
        return Err(invalid_body("$.flow.version", "a version of the flow"));
    };
    Ok(pinned.definition.pointer("/input/schema/document").cloned())
}

/// The schema of a flow's input as that of a tool's arguments, which are an object.
fn fitting(of_flow: Option<Value>) -> Result<Value> {
    let mut schema = of_flow.unwrap_or_else(|| json!({}));
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("type").or_insert_with(|| json!("object"));
    }
    match schema::compile(&schema) {
        Ok(_) => Ok(schema),
        Err(_) => Err(invalid_body(
            "$.argumentsSchema",
            "a schema of an object: input.schema of the flow's version is no such schema, so give one here",
        )),
    }
}

fn check_approval(body: &NewTool) -> Result<()> {
    let approval = body.approval.as_ref();
    let faults = approval.map(tool_approvals::faults).unwrap_or_default();
    all_of(
        faults
            .into_iter()
            .map(|(path, expected)| (format!("$.approval{path}"), expected)),
    )
}

fn create(
    cx: &Cx<'_>,
    access: BodyOn<NewTool, Project, Admin>,
    _: Nothing,
) -> Result<Created<View>> {
    let BodyOn { body, on } = access;
    let lacking = Named::by(&body).check_right(cx, &on)?;
    let project = format!("project:{}", on.row().project_id);
    let url = match &body.url {
        Some(url) => check_url(cx, on.caller(), &project, "$.url", url),
        None => Ok(()),
    };
    both(check(&body), url)?;
    let headers = json!(body.headers);
    let (target, arguments_schema) = target(cx, &on, &body, &headers)?;
    let new = tools::New {
        tool_id: cx.new_id(),
        name: &body.name,
        description: body.description.as_str(),
        arguments_schema: &arguments_schema,
        approval: body.approval.as_ref(),
        target,
    };
    let now = cx.now();
    let tool = cx.transact(|tx| {
        if let Some(lacking) = &lacking {
            lacking.write(cx, tx, on.row().project_id, now)?;
        }
        tools::insert(tx, &on, on.caller(), &new, now)
    })?;
    Ok(Created(tool.into()))
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Tool>,
    Query(query): Query<ListTools>,
) -> Result<Found<Page<View>>> {
    let binding = ("tools", query.project_id);
    let page = query.page(&binding)?;
    let rows = tools::list(
        &mut cx.store().session()?,
        &listing,
        query.project_id.map(Uuid::from),
        &page,
    )?;
    Ok(Found(page.page(rows, |row| row.tool_id, View::from)))
}

fn read(_: &Cx<'_>, tool: Authorized<Tool, Read>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(tool.into_row().into()))
}

fn delete(cx: &Cx<'_>, tool: Authorized<Tool, Admin>, _: Nothing) -> Result<Gone> {
    cx.transact(|tx| tools::delete(tx, &tool))?;
    Ok(Gone)
}
