//! `POST /v1/runs`: starts an agent's turn or a flow.
//!
//! The body has one of two forms, which its field `agentId` or `flowId` tells. Access is checked on the agent or on the flow.

use super::request_parts::{SOME_ID, request_key};
use super::run_overrides::Overrides;
use super::runs::View;
use super::tokens::{MintedPublicToken, public_token};
use super::versions::SemanticVersion;
use crate::error::{Code, Error, Result};
use crate::flows::definition::tree::Definition;
use crate::http::access::{BodyOn, BodyOnFlow, Either, Names, NamesFlow};
use crate::http::context::Cx;
use crate::http::input::{Name, Nothing};
use crate::http::output::Accepted;
use crate::http::route::{Method, Route, route};
use crate::ids::Id;
use crate::proof::{Authorized, Write};
use crate::runtime::turn::definition::{AGENT_TURN, AGENT_TURN_VERSION, MESSAGE_BYTES};
use crate::store::agents::Agent;
use crate::store::conversations::Conversation;
use crate::store::flows::{self, Flow};
use crate::store::runs::{self, Labels, Models, NewRun, Origin, RequestKey, Run, StartOptions};
use crate::store::{Find, Sql, agent_versions};
use crate::tools::schema::faults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

/// JSON writes some characters as several bytes, so the body may be longer than its message.
const BODY_BYTES: u64 = 2 * 1024 * 1024;

/// Fixtures of a run.
const FIXTURES_MOST: usize = 500;

/// All of them, as JSON.
const FIXTURES_BYTES: usize = 256 * 1024;

/// The longest life of the public token that comes with a run.
const TOKEN_SECONDS: u32 = 900;

/// What a client that is not an app calls itself.
const ORIGIN_HEADER: &str = "svc-origin";

pub(super) fn routes() -> Vec<Route> {
    vec![
        route(Method::Post, "/v1/runs", "runs.create", "Start a run: an agent's turn, or a flow", create)
            .takes(BODY_BYTES)
            .repeatable("Names the request: a repetition within 24 hours answers with the run that the first one made.")
            .reads("Svc-Origin", "`command-line` from the command line.", || {
                json!({"type": "string", "enum": ["app", "command-line"], "default": "app"})
            })
            .answers(&[
                Code::Conflict,
                Code::IdempotencyMismatch,
                Code::IdempotencyInFlight,
                Code::ProjectArchived,
                Code::AgentArchived,
                Code::FlowArchived,
                Code::FlowInvalid,
                Code::InputInvalid,
                Code::OverrideNotAllowed,
            ]),
    ]
}

/// A turn to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"agentId": SOME_ID, "message": "Where is order 1234?", "labels": {"channel": "mail"}}))]
struct StartRun {
    agent_id: Id,
    /// The agent's version; left out: the conversation's own, else the live one, else the latest.
    version: Option<String>,
    /// The conversation to continue; left out: the turn stands alone.
    conversation_id: Option<Id>,
    /// What the user says, 1 MiB at most.
    #[schemars(length(min = 1, max = 1_048_576))]
    message: String,
    /// Changes nothing: the model is asked, but a tool is called only if it says so (its `dryRun`), and is told; of other calls the model is told that they were simulated.
    #[serde(default)]
    dry_run: bool,
    /// Keys and values of the caller's own, by which lists find the run: 16 at most. Whoever may read the run reads them.
    #[serde(default)]
    labels: Labels,
    /// What the run sets in place of its version's own; refused unless the version allows it. A retry keeps it; runs below it do
    /// not have it.
    overrides: Option<Overrides>,
}

impl Names<Agent> for StartRun {
    fn named(&self) -> Uuid {
        self.agent_id.0
    }
}

/// A run of a flow to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"flowId": "billing.refund", "input": {"orderId": "1234"}}))]
struct StartFlow {
    /// `namespace.name`.
    flow_id: Name,
    /// The flow's version; left out: the live one, else the latest.
    flow_version: Option<SemanticVersion>,
    /// The flow's project, where several have a flow of this id.
    project_id: Option<Id>,
    /// What the flow is given: it has to fit `input.schema` of its definition. Left out: an empty object.
    #[serde(default = "no_input")]
    input: Value,
    /// Evaluates everything and changes nothing: calls are made only if they read alone, or if they are of a tool that says so (its `dryRun`).
    #[serde(default)]
    dry_run: bool,
    /// Of a dry run: what steps answer, which are not performed then. By the JSON pointer of the step's task, as events have it in `path`; that of a flow which this one runs has the flow's id before it, as in `billing.pay/do/0/charge`. 500 at most, of 256 KiB of JSON together.
    #[serde(default)]
    #[schemars(extend("maxProperties" = FIXTURES_MOST))]
    fixtures: Map<String, Value>,
    /// Of a dry run: whether agents' turns ask their models. With `skip` no turn is begun: the step answers as one that is not performed.
    #[serde(default)]
    models: Models,
    /// Keys and values of the caller's own, by which lists find the run: 16 at most. Whoever may read the run reads them.
    #[serde(default)]
    labels: Labels,
}

