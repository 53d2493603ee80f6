//! Flows, their versions, and what a run finds of them.

use crate::harness::{App, made};
use agent_runtime::store::flow_versions::{self, Use, UseKind};
use agent_runtime::store::flows;
use serde_json::{Value, json};
use uuid::Uuid;

#[test]
fn a_run_finds_its_definition_with_what_the_version_was_made_with() {
    let app = App::start();
    let project: Uuid = made::project(&app).parse().unwrap();
    let tool = app
        .post("/v1/tools", &made::tool(&project.to_string(), "orders_get"))
        .expect(201);
    let tool: Uuid = made::id(&tool).parse().unwrap();
    let (tenant, user, flow) = (app.seeds.tenant_id, app.seeds.user_id, Uuid::from_u128(7));
    let definition = json!({"z": 1, "a": [{"order": {"call": "tool"}}]});
    let mut client = app.database.client();
    let fill = format!(
        "insert into flows (tenant_id, id, project_id, flow_id, title, description, created_by, created_at, updated_at)
           values ('{tenant}', '{flow}', '{project}', 'billing.refund', '', '', '{user}', now(), now());
         insert into flow_versions (tenant_id, id, version, position, definition, digest, created_by, created_at)
           values ('{tenant}', '{flow}', '1.2.0', 1, '{definition}', sha256('x'), '{user}', now());
         insert into flow_version_uses (tenant_id, id, version, position, kind, name, tool_id, used_id, used_version)
           values ('{tenant}', '{flow}', '1.2.0', 2, 'flow', 'billing.refund', null, '{flow}', '1.2.0'),
             ('{tenant}', '{flow}', '1.2.0', 1, 'tool', 'orders_get', '{tool}', null, null);
         update flows set latest_version = '1.2.0'"
    );
    client.batch_execute(&fill).unwrap();
    let mut sql = app.server().shared().store.session().unwrap();
    let mut find = |tenant, project, flow_id: &str, version: &str| {
        flow_versions::definition_of(&mut sql, (tenant, project), flow_id, version).unwrap()
    };
    let found = find(tenant, project, "billing.refund", "1.2.0").unwrap();
    assert_eq!(found.id, flow);
    assert_eq!(found.definition.to_string(), definition.to_string());
    let used = |kind, name: &str, version: Option<&str>, id| Use {
        kind,
        name: name.to_owned(),
        version: version.map(str::to_owned),
        id,
    };
    let expected = [
        used(UseKind::Tool, "orders_get", None, tool),
        used(UseKind::Flow, "billing.refund", Some("1.2.0"), flow),
    ];
    assert_eq!(found.uses, expected);
    for (tenant, project, flow_id, version) in [
        (user, project, "billing.refund", "1.2.0"),
        (tenant, user, "billing.refund", "1.2.0"),
        (tenant, project, "billing.other", "1.2.0"),
        (tenant, project, "billing.refund", "1.2.1"),
    ] {
        assert_eq!(find(tenant, project, flow_id, version), None);
    }
    let named = flows::named(&mut sql, (tenant, project), "billing.refund").unwrap();
    assert_eq!(named.unwrap().current_version(), Some("1.2.0"));
    client
        .execute(
            "update flows set live_version = '1.2.0', latest_version = null",
            &[],
        )
        .unwrap();
    let named = flows::named(&mut sql, (tenant, project), "billing.refund").unwrap();
    assert_eq!(named.unwrap().current_version(), Some("1.2.0"));
    // What it names stays: a tool that a version names is not deleted.
    let gone = app.delete(&format!("/v1/tools/{tool}"));
    let refused: Value = gone.expect_error(409, "conflict");
    assert!(
        refused["message"].as_str().unwrap().contains("flow"),
        "{refused}"
    );
}

/// A definition of `billing.refund` with these tasks.
fn definition(version: &str, tasks: &Value) -> Value {
    json!({
        "document": {"dsl": "1.0.3", "namespace": "billing", "name": "refund", "version": version,
            "title": "Refund", "summary": "Pays *money* back."},
        "do": tasks,
    })
}

fn simple(version: &str) -> Value {
    definition(version, &json!([{"one": {"set": {"a": 1}}}]))
}

