//! What every route takes of a request's head, query and ids, and how it names what it does not take.

use crate::harness::App;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

/// The error of a `POST /v1/projects` whose body is said to have this many bytes and does not come.
fn refused(app: &App, body_bytes: u64) -> Value {
    let mut stream = TcpStream::connect(app.address()).unwrap();
    let head = format!(
        "POST /v1/projects HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {body_bytes}\r\n\r\n",
        app.token()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    body["error"].clone()
}

#[test]
fn whoever_refuses_a_body_for_its_length_names_the_most_in_one_field() {
    let app = App::start();
    // The door refuses what no route takes, and what this route does not take.
    for (body_bytes, most) in [(100 << 20, 2 << 20), (300 << 10, 256 << 10)] {
        let error = refused(&app, body_bytes);
        assert_eq!(error["code"], "body-too-large");
        assert_eq!(error["details"], json!({"mostBytes": most}));
    }
}

#[test]
fn a_query_parameter_without_a_value_is_a_fault() {
    let app = App::start();
    for (path, parameter) in [
        ("/v1/projects?limit=", "limit"),
        ("/v1/projects?limit", "limit"),
        ("/v1/projects?order=asc&cursor=", "cursor"),
        ("/v1/agents?projectId=", "projectId"),
        ("/v1/runs?status=&limit=5", "status"),
    ] {
        let error = app.get(path).expect_error(400, "invalid-request");
        assert_eq!(error["details"]["parameter"], parameter, "{path}");
    }
    app.get("/v1/projects?").expect(200);
}

#[test]
fn a_key_that_stands_twice_is_a_fault_wherever_it_is() {
    let app = App::start();
    for (path, body, place) in [
        ("/v1/projects", r#"{"name":"a","name":"a"}"#, "$.name"),
        (
            "/v1/runs",
            r#"{"flowId":"a.b","input":{"a":{"b":1,"b":1}}}"#,
            "$.input.a.b",
        ),
        (
            "/v1/flows",
            r#"{"definition":{"do":[{"a":{"set":{"b":1,"b":2}}}]}}"#,
            "$.definition.do[0].a.set.b",
        ),
    ] {
        let refused = app.send("POST", path, Some(body.to_owned()), &[]);
        let error = refused.expect_error(400, "invalid-body");
        assert_eq!(error["details"]["path"], place, "{path}");
    }
}

#[test]
fn a_run_of_neither_an_agent_nor_a_flow_is_told_of_both() {
    let app = App::start();
    for body in [
        json!({"flow": "billing.refund"}),
        json!({}),
        json!({"agent": "a", "message": "b"}),
    ] {
        let error = app
            .post("/v1/runs", &body)
            .expect_error(400, "invalid-body");
        let said = error["message"].as_str().unwrap();
        assert!(
            said.contains("flowId") && said.contains("agentId"),
            "{body}: {said}"
        );
    }
    // One that names an agent is told of what is wrong with the rest.
    let error = app
        .post("/v1/runs", &json!({"agentId": "x"}))
        .expect_error(400, "invalid-body");
    assert_eq!(error["details"]["path"], "$.agentId");
}

#[test]
fn an_id_in_a_query_has_one_form() {
    let app = App::start();
    let project = app.post("/v1/projects", &json!({"name": "a"})).expect(201);
    let id = project["id"].as_str().unwrap();
    let agent = json!({"projectId": id.to_uppercase(), "name": "a"});
    app.post("/v1/agents", &agent).expect(201);
    let list = |id: &str| app.get(&format!("/v1/agents?projectId={id}"));
    for same in [id, &id.to_uppercase()] {
        assert_eq!(list(same).expect(200)["data"].as_array().unwrap().len(), 1);
    }
    for other in [
        &id.replace('-', ""),
        &format!("%7B{id}%7D"),
        &format!("urn:uuid:{id}"),
    ] {
        let error = list(other).expect_error(400, "invalid-request");
        assert_eq!(error["details"]["parameter"], "projectId");
    }
}

#[test]
fn two_parents_of_a_trace_start_a_fresh_one_and_two_states_are_one() {
    let app = App::start();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = |headers: &[(&str, &str)]| {
        let answer = app.send("GET", "/v1/projects", None, headers);
        answer.header("traceresponse").unwrap()[3..35].to_owned()
    };
    let (one, state) = (("traceparent", parent), ("tracestate", "a=1"));
    assert_eq!(trace(&[one, state, state]), parent[3..35]);
    let fresh = trace(&[one, one]);
    assert_ne!(fresh, parent[3..35]);
    assert_ne!(fresh, trace(&[one, one]));
}

/// The path of each fault that the answer lists; the first one is the error's own.
#[track_caller]
fn faults(app: &App, path: &str, body: &Value) -> Vec<String> {
    let error = app.post(path, body).expect_error(400, "invalid-body");
    let (details, message) = (&error["details"], error["message"].as_str().unwrap());
    let faults = details["faults"].as_array().unwrap();
    assert_eq!(details["path"], faults[0]["path"], "{error}");
    let told = faults[0]["message"].as_str().unwrap();
    assert!(message.contains(told), "{error}");
    assert_eq!(message.contains("more fault"), faults.len() > 1, "{error}");
    let path = |fault: &Value| fault["path"].as_str().unwrap().to_owned();
    faults.iter().map(path).collect()
}

#[test]
fn all_faults_of_a_body_are_told_at_once() {
    let app = App::start();
    let project = app.post("/v1/projects", &json!({"name": "a"})).expect(201);
    let project_id = &project["id"];
    // What the body's shape rules out.
    let body = json!({"projectId": "x", "name": 7, "argumentsSchema": {}, "url": "no url",
        "timeoutMs": 0, "idempotent": "yes", "nam": 1});
    let expected = [
        "$.projectId",
        "$",
        "$.name",
        "$.url",
        "$.timeoutMs",
        "$.idempotent",
        "$.nam",
    ];
    assert_eq!(faults(&app, "/v1/tools", &body), expected);
    // What only the handler sees, and what the shape rules out beside it.
    let body = json!({"projectId": project_id, "name": "no name", "description": "",
        "argumentsSchema": {"type": "array"}, "url": "no url", "timeoutMs": 0});
    let expected = ["$.name", "$.timeoutMs", "$.argumentsSchema.type", "$.url"];
    assert_eq!(faults(&app, "/v1/tools", &body), expected);
    let model = json!({"name": "m", "prices": {"prompt": -1, "completion": 1e9}});
    let body = json!({"name": " ", "baseUrl": "no url", "models": [model, {}]});
    let expected = [
        "$.name",
        "$.baseUrl",
        "$.models[0].prices.prompt",
        "$.models[0].prices.completion",
        "$.models[1]",
    ];
    assert_eq!(faults(&app, "/v1/model-providers", &body), expected);
    let twice = json!([{"name": "m"}, {"name": "m"}]);
    let body = json!({"name": "p", "baseUrl": "no url", "apiKeyName": "none", "models": twice});
    let expected = ["$.baseUrl", "$.apiKeyName", "$.models[1].name"];
    assert_eq!(faults(&app, "/v1/model-providers", &body), expected);
    let body = json!({"agentId": "x", "version": "1", "title": 5});
    let expected = ["$.agentId", "$.version", "$.title"];
    assert_eq!(faults(&app, "/v1/conversations", &body), expected);
    // One fault is a list of one.
    assert_eq!(faults(&app, "/v1/projects", &json!([])), ["$"]);
    assert_eq!(
        faults(&app, "/v1/projects", &json!({"name": ""})),
        ["$.name"]
    );
    let many: Vec<usize> = (0..1000).collect();
    let body = json!({"runIds": many, "expiresInSeconds": 0});
    assert_eq!(faults(&app, "/v1/tokens/public", &body).len(), 3);
    // Of a body with a secret nothing is repeated, not even a field's name.
    let app = App::start_with_secrets();
    let secret = json!({"value": 1, "hunter2": 2});
    let error = app.put("/v1/secrets/prod/KEY", &secret);
    let error = error.expect_error(400, "invalid-body");
    assert_eq!(error["details"], json!({}));
}

#[test]
fn all_faults_of_a_query_are_told_at_once() {
    let app = App::start();
    let faults = |query: &str| {
        let error = app.get(&format!("/v1/runs?{query}"));
        let error = error.expect_error(400, "invalid-request");
        let faults = error["details"]["faults"].as_array().unwrap().clone();
        assert_eq!(error["details"]["parameter"], faults[0]["parameter"]);
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(faults[0]["message"].as_str().unwrap()),
            "{error}"
        );
        let name = |fault: &Value| fault["parameter"].as_str().unwrap().to_owned();
        faults.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(faults("limit=many&limits=5"), ["limit", "limits"]);
    let several = "status=lost&projectId=x&order=up&nam=1&limit=1";
    assert_eq!(faults(several), ["status", "projectId", "order", "nam"]);
    assert_eq!(faults("order=&agentId=x"), ["order", "agentId"]);
    assert_eq!(faults("limit=many"), ["limit"]);
}