fn no_input() -> Value {
    json!({})
}

impl NamesFlow for StartFlow {
    fn flow(&self) -> (&str, Option<Uuid>) {
        (self.flow_id.as_str(), self.project_id.map(Uuid::from))
    }
}

/// A run that was started.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartedRun {
    run: View,
    /// Lets a browser follow the run; null where public run tokens are off.
    public_token: Option<MintedPublicToken>,
}

impl StartedRun {
    /// The run that was created, with its token.
    pub(super) fn new(cx: &Cx<'_>, run: Run) -> Result<Self> {
        let (tenant_id, run_ids) = (run.tenant_id, vec![run.run_id]);
        Ok(Self {
            run: run.into(),
            public_token: public_token(cx, tenant_id, run_ids, TOKEN_SECONDS)?,
        })
    }
}

fn create(
    cx: &Cx<'_>,
    access: Either<BodyOn<StartRun, Agent, Write>, BodyOnFlow<StartFlow>>,
    _: Nothing,
) -> Result<Accepted<StartedRun>> {
    let user_id = match &access {
        Either::First(turn) => turn.on.caller().user_id,
        Either::Second(flow) => flow.on.caller().user_id,
    };
    if let Either::First(turn) = &access {
        check_message(&turn.body.message)?;
        if let Some(overrides) = &turn.body.overrides {
            overrides.check_bounds()?;
        }
    }
    let request = request_key(cx, user_id, "POST /v1/runs")?;
    let origin = origin(cx)?;
    let run = if request.is_none() && cx.is_undecided() {
        // One statement writes all of it.
        start(cx, &mut cx.store().session()?, access, origin, None)?
    } else {
        cx.transact(|tx| start(cx, tx, access, origin, request.as_ref()))?
    };
    cx.runtime().wake();
    StartedRun::new(cx, run).map(Accepted)
}

/// Creates the run, or finds the one that an earlier request of the same key made: before anything else is looked at, which
/// may have changed since, such as a flow's live version.
fn start(
    cx: &Cx<'_>,
    sql: &mut impl Sql,
    access: Either<BodyOn<StartRun, Agent, Write>, BodyOnFlow<StartFlow>>,
    origin: Origin,
    request: Option<&RequestKey>,
) -> Result<Run> {
    let (caller, project_id) = match &access {
        Either::First(turn) => (turn.on.caller(), turn.on.row().project_id),
        Either::Second(flow) => (flow.on.caller(), flow.on.row().project_id),
    };
    let (tenant_id, made) = (caller.tenant_id, Made::new(cx, origin, caller.user_id));
    if let Some(request) = request
        && let Some(earlier) = runs::remember_key(sql, tenant_id, request, made.run_id, made.at)?
    {
        return of_project(runs::find(sql, tenant_id, earlier)?, project_id);
    }
    match access {
        Either::First(BodyOn { body, on }) => start_turn(cx, sql, &on, body, made),
        Either::Second(BodyOnFlow { body, on }) => start_flow(cx, sql, &on, body, made),
    }
}

/// The earlier run, if its project is the one in which the caller's access was checked. Several projects may have a flow of
/// one id, and the project may come from the limit of the key: then the same body means another project.
fn of_project(earlier: Run, project_id: Uuid) -> Result<Run> {
    if earlier.project_id == project_id {
        return Ok(earlier);
    }
    Err(Error::new(
        Code::IdempotencyMismatch,
        "This Idempotency-Key was used for a run of another project. Use a new key for a new request.",
    ))
}

/// What a new run has, whatever runs.
#[derive(Clone, Copy)]
struct Made {
    run_id: Uuid,
    origin: Origin,
    by: Uuid,
    at: OffsetDateTime,
}

impl Made {
    fn new(cx: &Cx<'_>, origin: Origin, by: Uuid) -> Self {
        Self {
            run_id: cx.new_id(),
            origin,
            by,
            at: cx.now(),
        }
    }
}

/// Creates the run of a flow.
fn start_flow(
    cx: &Cx<'_>,
    sql: &mut impl Sql,
    on: &Authorized<Flow, Write>,
    body: StartFlow,
    made: Made,
) -> Result<Run> {
    let flow = on.row();
    let named = body.flow_version.map(|version| version.0.to_string());
    let version = named.as_deref().or(flow.current_version());
    let version = version.ok_or_else(|| Error::internal("a flow without a version"))?;
    let of = (on.caller().tenant_id, flow.project_id);
    let definition = cx
        .runtime()
        .flow_definition(sql, of, (&flow.flow_id, version))?
        .ok_or_else(|| flows::no_version(version))?;
    check_input(&definition, &body.input)?;
    let options = options(body.fixtures, body.models, body.dry_run)?;
    if !options.fixtures.is_empty()
        && let Some(fault) =
            cx.runtime()
                .fault_of_fixtures(sql, of, (&flow.flow_id, version), &options.fixtures)?
    {
        return Err(invalid("$.fixtures", &fault));
    }
    let run = NewRun {
        run_id: made.run_id,
        project_id: flow.project_id,
        flow_id: flow.flow_id.clone(),
        flow_version: version.to_owned(),
        origin: made.origin,
        dry_run: body.dry_run,
        options,
        agent: None,
        labels: body.labels,
        input: body.input,
        message: None,
        created_by: made.by,
        request_id: cx.started_by().request_id,
        created_at: made.at,
    };
    cx.runtime().create(sql, on, &run, cx.started_by())
}