#[track_caller]
fn register(app: &App, project: &str, definition: &Value) -> Value {
    let body = json!({"projectId": project, "definition": definition});
    app.post("/v1/flows", &body).expect(201)
}

/// The places and codes of the faults of a refused definition.
#[track_caller]
fn faults(refused: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let faults = refused["details"]["faults"].as_array().unwrap();
    faults
        .iter()
        .map(|fault| (text(&fault["path"]), text(&fault["code"])))
        .collect()
}

#[test]
fn a_flow_gets_versions_and_the_highest_release_is_the_latest() {
    let app = App::start();
    let project = made::project(&app);
    let mut flow = register(&app, &project, &simple("1.2.0"));
    let warnings = flow.as_object_mut().unwrap().remove("warnings");
    assert_eq!(warnings, Some(json!([])));
    assert_eq!(flow["flowId"], "billing.refund");
    assert_eq!(flow["title"], "Refund");
    assert_eq!(flow["description"], "Pays *money* back.");
    assert_eq!(flow["projectId"], json!(project));
    let live = |flow: &Value| json!([flow["latestVersion"], flow["liveVersion"]]);
    assert_eq!(live(&flow), json!(["1.2.0", null]));
    let path = format!("/v1/flows/{}", made::id(&flow));
    assert_eq!(app.get(&path).expect(200), flow);

    let versions = format!("{path}/versions");
    let make = |definition: Value| app.post(&versions, &json!({"definition": definition}));
    let older = make(simple("1.1.9")).expect(201);
    assert_eq!(
        (&older["flowId"], &older["version"]),
        (&json!("billing.refund"), &json!("1.1.9"))
    );
    assert_eq!(older["definition"], simple("1.1.9"));
    assert_eq!(older["digest"].as_str().unwrap().len(), 64);
    assert_eq!(live(&app.get(&path).expect(200)), json!(["1.2.0", null]));
    make(simple("2.0.0-rc.1")).expect(201);
    assert_eq!(live(&app.get(&path).expect(200)), json!(["1.2.0", null]));
    make(simple("1.10.0")).expect(201);
    assert_eq!(live(&app.get(&path).expect(200)), json!(["1.10.0", null]));
    let page = app
        .get(&format!("{versions}?order=asc&limit=3"))
        .expect(200);
    assert_eq!(
        made::column(&page, "version"),
        ["1.2.0", "1.1.9", "2.0.0-rc.1"]
    );
    let rest = format!(
        "{versions}?order=asc&cursor={}",
        page["nextCursor"].as_str().unwrap()
    );
    assert_eq!(
        made::column(&app.get(&rest).expect(200), "version"),
        ["1.10.0"]
    );
}

#[test]
fn the_same_version_once_more_answers_what_stands_and_another_is_refused() {
    let app = App::start();
    let flow = register(&app, &made::project(&app), &simple("1.2.0"));
    let versions = format!("/v1/flows/{}/versions", made::id(&flow));
    let make = |definition: Value| app.post(&versions, &json!({"definition": definition}));
    let older = make(simple("1.1.9")).expect(201);
    // Whatever the order of its keys.
    let mut turned = simple("1.1.9");
    let document = turned
        .as_object_mut()
        .unwrap()
        .shift_remove("document")
        .unwrap();
    turned["document"] = document;
    assert_eq!(make(turned).expect(201), older);
    let other = definition("1.1.9", &json!([{"one": {"set": {"a": 2}}}]));
    let refused = make(other).expect_error(409, "already-exists");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("document.version"),
        "{refused}"
    );
    let mut read = older;
    read.as_object_mut().unwrap().remove("warnings");
    assert_eq!(app.get(&format!("{versions}/1.1.9")).expect(200), read);
    app.get(&format!("{versions}/9.9.9"))
        .expect_error(404, "not-found");
}

