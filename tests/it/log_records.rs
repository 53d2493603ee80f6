//! What records of requests and runs say beside their message: the ids that are known, and errors as objects.

use crate::harness::{
    Answer, App, Database, LogLines, NewTool, ToolAnswer, ToolServer, eventually, license, made,
    seeds,
};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn start() -> (App, LogLines) {
    let (lines, clock) = (LogLines::default(), Clock::system());
    let seeds = seeds(&clock);
    let log = lines.debug_logger();
    let app = App::start_logged(Database::migrated(), clock, seeds, &log, |_| {});
    (app, lines)
}

fn traced(app: &App, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let body = body.map(ToString::to_string);
    app.send(method, path, body, &[("traceparent", PARENT)])
}

/// Asserts that a record says these ids.
#[track_caller]
fn says(record: &Value, fields: &[(&str, &str)]) {
    for (name, value) in fields {
        assert_eq!(record[name], json!(value), "{name} of {record}");
    }
}

#[test]
fn records_of_a_request_say_its_trace_its_caller_and_what_its_path_names() {
    let (app, lines) = start();
    let nobody = app.clock.new_id().to_string();
    let tenant_id = app.seeds.tenant_id.to_string();
    for (path, name) in [
        ("projects", "projectId"),
        ("runs", "runId"),
        ("agents", "agentId"),
        ("tools", "toolId"),
    ] {
        let answer = traced(&app, "GET", &format!("/v1/{path}/{nobody}"), None);
        let request_id = answer.header("x-request-id").unwrap().to_owned();
        let response = answer.header("traceresponse").unwrap().to_owned();
        answer.expect_error(404, "not-found");
        let records = lines.records(&request_id);
        assert_eq!(records.len(), 1, "{records:?}");
        let record = &records[0];
        assert_eq!(record["message"], "A request was refused");
        says(
            record,
            &[
                ("traceId", TRACE),
                ("spanId", &response[36..52]),
                ("requestId", &request_id),
                ("tenantId", &tenant_id),
                (name, &nobody),
            ],
        );
        says(
            &record["error"],
            &[("name", "Error"), ("code", "not-found")],
        );
    }
    // Before its body is read, and before its caller is known.
    let long = json!({"name": "a".repeat(64 * 1024)});
    let stranger = app.with_token(None);
    let refused = stranger.send("POST", "/v1/projects", Some(long.to_string()), &[]);
    let request_id = refused.header("x-request-id").unwrap().to_owned();
    let response = refused.header("traceresponse").unwrap().to_owned();
    refused.expect_error(401, "unauthenticated");
    let record = &lines.records(&request_id)[0];
    says(
        record,
        &[("traceId", &response[3..35]), ("spanId", &response[36..52])],
    );
    // What is no id is nobody's.
    let answer = app.get("/v1/runs/not-an-id");
    let request_id = answer.header("x-request-id").unwrap().to_owned();
    assert!(lines.records(&request_id)[0].get("runId").is_none());
}

#[test]
fn records_of_a_run_say_what_started_it() {
    let (app, lines) = start();
    let provider = Provider::start(Script {
        queue: vec![Step::new(Reply::ToolCalls(vec![(
            "look_up".to_owned(),
            json!({}),
        )]))],
        then: Step::text("Found."),
    })
    .unwrap();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("found"));
    let maker = app.maker();
    let project = maker.project();
    let tool_id = maker.tool(project, &NewTool::new("look_up", &tool.url()));
    let agent = maker.agent_of(project, &provider.base_url(), |version| {
        version.tools = vec![tool_id];
    });
    let body = json!({"agentId": agent, "message": "Look."});
    let answer = traced(&app, "POST", "/v1/runs", Some(&body));
    let request_id = answer.header("x-request-id").unwrap().to_owned();
    let request_span = answer.header("traceresponse").unwrap()[36..52].to_owned();
    let run_id = made::id(&answer.expect(202)["run"]);
    assert_eq!(app.finished(&run_id)["status"], "completed");
    let [tenant, project, agent, tool] =
        [app.seeds.tenant_id, project, agent, tool_id].map(|id| id.to_string());
    let check = |message: &str, count: usize| {
        let records = eventually("the records", || {
            let records = lines.records(message);
            (records.len() == count).then_some(records)
        });
        for record in &records {
            says(
                record,
                &[
                    ("traceId", TRACE),
                    ("requestId", &request_id),
                    ("tenantId", &tenant),
                    ("projectId", &project),
                    ("runId", &run_id),
                    ("agentId", &agent),
                ],
            );
            let span = record["spanId"].as_str().unwrap();
            assert!(span.len() == 16 && span != request_span, "{record}");
        }
        records
    };
    let calls = check("A model call ended", 2);
    assert_eq!(calls[0]["gen_ai.request.model"], "m");
    let calls = check("A tool call ended", 1);
    says(&calls[0], &[("toolId", &tool), ("outcome", "done")]);
}