/// Whether the input fits the schema that its flow has for it.
fn check_input(definition: &Definition, input: &Value) -> Result<()> {
    let schema = definition.input.schema.as_ref();
    match schema.and_then(|schema| faults(&schema.validator, input)) {
        None => Ok(()),
        Some(said) => Err(Error::new(
            Code::InputInvalid,
            format!("The input does not fit the flow: {said}."),
        )
        .detail("path", "$.input")),
    }
}

/// How the run is started, within bounds.
fn options(fixtures: Map<String, Value>, models: Models, dry_run: bool) -> Result<StartOptions> {
    let options = StartOptions {
        fixtures,
        models,
        ..StartOptions::default()
    };
    if !dry_run {
        for (path, is_given) in [
            ("$.fixtures", !options.fixtures.is_empty()),
            ("$.models", models != Models::default()),
        ] {
            if is_given {
                return Err(invalid(path, "it is for dry runs alone. Say dryRun too"));
            }
        }
    }
    let count = options.fixtures.len();
    if count > FIXTURES_MOST {
        let said = format!("there are {count}, and a run takes {FIXTURES_MOST}");
        return Err(invalid("$.fixtures", &said));
    }
    let bytes = json!(options.fixtures).to_string().len();
    if bytes > FIXTURES_BYTES {
        let said = format!("it has {bytes} bytes of JSON, and a run takes {FIXTURES_BYTES}");
        return Err(invalid("$.fixtures", &said));
    }
    Ok(options)
}

fn invalid(path: &str, said: &str) -> Error {
    let message = format!("The body's {path}: {said}.");
    Error::new(Code::InvalidBody, message).detail("path", path)
}

/// Creates the run of a turn.
fn start_turn(
    cx: &Cx<'_>,
    sql: &mut impl Sql,
    on: &Authorized<Agent, Write>,
    body: StartRun,
    made: Made,
) -> Result<Run> {
    let tenant_id = on.caller().tenant_id;
    let conversation_id = body.conversation_id.map(Uuid::from);
    let conversation = match conversation_id {
        Some(id) => Some(find_conversation(sql, tenant_id, id)?),
        None => None,
    };
    let (version, via) =
        agent_versions::resolve(sql, on, body.version.as_deref(), conversation.as_ref())?;
    let overrides = match body.overrides {
        Some(given) => given.of_run(sql, on, &version)?,
        None => runs::Overrides::default(),
    };
    let run = NewRun {
        run_id: made.run_id,
        project_id: on.row().project_id,
        flow_id: AGENT_TURN.to_owned(),
        flow_version: AGENT_TURN_VERSION.to_owned(),
        origin: made.origin,
        dry_run: body.dry_run,
        options: StartOptions {
            overrides,
            ..StartOptions::default()
        },
        agent: Some(runs::Agent {
            id: on.row().agent_id,
            version,
            conversation_id,
            via,
        }),
        labels: body.labels,
        input: json!({"message": body.message}),
        message: Some(body.message),
        created_by: made.by,
        request_id: cx.started_by().request_id,
        created_at: made.at,
    };
    cx.runtime().create(sql, on, &run, cx.started_by())
}

fn find_conversation(sql: &mut impl Sql, tenant_id: Uuid, id: Uuid) -> Result<Conversation> {
    // In the words for another agent's: which of the two it is, is not for everyone to know.
    Conversation::find(sql, tenant_id, id)?
        .ok_or_else(|| Error::not_found("conversation with this agent", id))
}

fn check_message(message: &str) -> Result<()> {
    if message.len() > MESSAGE_BYTES {
        return Err(Error::new(
            Code::BodyTooLarge,
            format!(
                "The message has {} bytes; a turn takes {MESSAGE_BYTES}.",
                message.len()
            ),
        )
        .detail("mostBytes", MESSAGE_BYTES));
    }
    if message.trim().is_empty() {
        return Err(invalid("$.message", "expected a text that is not blank"));
    }
    Ok(())
}

pub(super) fn origin(cx: &Cx<'_>) -> Result<Origin> {
    match cx.header(ORIGIN_HEADER) {
        None | Some("app") => Ok(Origin::App),
        Some("command-line") => Ok(Origin::CommandLine),
        Some(_) => Err(Error::new(
            Code::InvalidRequest,
            "Header Svc-Origin: expected app or command-line.",
        )),
    }
}
