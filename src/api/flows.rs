//! `/v1/flows`: flows, their versions, and which version is live.
//!
//! A path has the id of a flow's row, since two projects may have a flow of one `flowId`. A definition is stored
//! as its author wrote it.
//!
//! Not here: reading it (`flow_definitions`).

use super::flow_definitions::{FaultView, Own, invalid, read_definition, uses_of};
use super::page_query::{PageQuery, page_query};
use super::request_parts::SOME_ID;
use super::versions::Promotion;
use crate::error::{Code, Error, Result};
use crate::flows::definition::graph::{self, Node};
use crate::flows::definition::{examine, fault};
use crate::http::access::{BodyOn, Names};
use crate::http::context::Cx;
use crate::http::input::{Body, Name, Nothing, Query, Text};
use crate::http::output::{Created, Found};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Admin, Authorized, Listing, Read, Write};
use crate::store::flow_versions::{self, FlowVersion, Listed, NewVersion, Use, digest_of};
use crate::store::flows::{self, Filter, Flow};
use crate::store::page::{Page, position_id};
use crate::store::projects::Project;
use crate::text::hex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A definition has 256 KiB at most, without the spaces that a body may have.
const DEFINITION_BODY_BYTES: u64 = 1024 * 1024;

const TITLE_MOST: usize = 200;

pub(super) fn routes() -> Vec<Route> {
    let mut routes = flow_routes();
    routes.extend(version_routes());
    routes
}

fn flow_routes() -> Vec<Route> {
    use Method::{Get, Patch, Post};
    let (all, one) = ("/v1/flows", "/v1/flows/{id}");
    vec![
        route(
            Post,
            "/v1/flows/validate",
            "flows.validate",
            "Check a definition in a project; nothing is stored",
            validate,
        )
        .takes(DEFINITION_BODY_BYTES),
        route(
            Post,
            all,
            "flows.create",
            "Register a flow in a project, with its first version",
            create,
        )
        .takes(DEFINITION_BODY_BYTES)
        .answers(&[
            Code::FlowInvalid,
            Code::AlreadyExists,
            Code::Conflict,
            Code::ProjectArchived,
        ]),
        route(
            Get,
            all,
            "flows.list",
            "List the flows that the caller may read",
            list,
        ),
        route(Get, one, "flows.get", "Read a flow", read),
        route(
            Patch,
            one,
            "flows.update",
            "Change a flow's title or description; what is left out stays",
            change,
        ),
    ]
}

fn version_routes() -> Vec<Route> {
    use Method::{Get, Post};
    let versions = "/v1/flows/{id}/versions";
    vec![
        route(
            Post,
            versions,
            "flows.versions.create",
            "Make a version of a flow; it is never changed. The same one once more answers what stands",
            create_version,
        )
        .takes(DEFINITION_BODY_BYTES)
        .answers(&[
            Code::FlowInvalid,
            Code::AlreadyExists,
            Code::Conflict,
            Code::ProjectArchived,
            Code::FlowArchived,
        ]),
        route(
            Get,
            versions,
            "flows.versions.list",
            "List the versions of a flow, in the order of making",
            list_versions,
        ),
        route(
            Get,
            "/v1/flows/{id}/versions/{version}",
            "flows.versions.get",
            "Read a version of a flow",
            read_version,
        ),
        route(
            Get,
            "/v1/flows/{id}/versions/{version}/graph",
            "flows.versions.graph",
            "Read the tasks of a version as nested boxes, with what follows each",
            read_graph,
        )
        .answers(&[Code::FlowInvalid]),
        route(
            Post,
            "/v1/flows/{id}/promote",
            "flows.promote",
            "Make a version the live one of the flow's project; null leaves none live",
            promote,
        ),
    ]
}

/// A flow.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Flow")]
pub(super) struct View {
    id: Uuid,
    project_id: Uuid,
    /// `namespace.name` of its definitions; unique in the project.
    flow_id: String,
    /// Begins as the title of the first definition, cut after 200 characters.
    title: String,
    /// Begins as the summary of the first definition.
    description: String,
    /// The highest version; a release is above every pre-release.
    latest_version: Option<String>,
    /// The version that was promoted for the project; null while none is.
    live_version: Option<String>,
    created_by: Uuid,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Since when the flow is archived; null while it is not. Its project may be archived, too.
    archived_at: Option<Timestamp>,
}

impl From<Flow> for View {
    fn from(flow: Flow) -> Self {
        Self {
            id: flow.id,
            project_id: flow.project_id,
            flow_id: flow.flow_id,
            title: flow.title,
            description: flow.description,
            latest_version: flow.latest_version,
            live_version: flow.live_version,
            created_by: flow.created_by,
            created_at: flow.created_at.into(),
            updated_at: flow.updated_at.into(),
            archived_at: flow.archived_at.map(Into::into),
        }
    }
}

/// A version of a flow.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlowVersion")]
struct VersionView {
    flow_id: String,
    version: String,
    /// As its author wrote it.
    #[schemars(with = "Map<String, Value>")]
    definition: Value,
    /// SHA-256 of the definition in hexadecimal digits, whatever the order of its keys.
    digest: String,
    created_by: Uuid,
    created_at: Timestamp,
}

