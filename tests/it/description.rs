//! The API description, as tools read it: every generator of clients and every linter that `tests/description/check`
//! runs has nothing to say, and a generated client reads runs from a server.
//!
//! Not here: that what is described is mounted, and the description as a snapshot (`routes`); that its examples are taken
//! (`sweep`).

use crate::harness::App;
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::http::faults::KEYWORDS;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of what is generated; it goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn make() -> Self {
        let name = format!("description-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Best effort: it stands in the build's own directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What a command prints, if it succeeds.
#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let faults = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{faults}");
    said
}

#[test]
fn generators_and_linters_are_content_and_a_generated_client_reads_runs() {
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Done."),
    })
    .unwrap();
    let app = App::start_with_secrets();
    let agent = app.agent(&provider.base_url());
    let runs = [app.start_turn(agent, "a"), app.start_turn(agent, "b")];
    for run in &runs {
        app.finished(run);
    }
    let directory = Directory::make();
    let description = directory.0.join("openapi.json");
    std::fs::write(&description, app.get("/openapi.json").text).unwrap();
    let mut check = Command::new(file("tests/description/check"));
    let said = printed(check.arg(&description).arg(&directory.0));
    assert_eq!(said.matches(" clean\n").count(), 5, "{said}");

    let parts = printed(&mut Command::new(file("tests/setup/where")));
    let python = Path::new(parts.trim()).join("openapi-python-client/bin/python");
    let read = printed(
        Command::new(python)
            .arg(file("tests/description/client.py"))
            .arg(&runs[0])
            .env("PYTHONPATH", &directory.0)
            .env("BASE_URL", format!("http://{}", app.address()))
            .env("TOKEN", app.token()),
    );
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(read["runs"], json!(runs));
    assert_eq!(read["status"], "completed");
    assert_eq!(
        read["events"],
        json!([
            [1, "RunCreatedEvent", "run.created"],
            [2, "RunStartedEvent", "run.started"],
            [3, "StepStartedEvent", "step.started"],
            [4, "StepCompletedEvent", "step.completed"],
            [5, "RunCompletedEvent", "run.completed"],
        ])
    );
    assert_eq!(read["answers"], json!([["ModelStepAnswer", "Done."]]));
}

/// Every schema of the description, with where it stands.
fn schemas(place: &str, value: &Value, each: &mut impl FnMut(&str, &Value)) {
    each(place, value);
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = value.get(keyword) {
            schemas(&format!("{place}.{keyword}"), inner, each);
        }
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        for inner in value[keyword].as_array().into_iter().flatten() {
            schemas(&format!("{place}.{keyword}"), inner, each);
        }
    }
    for (name, inner) in value["properties"].as_object().into_iter().flatten() {
        schemas(&format!("{place}.{name}"), inner, each);
    }
}

fn operations(described: &Value) -> Vec<(String, &Value)> {
    let paths = described["paths"].as_object().unwrap();
    let methods = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (format!("{method} {path}"), operation))
    });
    methods.collect()
}

#[test]
fn schemas_have_the_form_that_tools_read() {
    let app = App::start_with_secrets();
    let described = app.get("/openapi.json").expect(200);
    let components = &described["components"]["schemas"];
    for (name, schema) in components.as_object().unwrap() {
        schemas(name, schema, &mut |place, schema| {
            assert_ne!(schema, &json!(true), "{place}");
            assert_ne!(schema.get("default"), Some(&Value::Null), "{place}");
            let choices = schema["oneOf"].as_array();
            let constants = choices.into_iter().flatten();
            assert!(
                constants.clone().all(|one| one.get("const").is_none()),
                "{place}"
            );
        });
    }
    let event = &components["RunEvent"];
    let variants = event["oneOf"].as_array().unwrap();
    assert_eq!(variants.len(), 28);
    assert_eq!(event["discriminator"]["propertyName"], "kind");
    let mapping = event["discriminator"]["mapping"].as_object().unwrap();
    assert_eq!(mapping.len(), variants.len());
    for (kind, reference) in mapping {
        let name = reference.as_str().unwrap().rsplit('/').next().unwrap();
        let properties = &components[name]["properties"];
        assert_eq!(properties["kind"]["const"], json!(kind), "{name}");
        assert_eq!(properties["seq"]["type"], "integer", "{name}");
    }
    let streamed =
        &described["paths"]["/v1/runs/{runId}/progress/stream"]["get"]["responses"]["200"];
    assert_eq!(
        streamed["content"]["text/event-stream"]["schema"]["$ref"],
        "#/components/schemas/RunStreamData"
    );
}

