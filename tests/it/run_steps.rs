//! The steps of a run as a list shows them.

use crate::harness::{App, Client, NewTool, ToolAnswer, ToolServer};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// A finished turn that calls a tool twice and then answers.
fn turn(app: &App) -> String {
    let calls = ["one", "two"].map(|word| ("look_up".to_owned(), json!({"word": word})));
    let provider = Provider::start(Script {
        queue: vec![
            Step::new(Reply::ToolCalls(calls.into())),
            Step::text("Both were found."),
        ],
        then: Step::default(),
    })
    .unwrap();
    let tool = ToolServer::start(|asked, _| {
        ToolAnswer::ok(format!("found {}", asked.body["arguments"]["word"]))
    });
    let maker = app.maker();
    let project = maker.project();
    let look_up = maker.tool(project, &NewTool::new("look_up", &tool.url()));
    let agent = maker.agent_of(project, &provider.base_url(), |version| {
        version.tools = vec![look_up];
    });
    let run = app.start_turn(agent, "Look.");
    assert_eq!(app.finished(&run)["status"], "completed");
    run
}

/// The whole list, by pages, and how many steps each page had.
#[track_caller]
fn pages(client: &Client, run: &str, query: &str) -> (Vec<Value>, Vec<usize>) {
    let (mut steps, mut sizes, mut cursor) = (Vec::new(), Vec::new(), String::new());
    loop {
        let path = format!("/v1/runs/{run}/steps?{query}{cursor}");
        let page = client.get(&path).expect(200);
        let found = page["data"].as_array().unwrap();
        sizes.push(found.len());
        steps.extend(found.iter().cloned());
        assert_eq!(page["hasMore"], json!(page.get("nextCursor").is_some()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (steps, sizes),
        }
    }
}

#[test]
fn the_steps_of_a_turn_are_listed_with_what_they_answered() {
    let app = App::start();
    let run = turn(&app);
    let (steps, sizes) = pages(&app, &run, "order=asc&limit=3");
    assert_eq!(sizes, [3, 1]);
    let seen: Vec<Value> = steps
        .iter()
        .map(|step| {
            json!([
                step["step"],
                step["kind"],
                step["name"],
                step["status"],
                step["attempt"]
            ])
        })
        .collect();
    let expected = json!([
        [1, "model", "m", "completed", 1],
        [2, "tool", "look_up", "completed", 1],
        [3, "tool", "look_up", "completed", 1],
        [4, "model", "m", "completed", 1],
    ]);
    assert_eq!(json!(seen), expected);
    for step in &steps {
        assert!(step["startedAt"].is_string() && step["completedAt"].is_string());
        assert!(step.get("path").is_none(), "a turn has no path: {step}");
        assert!(step["result"].is_object(), "{step}");
    }
    assert!(steps[1]["result"].to_string().contains("found \\\"one\\\""));
    let newest: Vec<Value> = steps.iter().rev().cloned().collect();
    assert_eq!(pages(&app, &run, "limit=1"), (newest, vec![1; 4]));

    let page = app
        .get(&format!("/v1/runs/{run}/steps?limit=1"))
        .expect(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    let other = turn(&app);
    app.get(&format!("/v1/runs/{other}/steps?limit=1&cursor={cursor}"))
        .expect_error(400, "invalid-cursor");
    app.other_tenant()
        .get(&format!("/v1/runs/{run}/steps"))
        .expect_error(404, "not-found");
}

#[test]
fn a_step_under_way_has_no_result_and_says_where_it_stands() {
    let app = App::start();
    let run = turn(&app);
    let set = "update run_steps set status = 'running', completed_at = null, result = null, path = '/do/2/small'
        where run_id = $1 and step = 4";
    let run_id: Uuid = run.parse().unwrap();
    app.database.client().execute(set, &[&run_id]).unwrap();
    let (steps, _) = pages(&app, &run, "limit=2");
    let newest = &steps[0];
    assert_eq!(newest["status"], "running");
    assert_eq!(newest["path"], "/do/2/small");
    assert_eq!(
        (&newest["result"], &newest["completedAt"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn a_page_of_long_results_ends_early_and_loses_no_step() {
    let app = App::start();
    let run = turn(&app);
    let mut client = app.database.client();
    let run_id: Uuid = run.parse().unwrap();
    let fill = "insert into run_steps (tenant_id, run_id, step, kind, name, status, attempt, request, result, started_at, completed_at)
        select tenant_id, run_id, number, kind, name, status, attempt, request, to_json(repeat('x', 1048576)), started_at, completed_at
        from run_steps, generate_series(5, 15) number where run_id = $1 and step = 1";
    client.execute(fill, &[&run_id]).unwrap();
    // Each page ends with the step that takes it past 4 MiB, so one larger than that comes by itself.
    let (steps, sizes) = pages(&app, &run, "order=asc");
    let numbers: Vec<i64> = steps
        .iter()
        .map(|step| step["step"].as_i64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=15).collect::<Vec<i64>>());
    assert_eq!(sizes, [8, 4, 3]);
    let (back, sizes) = pages(&app, &run, "");
    assert_eq!(back, steps.into_iter().rev().collect::<Vec<Value>>());
    assert_eq!(sizes, [4, 4, 7]);
}