impl From<FlowVersion> for VersionView {
    fn from(version: FlowVersion) -> Self {
        Self {
            flow_id: version.flow_id,
            version: version.version,
            definition: version.definition,
            digest: hex(&version.digest),
            created_by: version.created_by,
            created_at: version.created_at.into(),
        }
    }
}

/// A flow that was registered.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RegisteredFlow")]
struct RegisteredView {
    #[serde(flatten)]
    flow: View,
    /// What in its definition is probably not meant, at most 20.
    warnings: Vec<FaultView>,
}

/// A version of a flow that was made.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MadeFlowVersion")]
struct MadeVersionView {
    #[serde(flatten)]
    version: VersionView,
    /// What in its definition is probably not meant, at most 20.
    warnings: Vec<FaultView>,
}

/// A version in a list: read it for what it says.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ListedFlowVersion")]
struct ListedView {
    version: String,
    created_by: Uuid,
    created_at: Timestamp,
}

impl From<Listed> for ListedView {
    fn from(version: Listed) -> Self {
        Self {
            version: version.version,
            created_by: version.created_by,
            created_at: version.created_at.into(),
        }
    }
}

/// What was found in a definition.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CheckedFlow")]
struct CheckedView {
    /// It has no faults.
    valid: bool,
    /// Null where a fault hides it.
    flow_id: Option<String>,
    /// Null where a fault hides it.
    version: Option<String>,
    /// What is wrong, at most 20.
    faults: Vec<FaultView>,
    /// What is probably not meant, at most 20.
    warnings: Vec<FaultView>,
    /// Null where a fault hides it.
    graph: Option<Node>,
}

/// A definition, and the project that it is for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = example(true))]
struct NewFlow {
    project_id: Id,
    /// In the Open Workflow DSL 1.0, as far as it is taken.
    definition: Map<String, Value>,
}

impl Names<Project> for NewFlow {
    fn named(&self) -> Uuid {
        self.project_id.0
    }
}

/// A version of a flow to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = example(false))]
struct NewFlowVersion {
    /// Its `document` names the flow, and the version.
    definition: Map<String, Value>,
}

/// What to change of a flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"title": "Refunds of orders"}))]
struct ChangeFlow {
    title: Option<Text<0, TITLE_MOST>>,
    description: Option<Text<0, 16_384>>,
}

fn example(of_new: bool) -> Value {
    let (name, version) = match of_new {
        true => ("greet", "1.0.0"),
        false => ("refund", "1.1.0"),
    };
    let definition = json!({
        "document": {"dsl": "1.0.3", "namespace": "billing", "name": name, "version": version},
        "do": [{"say": {"set": {"text": "Hello"}}}],
    });
    match of_new {
        true => json!({"projectId": SOME_ID, "definition": definition}),
        false => json!({"definition": definition}),
    }
}

page_query! {
    /// Which flows.
    ListFlows {
        /// In this project.
        project_id: Option<Id>,
        /// Of this id; of each project that has one.
        flow_id: Option<Name>,
        /// True: those alone that are archived or whose project is. False: the others.
        #[serde(default)]
        archived: bool,
    }
}

fn validate(
    cx: &Cx<'_>,
    access: BodyOn<NewFlow, Project, Write>,
    _: Nothing,
) -> Result<Found<CheckedView>> {
    let BodyOn { body, on } = access;
    let report = examine(&Value::Object(body.definition));
    let mut faults = report.faults;
    if let Some(definition) = &report.definition {
        let own = Own {
            id: Uuid::nil(),
            flow_id: &definition.document.flow_id(),
            version: &definition.document.version,
        };
        let mut session = cx.store().session()?;
        let found = uses_of(&mut session, &on, on.row().project_id, (definition, &own))?;
        faults.extend(found.err().into_iter().flatten());
    }
    let definition = report.definition.as_ref();
    Ok(Found(CheckedView {
        valid: faults.is_empty(),
        flow_id: definition.map(|read| read.document.flow_id()),
        version: definition.map(|read| read.document.version.clone()),
        faults: faults.into_iter().map(Into::into).collect(),
        warnings: report.warnings.into_iter().map(Into::into).collect(),
        graph: definition.map(graph::of),
    }))
}

fn create(
    cx: &Cx<'_>,
    access: BodyOn<NewFlow, Project, Admin>,
    _: Nothing,
) -> Result<Created<RegisteredView>> {
    let BodyOn { body, on } = access;
    let written = Value::Object(body.definition);
    let (definition, warnings) = read_definition(&written)?;
    let document = &definition.document;
    let flow_id = document.flow_id();
    let title = document.title.as_deref().unwrap_or_default();
    let title: String = title.chars().take(TITLE_MOST).collect();
    let new = flows::New {
        id: cx.new_id(),
        flow_id: &flow_id,
        title: &title,
        description: document.summary.as_deref().unwrap_or_default(),
    };
    let (project_id, now) = (on.row().project_id, cx.now());
    let own = Own {
        id: new.id,
        flow_id: &flow_id,
        version: &document.version,
    };
    let flow = cx.transact(|tx| {
        let uses = uses_of(tx, &on, project_id, (&definition, &own))?.map_err(invalid)?;
        flow_versions::register(tx, &on, &new, &new_version(&own, &written, &uses)?, now)
    })?;
    let flow = flow.into();
    Ok(Created(RegisteredView { flow, warnings }))
}