#[test]
fn one_version_is_live_or_none() {
    let app = App::start();
    let project = made::project(&app);
    let flow = register(&app, &project, &simple("1.1.9"));
    let path = format!("/v1/flows/{}", made::id(&flow));
    let next = json!({"definition": simple("1.10.0")});
    app.post(&format!("{path}/versions"), &next).expect(201);
    let live = |flow: &Value| json!([flow["latestVersion"], flow["liveVersion"]]);
    let promote =
        |version: Value| app.post(&format!("{path}/promote"), &json!({"version": version}));
    assert_eq!(
        live(&promote(json!("1.1.9")).expect(200)),
        json!(["1.10.0", "1.1.9"])
    );
    let missing = promote(json!("9.9.9")).expect_error(404, "not-found");
    assert_eq!(missing["details"]["path"], "$.version");
    assert_eq!(
        live(&promote(Value::Null).expect(200)),
        json!(["1.10.0", null])
    );
    let changed = app.patch(&path, &json!({"title": "Refunds"})).expect(200);
    assert_eq!(
        (&changed["title"], &changed["description"]),
        (&json!("Refunds"), &flow["description"])
    );
    let again = json!({"projectId": project, "definition": simple("3.0.0")});
    app.post("/v1/flows", &again)
        .expect_error(409, "already-exists");
}

/// A project, an agent in it, and tasks of which some name what is not there.
fn named() -> (App, String, String, Value) {
    let app = App::start();
    let (project, elsewhere) = (made::project(&app), made::project(&app));
    app.post("/v1/tools", &made::tool(&project, "orders_get"))
        .expect(201);
    app.post("/v1/tools", &made::tool(&elsewhere, "elsewhere"))
        .expect(201);
    let agent = made::agent(&app, &project, "clerk");
    let version = made::version(&made::provider(&app), "1.0.0");
    app.post(&format!("/v1/agents/{agent}/versions"), &version)
        .expect(201);
    let tool = |name: &str| json!({"call": "tool", "with": {"tool": name}});
    let ask = |agent: &str, version: Option<&str>| {
        let mut with = json!({"agent": agent, "message": "Hello"});
        if let Some(version) = version {
            with["version"] = json!(version);
        }
        json!({"call": "agent", "with": with})
    };
    let sub = |name: &str, version: &str| json!({"run": {"workflow": {"namespace": "billing", "name": name, "version": version}}});
    let tasks = json!([
        {"good": tool("orders_get")},
        {"foreign": tool("elsewhere")},
        {"missing": tool("nothing")},
        {"byName": ask("clerk", Some("1.0.0"))},
        {"byId": ask(&agent, None)},
        {"unmade": ask("clerk", Some("2.0.0"))},
        {"nobody": ask("somebody", None)},
        {"itself": sub("refund", "1.0.0")},
        {"latest": sub("refund", "latest")},
        {"later": sub("refund", "1.0.1")},
        {"other": sub("other", "latest")},
    ]);
    (app, project, agent, tasks)
}