#[test]
fn parameters_say_what_they_are_and_are_never_null() {
    let app = App::start_with_secrets();
    let described = app.get("/openapi.json").expect(200);
    let mut limits = 0;
    for (operation, described) in operations(&described) {
        for parameter in described["parameters"].as_array().unwrap() {
            let place = format!("{operation} {}", parameter["name"]);
            assert!(parameter["description"].is_string(), "{place}");
            let schema = &parameter["schema"];
            assert!(schema.get("description").is_none(), "{place}");
            assert!(!schema.to_string().contains("null"), "{place}");
            if parameter["name"] == "limit" {
                limits += 1;
                let bounds = (&schema["minimum"], &schema["maximum"], &schema["default"]);
                assert_eq!(bounds, (&json!(1), &json!(200), &json!(50)), "{place}");
            }
        }
    }
    assert!(limits > 20);
}

/// What takes no credential: each leads to one.
const OPEN: [&str; 4] = [
    "enrolments.redeem",
    "signIn.byEnrolment",
    "signIn.byToken",
    "signIn.ways",
];

#[test]
fn operations_share_their_errors_and_name_their_nouns_and_credentials() {
    let app = App::start_with_secrets();
    let described = app.get("/openapi.json").expect(200);
    let tags: Vec<&str> = described["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| {
            assert!(tag["description"].is_string(), "{tag}");
            tag["name"].as_str().unwrap()
        })
        .collect();
    assert_eq!(tags[..2], ["agents", "runs"]);
    let mut repeatable = Vec::new();
    for (operation, described) in operations(&described) {
        for (status, answer) in described["responses"].as_object().unwrap() {
            let reference = answer["$ref"].as_str().unwrap_or_default();
            let is_shared = reference.starts_with("#/components/responses/");
            assert_eq!(is_shared, status.as_str() >= "400", "{operation} {status}");
        }
        let tag = described["tags"][0].as_str().unwrap();
        assert!(tags.contains(&tag), "{operation}");
        let name = described["operationId"].as_str().unwrap();
        let open = described["security"] == json!([]);
        assert_eq!(open, OPEN.contains(&name), "{operation}");
        let body = &described["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        if let Some(body) = body.as_str() {
            let body = described_schema(&app, body);
            assert!(
                body["examples"][0].is_object(),
                "{operation} has no example"
            );
        }
        let parameters = described["parameters"].as_array().unwrap().iter();
        let mut headers = parameters.filter(|parameter| parameter["in"] == "header");
        if headers.any(|header| header["name"] == "Idempotency-Key") {
            repeatable.push(name);
        }
    }
    assert_eq!(
        repeatable,
        ["runs.create", "runs.retry", "webhookEndpoints.create"]
    );
    let text = described["info"]["description"].as_str().unwrap();
    assert!(
        text.contains("`runs.create`, `runs.retry`, `webhookEndpoints.create`"),
        "{text}"
    );
    let paths = described["paths"].as_object().unwrap().keys();
    assert!(paths.into_iter().all(|path| path.starts_with("/v1/")));
}

fn described_schema(app: &App, reference: &str) -> Value {
    let name = reference.rsplit('/').next().unwrap();
    let described = app.get("/openapi.json").expect(200);
    described["components"]["schemas"][name].clone()
}

