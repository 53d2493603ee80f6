//! What an operator sees of a run's end: one record, and the metrics of the run and its calls.

use crate::harness::{
    App, Database, LogLines, NewTool, ToolAnswer, ToolServer, eventually, made, seeds,
};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::ids::Clock;
use serde_json::{Value, json};
use std::time::Duration;

fn start() -> (App, LogLines) {
    let (lines, clock) = (LogLines::default(), Clock::system());
    let seeds = seeds(&clock);
    let log = lines.logger();
    let app = App::start_logged(Database::migrated(), clock, seeds, &log, |options| {
        options.runs.first_wait = Duration::from_secs(5);
    });
    (app, lines)
}

/// The one record of a run's end.
#[track_caller]
fn record(lines: &LogLines, run_id: &str) -> Value {
    let ends = || -> Vec<Value> {
        let records = lines.records("A run ended").into_iter();
        records.filter(|one| one["runId"] == run_id).collect()
    };
    let records = eventually("the record", || Some(ends()).filter(|all| !all.is_empty()));
    assert_eq!(records.len(), 1, "{records:?}");
    records[0].clone()
}

#[track_caller]
fn figure(app: &App, series: &str) -> f64 {
    let text = app.get("/metrics").text;
    let figures = text.lines().filter_map(|line| line.rsplit_once(' '));
    let mut found = figures.filter(|(name, _)| *name == series);
    let (_, value) = found.next_back().unwrap_or_else(|| panic!("no {series}"));
    value.parse().unwrap()
}

#[test]
fn a_run_that_ended_is_one_record_and_counts() {
    let (app, lines) = start();
    let call = Reply::ToolCalls(vec![("look_up".to_owned(), json!({}))]);
    let provider = Provider::start(Script {
        queue: vec![Step::new(call)],
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
    let labels = json!({"channel": "mail"});
    let body = json!({"agentId": agent, "message": "Look.", "labels": labels});
    let run_id = made::id(&app.post("/v1/runs", &body).expect(202)["run"]);
    let run = app.finished(&run_id);
    let record = record(&lines, &run_id);
    let usage = &run["usage"];
    for (name, expected) in [
        ("level", json!("info")),
        ("subsystem", json!("runtime")),
        ("tenantId", json!(app.seeds.tenant_id)),
        ("projectId", json!(project)),
        ("agentId", json!(agent)),
        ("agentVersion", run["agent"]["version"].clone()),
        ("flowId", run["flowId"].clone()),
        ("status", json!("completed")),
        ("steps", json!(3)),
        ("modelCalls", json!(2)),
        ("costUsd", usage["costUsd"].clone()),
        (
            "gen_ai.usage.input_tokens",
            usage["tokens"]["prompt"].clone(),
        ),
        (
            "gen_ai.usage.output_tokens",
            usage["tokens"]["completion"].clone(),
        ),
        ("failureMessage", Value::Null),
        ("labels", labels),
    ] {
        assert_eq!(record[name], expected, "{name} of {record}");
    }
    assert!(record["durationMs"].is_u64() && record["requestId"].is_string());
    counts(&app, usage);
}

/// The metrics of a run with two model calls and a tool call.
#[track_caller]
fn counts(app: &App, usage: &Value) {
    for (series, expected) in [
        ("runs_ended_total{status=\"completed\"}", 1.0),
        ("runs_ended_total{status=\"failed\"}", 0.0),
        (
            "model_calls_total{provider=\"no-key\",outcome=\"completed\"}",
            2.0,
        ),
        (
            "model_calls_total{provider=\"tenant-key\",outcome=\"completed\"}",
            0.0,
        ),
        ("model_first_byte_seconds_count{provider=\"no-key\"}", 2.0),
        (
            "model_first_byte_seconds_bucket{provider=\"no-key\",le=\"+Inf\"}",
            2.0,
        ),
        ("step_seconds_count{kind=\"model\"}", 2.0),
        ("step_seconds_count{kind=\"tool\"}", 1.0),
        ("tool_calls_total{kind=\"http\",outcome=\"answered\"}", 1.0),
        ("model_cost_usd_total", usage["costUsd"].as_f64().unwrap()),
        (
            "model_tokens_total{kind=\"prompt\"}",
            usage["tokens"]["prompt"].as_f64().unwrap(),
        ),
    ] {
        let found = figure(app, &format!("agent_runtime_{series}"));
        assert!((found - expected).abs() < 1e-9, "{series}: {found}");
    }
}

#[test]
fn a_run_that_failed_is_a_warning_with_its_reason() {
    let (app, lines) = start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::json(
            400,
            &json!({"error": {"message": "No svc_bt_0123456789012345678901234567890123456789012345678 here."}}),
        ),
    })
    .unwrap();
    let run_id = app.start_turn(app.agent(&provider.base_url()), "a");
    let run = app.finished(&run_id);
    let record = record(&lines, &run_id);
    assert_eq!(
        (&record["level"], &record["status"]),
        (&json!("warn"), &json!("failed"))
    );
    let message = record["failureMessage"].as_str().unwrap();
    let said = run["failureMessage"].as_str().unwrap();
    assert!(
        message.contains("svc_bt_…5678") || message != said,
        "{message}"
    );
    assert!(!message.contains("01234567890123"), "{message}");
    assert_eq!(
        figure(&app, "agent_runtime_runs_ended_total{status=\"failed\"}"),
        1.0
    );
    let failed = "agent_runtime_model_calls_total{provider=\"no-key\",outcome=\"failed\"}";
    assert_eq!(figure(&app, failed), 1.0);
}

#[test]
fn a_run_that_nobody_holds_and_is_cancelled_is_a_record_too() {
    let (app, lines) = start();
    let provider = Provider::start(Script {
        queue: vec![Step::json(500, &json!({"error": {"message": "Not now."}}))],
        then: Step::text("Too late."),
    })
    .unwrap();
    let run_id = app.start_turn(app.agent(&provider.base_url()), "a");
    app.run_once(&run_id, "waiting");
    assert_eq!(app.cancel(&run_id)["status"], "cancelled");
    let record = record(&lines, &run_id);
    for (name, expected) in [
        ("level", json!("info")),
        ("status", json!("cancelled")),
        ("steps", json!(1)),
        ("modelCalls", json!(1)),
    ] {
        assert_eq!(record[name], expected, "{name} of {record}");
    }
    assert_eq!(
        figure(&app, "agent_runtime_runs_ended_total{status=\"cancelled\"}"),
        1.0
    );
    // A second cancel ends nothing.
    app.cancel(&run_id);
    assert_eq!(
        figure(&app, "agent_runtime_runs_ended_total{status=\"cancelled\"}"),
        1.0
    );
}