#[test]
fn a_fault_of_a_run_is_an_error_with_its_parts() {
    let (app, lines) = start();
    app.sql("alter table run_model_calls add constraint no_answer check (outcome <> 'completed')");
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes."),
    })
    .unwrap();
    let run_id = app.start_turn(app.agent(&provider.base_url()), "a");
    let records = eventually("the run to meet a fault", || {
        let records = lines.records("A run could not be continued");
        (!records.is_empty()).then_some(records)
    });
    says(&records[0], &[("runId", &run_id), ("level", "warn")]);
    let error = &records[0]["error"];
    says(error, &[("name", "Error"), ("code", "internal")]);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("no_answer") && !message.contains("DETAIL"),
        "{error}"
    );
    let stack = error["stack"].as_str().unwrap();
    assert!(
        stack.contains("src/store/") && stack.contains("DETAIL"),
        "{error}"
    );
}

#[test]
fn probes_continue_the_trace_too() {
    let (app, _) = start();
    for path in ["/healthz", "/readyz", "/metrics"] {
        for method in ["GET", "HEAD"] {
            let answer = traced(&app, method, path, None);
            assert_eq!(answer.status, 200, "{method} {path}");
            let response = answer.header("traceresponse").unwrap();
            assert!(response.starts_with(&format!("00-{TRACE}-")), "{response}");
            assert_ne!(response, PARENT);
            let id = answer.header("x-request-id").unwrap();
            let id = id.strip_prefix("req-").unwrap();
            assert!(id.parse::<Uuid>().is_ok(), "{id}");
        }
    }
}

/// A server may run for months after its start, which warned of nothing.
#[test]
fn the_end_of_the_license_is_said_again_once_a_day() {
    const HOUR: Duration = Duration::from_secs(3600);
    let (lines, clock) = (LogLines::default(), Clock::system());
    let seeds = seeds(&clock);
    let log = lines.logger();
    let app = App::start_logged(Database::migrated(), clock, seeds, &log, |options| {
        options.license = Some(license(60));
    });
    let minted = app.post("/v1/tokens", &json!({"name": "pipeline"}));
    let minted = minted.expect(201);
    let other = app.with_token(minted["token"].as_str());
    let last_use = || {
        let listed = app.get("/v1/tokens").expect(200);
        let rows = listed["data"].as_array().unwrap();
        rows.iter().find(|row| row["id"] == minted["id"]).unwrap()["lastUsedAt"].clone()
    };
    // The thread that warns writes uses of tokens after it: a new use shows that it looked.
    let looks_after = |hours: u32| {
        let before = last_use();
        app.clock.advance(HOUR * hours);
        eventually("a use to be written", || {
            other.get("/v1/projects").expect(200);
            (last_use() != before).then_some(())
        });
    };
    let said = || lines.records("The license ends at").len();
    looks_after(20 * 24);
    assert_eq!(said(), 0);
    for (hours, warnings) in [(15 * 24, 1), (12, 2)] {
        app.clock.advance(HOUR * hours);
        eventually("a warning", || (said() == warnings).then_some(()));
        looks_after(12);
        assert_eq!(said(), warnings);
    }
}