fn new_version<'a>(
    own: &Own<'_>,
    definition: &'a Value,
    uses: &'a [Use],
) -> Result<NewVersion<'a>> {
    Ok(NewVersion {
        version: semver::Version::parse(own.version).map_err(Error::internal)?,
        definition,
        digest: digest_of(definition),
        uses,
    })
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Flow>,
    Query(query): Query<ListFlows>,
) -> Result<Found<Page<View>>> {
    let flow_id = query.flow_id.as_ref().map(Name::as_str);
    let page = query.page(&("flows", query.project_id, flow_id, query.archived))?;
    let filter = Filter {
        project_id: query.project_id.map(Uuid::from),
        flow_id,
        is_archived: query.archived,
    };
    let rows = flows::list(&mut cx.store().session()?, &listing, &filter, &page)?;
    Ok(Found(page.page(rows, |row| row.id, View::from)))
}

fn read(_: &Cx<'_>, flow: Authorized<Flow, Read>, _: Nothing) -> Result<Found<View>> {
    Ok(Found(flow.into_row().into()))
}

fn change(
    cx: &Cx<'_>,
    flow: Authorized<Flow, Admin>,
    Body(change): Body<ChangeFlow>,
) -> Result<Found<View>> {
    let now = cx.now();
    let title = change.title.as_ref().map(Text::as_str);
    let description = change.description.as_ref().map(Text::as_str);
    let changed = cx.transact(|tx| flows::update(tx, &flow, title, description, now))?;
    Ok(Found(changed.into()))
}

fn create_version(
    cx: &Cx<'_>,
    flow: Authorized<Flow, Write>,
    Body(body): Body<NewFlowVersion>,
) -> Result<Created<MadeVersionView>> {
    let written = Value::Object(body.definition);
    let (definition, warnings) = read_definition(&written)?;
    let own = Own {
        id: flow.row().id,
        flow_id: &flow.row().flow_id,
        version: &definition.document.version,
    };
    let flow_id = definition.document.flow_id();
    if flow_id != own.flow_id {
        return Err(invalid(vec![fault::Fault {
            path: "$.document".to_owned(),
            code: fault::Code::BadValue,
            message: format!(
                "The flow is {}, and the definition is of {flow_id}.",
                own.flow_id
            ),
            span: None,
            hint: Some("Another `namespace` or `name` is another flow: POST /v1/flows.".to_owned()),
        }]));
    }
    let (project_id, now) = (flow.row().project_id, cx.now());
    let version = cx.transact(|tx| {
        let uses = uses_of(tx, &flow, project_id, (&definition, &own))?.map_err(invalid)?;
        flow_versions::insert(tx, &flow, &new_version(&own, &written, &uses)?, now)
    })?;
    let version = version.into();
    Ok(Created(MadeVersionView { version, warnings }))
}

fn list_versions(
    cx: &Cx<'_>,
    flow: Authorized<Flow, Read>,
    Query(query): Query<PageQuery>,
) -> Result<Found<Page<ListedView>>> {
    let page = query.page(&("flow-versions", flow.row().id))?;
    let rows = flow_versions::list(&mut cx.store().session()?, &flow, &page)?;
    let id = |row: &Listed| position_id(row.position);
    Ok(Found(page.page(rows, id, ListedView::from)))
}

fn version_in_path(cx: &Cx<'_>, flow: &Authorized<Flow, Read>) -> Result<FlowVersion> {
    let version = cx.parameter("version")?;
    flow_versions::read(&mut cx.store().session()?, flow, &version)
}

fn read_version(
    cx: &Cx<'_>,
    flow: Authorized<Flow, Read>,
    _: Nothing,
) -> Result<Found<VersionView>> {
    Ok(Found(version_in_path(cx, &flow)?.into()))
}

fn read_graph(cx: &Cx<'_>, flow: Authorized<Flow, Read>, _: Nothing) -> Result<Found<Node>> {
    let version = version_in_path(cx, &flow)?;
    let (definition, _) = read_definition(&version.definition)?;
    Ok(Found(graph::of(&definition)))
}

fn promote(
    cx: &Cx<'_>,
    flow: Authorized<Flow, Admin>,
    Body(promotion): Body<Promotion>,
) -> Result<Found<View>> {
    let version = promotion.version.map(|version| version.0.to_string());
    let now = cx.now();
    let promoted = cx
        .transact(|tx| flows::promote(tx, &flow, version.as_deref(), now))
        .map_err(|error| match error.code() {
            Code::NotFound => error.detail("path", "$.version"),
            _ => error,
        })?;
    Ok(Found(promoted.into()))
}