#[test]
fn what_a_definition_names_has_to_be_in_its_project() {
    let (app, project, _, tasks) = named();
    let written = definition("1.0.0", &tasks);
    let body = json!({"projectId": project, "definition": written});
    let refused = app
        .post("/v1/flows", &body)
        .expect_error(400, "flow-invalid");
    let found = faults(&refused);
    let at = |index: usize| {
        found[index]
            .0
            .split(".with")
            .next()
            .unwrap()
            .split(".run")
            .next()
            .unwrap()
            .to_owned()
    };
    assert!(
        found.iter().all(|(_, code)| code == "unknown-reference"),
        "{found:?}"
    );
    let places: Vec<String> = (0..found.len()).map(at).collect();
    let expected = [
        "$.do[1].foreign",
        "$.do[2].missing",
        "$.do[5].unmade",
        "$.do[6].nobody",
        "$.do[9].later",
        "$.do[10].other",
    ];
    assert_eq!(places, expected);
    let says = |index: usize| {
        refused["details"]["faults"][index]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(says(0), "The project has no tool elsewhere.");
    assert_eq!(says(2), "The agent clerk has no version 2.0.0.");

    // Checking says the same, and stores nothing.
    let checked = app.post("/v1/flows/validate", &body).expect(200);
    assert_eq!(
        (&checked["valid"], &checked["flowId"]),
        (&json!(false), &json!("billing.refund"))
    );
    assert_eq!(checked["faults"], refused["details"]["faults"]);
    assert_eq!(app.get("/v1/flows").expect(200)["data"], json!([]));
}

#[test]
fn what_a_definition_names_is_kept_with_its_version() {
    let (app, project, agent, tasks) = named();
    let good: Vec<&Value> = [0, 3, 4, 7, 8].map(|index| &tasks[index]).into();
    let flow = register(&app, &project, &definition("1.0.0", &json!(good)));
    let flow_id: Uuid = made::id(&flow).parse().unwrap();
    let mut sql = app.server().shared().store.session().unwrap();
    let of = (app.seeds.tenant_id, project.parse().unwrap());
    let pinned = flow_versions::definition_of(&mut sql, of, "billing.refund", "1.0.0").unwrap();
    let uses = pinned.unwrap().uses;
    let named: Vec<&str> = uses.iter().map(|used| used.name.as_str()).collect();
    assert_eq!(
        named,
        [
            "orders_get",
            "clerk",
            &agent,
            "billing.refund",
            "billing.refund"
        ]
    );
    assert_eq!(uses[1].id.to_string(), agent);
    assert_eq!((uses[3].id, uses[4].id), (flow_id, flow_id));
    assert_eq!(uses[3].version.as_deref(), Some("1.0.0"));
}

#[test]
fn a_definition_with_warnings_is_taken_and_they_are_told() {
    let app = App::start();
    let project = made::project(&app);
    let never = json!([{"a": {"set": {}, "then": "end"}}, {"b": {"set": {}}}]);
    let body = json!({"projectId": project, "definition": definition("1.0.0", &never)});
    let checked = app.post("/v1/flows/validate", &body).expect(200);
    assert_eq!(checked["valid"], true);
    let told = &checked["warnings"];
    assert_eq!(
        (&told[0]["path"], &told[0]["code"]),
        (&json!("$.do[1].b"), &json!("unreachable"))
    );
    let flow = app.post("/v1/flows", &body).expect(201);
    assert_eq!(&flow["warnings"], told);
    let versions = format!("/v1/flows/{}/versions", made::id(&flow));
    let made = app.post(
        &versions,
        &json!({"definition": definition("1.0.1", &never)}),
    );
    assert_eq!(&made.expect(201)["warnings"], told);
}

#[test]
fn a_definition_with_faults_makes_nothing_and_all_are_told() {
    let app = App::start();
    let project = made::project(&app);
    let wrong = definition(
        "1.0.0",
        &json!([{"one": {"set": {"a": 1}, "wiht": 2}}, {"two": {"listen": {}}}]),
    );
    let body = json!({"projectId": project, "definition": wrong});
    let refused = app
        .post("/v1/flows", &body)
        .expect_error(400, "flow-invalid");
    let found = faults(&refused);
    assert!(found.len() >= 2, "{found:?}");
    assert!(
        found
            .iter()
            .any(|(path, code)| path.starts_with("$.do[0].one") && code == "unknown-field")
    );
    assert!(
        found
            .iter()
            .any(|(path, code)| path.starts_with("$.do[1].two") && code == "unsupported")
    );
    let checked = app.post("/v1/flows/validate", &body).expect(200);
    assert_eq!(checked["faults"], refused["details"]["faults"]);
    assert_eq!(
        (&checked["valid"], &checked["graph"]),
        (&json!(false), &Value::Null)
    );
    assert_eq!(app.get("/v1/flows").expect(200)["data"], json!([]));

    let flow = register(&app, &project, &simple("1.0.0"));
    let versions = format!("/v1/flows/{}/versions", made::id(&flow));
    let mut other = simple("1.0.1");
    other["document"]["name"] = json!("other");
    let refused = app
        .post(&versions, &json!({"definition": other}))
        .expect_error(400, "flow-invalid");
    assert_eq!(
        faults(&refused),
        [("$.document".to_owned(), "bad-value".to_owned())]
    );
    app.post(&versions, &json!({"definition": wrong}))
        .expect_error(400, "flow-invalid");
    assert_eq!(
        app.get(&versions).expect(200)["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    for body in [
        json!({"projectId": project}),
        json!({"projectId": project, "definition": []}),
    ] {
        app.post("/v1/flows", &body)
            .expect_error(400, "invalid-body");
    }
}

#[test]
fn the_graph_of_a_version_is_read_and_that_of_a_checked_definition_is_the_same() {
    let app = App::start();
    let project = made::project(&app);
    let tasks = json!([
        {"choose": {"switch": [{"small": {"when": ".a < 1", "then": "last"}}]}},
        {"beside": {"fork": {"branches": [{"left": {"set": {"l": 1}}}, {"right": {"set": {"r": 1}}}]}}},
        {"last": {"set": {"c": 1}}},
    ]);
    let flow = register(&app, &project, &definition("1.0.0", &tasks));
    let path = format!("/v1/flows/{}/versions/1.0.0/graph", made::id(&flow));
    let graph = app.get(&path).expect(200);
    assert_eq!(graph["name"], "billing.refund");
    let paths = |node: &Value| -> Vec<String> {
        let children = node["children"].as_array().unwrap().iter();
        children
            .map(|child| child["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        paths(&graph),
        ["/do/0/choose", "/do/1/beside", "/do/2/last"]
    );
    assert_eq!(paths(&graph["children"][1]).len(), 2);
    assert_eq!(
        graph["edges"][0],
        json!({"from": "choose", "to": "last", "label": "small"})
    );
    let body = json!({"projectId": project, "definition": definition("1.0.0", &tasks)});
    let checked = app.post("/v1/flows/validate", &body).expect(200);
    assert_eq!(
        (&checked["valid"], &checked["graph"]),
        (&json!(true), &graph)
    );
}

#[test]
fn flows_are_listed_by_project_and_id_and_archived_ones_apart() {
    let app = App::start();
    let projects = [made::project(&app), made::project(&app)];
    let mut other = simple("1.0.0");
    other["document"]["name"] = json!("other");
    let refunds = [0, 1].map(|index| made::id(&register(&app, &projects[index], &simple("1.0.0"))));
    let other = made::id(&register(&app, &projects[0], &other));
    let list = |query: &str| {
        let page = app.get(&format!("/v1/flows?order=asc&{query}")).expect(200);
        made::column(&page, "id")
    };
    let [first, second] = refunds.clone();
    assert_eq!(list(""), [&*first, &second, &other]);
    assert_eq!(
        list(&format!("projectId={}", projects[0])),
        [&*first, &other]
    );
    assert_eq!(list("flowId=billing.refund"), refunds);
    assert_eq!(
        list(&format!("flowId=billing.refund&projectId={}", projects[1])),
        [&*second]
    );
    assert_eq!(list("flowId=billing"), [""; 0]);
    app.other_tenant()
        .get(&format!("/v1/flows/{first}"))
        .expect_error(404, "not-found");

    let act = |id: &str, act: &str| {
        app.send("POST", &format!("/v1/flows/{id}/{act}"), None, &[])
            .expect(200)
    };
    let archived = act(&first, "archive");
    assert!(archived["archivedAt"].is_string(), "{archived}");
    assert_eq!(act(&first, "archive"), archived, "again");
    assert_eq!(list("flowId=billing.refund"), [&*second]);
    assert_eq!(list("archived=true"), [&*first]);
    let versions = format!("/v1/flows/{first}/versions");
    let next = json!({"definition": simple("1.0.1")});
    let refused = app
        .post(&versions, &next)
        .expect_error(409, "flow-archived");
    assert!(
        refused["message"].as_str().unwrap().contains("/unarchive"),
        "{refused}"
    );
    let taken = json!({"projectId": projects[0], "definition": simple("1.0.1")});
    app.post("/v1/flows", &taken)
        .expect_error(409, "already-exists");
    assert_eq!(act(&first, "unarchive")["archivedAt"], Value::Null);
    app.post(&versions, &next).expect(201);

    app.send(
        "POST",
        &format!("/v1/projects/{}/archive", projects[1]),
        None,
        &[],
    )
    .expect(200);
    assert_eq!(list("archived=true"), [&*second], "its project is");
    for path in [
        format!("/v1/flows/{second}/versions"),
        "/v1/flows".to_owned(),
    ] {
        let body = match path.ends_with("flows") {
            true => json!({"projectId": projects[1], "definition": simple("1.0.1")}),
            false => next.clone(),
        };
        app.post(&path, &body).expect_error(409, "project-archived");
    }
}