/// Answers without an `id` of their own, each with the reason.
const WITHOUT_ID: [(&str, &str); 42] = [
    (
        "WebhookEndpoint",
        "its id is `endpointId`, as clients read it from `webhookEndpoints.create`",
    ),
    (
        "OrgAdmin",
        "a person in an org: `orgId` and `userId` together",
    ),
    ("Reviewer", "a person with what they may review: `userId`"),
    (
        "Membership",
        "a person in a project: `projectId` and `userId` together",
    ),
    (
        "TeamMembership",
        "a person in a team: `teamId` and `userId` together",
    ),
    (
        "TeamGrant",
        "a team in a project: `projectId` and `teamId` together",
    ),
    (
        "AccessEntry",
        "somebody who may do something in a project: `principal` has the id",
    ),
    ("AgentVersion", "counted within its agent: `version`"),
    ("ListedAgentVersion", "counted within its agent: `version`"),
    ("FlowVersion", "counted within its flow: `version`"),
    ("MadeFlowVersion", "counted within its flow: `version`"),
    ("ListedFlowVersion", "counted within its flow: `version`"),
    ("CheckedFlow", "the answer to a question"),
    ("IdentityProviderCheck", "the answer to a question"),
    ("ModelProviderCheck", "the answer to a question"),
    ("SignedOut", "of the request's own session, which has ended"),
    ("FlowNode", "a part of a version"),
    (
        "ConversationMessage",
        "counted within its conversation: `position`",
    ),
    ("RunEvent", "counted within its run: `seq`"),
    ("RunStep", "counted within its run: `step`"),
    (
        "RunCheck",
        "counted within its run: `step`, `attempt` and `ordinal` together",
    ),
    ("Policy", "counted within its tenant or project: `version`"),
    ("TriedGuardrails", "the answer to a question"),
    ("RunStreamData", "the data of an event of a stream"),
    ("ApprovalStreamData", "the same, of a reviewer's stream"),
    (
        "Secret",
        "named within its environment: `environment` and `name`",
    ),
    (
        "Variable",
        "named within its environment: `environment` and `name`",
    ),
    ("Environment", "named: `name`"),
    ("Enrolment", "a code, shown once"),
    ("MintedPublicToken", "a signed token, stored nowhere"),
    ("StartedRun", "its `run` has the id"),
    ("Payload", "a part of a run"),
    ("RunState", "a part of a run"),
    ("Permissions", "what the caller may do"),
    ("Grants", "what a user may do"),
    ("CheckedUrl", "the answer to a question"),
    ("Resent", "a count"),
    ("InboxSummary", "counts"),
    ("UsageSum", "a sum"),
    (
        "ChangeStreamData",
        "a hint, which names an object by its id",
    ),
    ("SignInWays", "what a browser may sign in with"),
    ("SignInSettings", "the tenant's, of which there is one"),
];

#[test]
fn an_answer_names_its_own_id_id() {
    let app = App::start_with_secrets();
    let described = app.get("/openapi.json").expect(200);
    let schemas = &described["components"]["schemas"];
    let name = |schema: &Value| -> String {
        let reference = schema["$ref"].as_str().expect("an answer has a name");
        reference.rsplit('/').next().unwrap().to_owned()
    };
    let mut without = Vec::new();
    for (operation, described) in operations(&described) {
        for (status, answer) in described["responses"].as_object().unwrap() {
            for content in answer["content"].as_object().into_iter().flatten() {
                if status.as_str() >= "300" {
                    continue;
                }
                let answer = name(&content.1["schema"]);
                let items = &schemas[&answer]["properties"]["data"]["items"];
                let object = if items.is_null() { answer } else { name(items) };
                let fields = &schemas[&object]["properties"];
                if fields.get("id").is_none() {
                    without.push((operation.clone(), object));
                }
            }
        }
    }
    for (operation, object) in &without {
        assert!(
            WITHOUT_ID.iter().any(|(name, _)| name == object),
            "{operation} answers {object}, which has no `id`. Name its own id so; if it has none, say why in WITHOUT_ID."
        );
    }
    for (object, _) in WITHOUT_ID {
        let is_answered = without.iter().any(|(_, name)| name == object);
        assert!(
            is_answered,
            "{object} has an `id`, or no route answers it: take it off the list"
        );
    }
}

/// A fault of a body that its schema rules out is told beside others, so the walk over bodies knows every keyword.
#[test]
fn bodies_are_described_with_the_keywords_that_are_checked() {
    let app = App::start_with_secrets();
    let described = app.get("/openapi.json").expect(200);
    let named = &described["components"]["schemas"];
    let for_readers = ["type", "description", "default", "examples", "writeOnly"];
    let mut due: Vec<Value> = operations(&described)
        .iter()
        .map(|(_, operation)| &operation["requestBody"]["content"]["application/json"]["schema"])
        .cloned()
        .collect();
    let mut known = HashSet::new();
    while let Some(root) = due.pop() {
        schemas("", &root, &mut |place, schema| {
            let reference = schema["$ref"].as_str();
            for keyword in schema.as_object().into_iter().flat_map(|all| all.keys()) {
                let is_known =
                    KEYWORDS.contains(&keyword.as_str()) || for_readers.contains(&keyword.as_str());
                assert!(is_known, "{place}: http::faults does not check {keyword}");
            }
            let name = reference.and_then(|text| text.rsplit('/').next());
            if let Some(name) = name.filter(|name| known.insert((*name).to_owned())) {
                due.push(named[name].clone());
            }
        });
    }
    assert!(known.len() > 30);
}
