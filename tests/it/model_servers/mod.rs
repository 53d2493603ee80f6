//! What becomes of a run whose model server sends what servers really send (`tests/cases/models`): one row a recording.
//!
//! All rows run at the same time against one service, each with a server and an agent of its own. The agent has two tools, `weather`
//! and `now`, which answer `sunny`. What the server says once its recording is over is in `server`.

mod rows;
mod server;

use crate::harness::{App, NewTool, ToolAnswer, ToolServer};
use agent_runtime::outbound::Timeouts;
use serde_json::{Value, json};
use server::{Refuses, Replay, Script, parts};
use std::time::Duration;

/// A recording, and what becomes of the run.
pub(super) struct Row {
    file: &'static str,
    /// The time of its waits, as a part of the recorded one.
    scale: f64,
    refuses: Option<Refuses>,
    schema: Value,
    /// Words of the failure; `None`: the run completes.
    fails: Option<&'static str>,
    text: Option<&'static str>,
    /// `name arguments` of each call that was made.
    calls: &'static [&'static str],
    requests: usize,
    /// Prompt, completion and cached tokens.
    usage: Option<[i64; 3]>,
    reasoning: Option<&'static str>,
    is_cut: bool,
    /// The longest that the answer may take.
    within: Option<Duration>,
    /// Says of the last request what is missing in it.
    sends: Option<fn(&Value) -> bool>,
}

impl Row {
    /// Of a run that completes with this text after one request, and calls nothing.
    fn says(file: &'static str, text: &'static str) -> Self {
        Self {
            file,
            scale: 1.0,
            refuses: None,
            schema: Value::Null,
            fails: None,
            text: Some(text),
            calls: &[],
            requests: 1,
            usage: None,
            reasoning: None,
            is_cut: false,
            within: None,
            sends: None,
        }
    }

    /// Of a run that calls these tools, each once, and completes.
    fn calls(file: &'static str, calls: &'static [&'static str]) -> Self {
        Self {
            text: None,
            calls,
            requests: 2,
            ..Self::says(file, "")
        }
    }

    /// Of a run that fails with these words.
    fn fails(file: &'static str, words: &'static str) -> Self {
        Self {
            fails: Some(words),
            text: None,
            ..Self::says(file, "")
        }
    }

    fn requests(self, requests: usize) -> Self {
        Self { requests, ..self }
    }

    fn usage(self, prompt: i64, completion: i64, cached: i64) -> Self {
        let usage = Some([prompt, completion, cached]);
        Self { usage, ..self }
    }
}

/// A row that was started.
struct Started {
    row: Row,
    server: Replay,
    run_id: String,
}

#[test]
fn each_recording_has_its_end() {
    let app = App::start_with(|options| {
        options.runs.threads = 8;
        options.runs.first_wait = Duration::from_millis(20);
        options.runs.model_timeouts = Timeouts {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(20),
            idle: Some(Duration::from_secs(20)),
            total: Duration::from_secs(60),
        };
    });
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("sunny"));
    let maker = app.maker();
    let project = maker.project();
    let tools: Vec<_> = ["weather", "now"]
        .map(|name| maker.tool(project, &NewTool::new(name, &tool.url())))
        .to_vec();
    let start = |row: Row| {
        let recording = format!("tests/cases/models/{}.txt", row.file);
        let recording = std::fs::read_to_string(&recording).expect(&recording);
        let server = Replay::start(Script {
            parts: parts(&recording, row.scale),
            refuses: row.refuses,
        });
        let agent = maker.agent_of(project, &server.base_url(), |version| {
            version.tools = tools.clone();
            version.output_schema = row.schema.clone();
        });
        let run_id = app.start_turn(agent, "a");
        Started {
            row,
            server,
            run_id,
        }
    };
    let started: Vec<Started> = rows::rows().into_iter().map(start).collect();
    let faults: Vec<String> = started.iter().flat_map(|one| faults(&app, one)).collect();
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// What is not as the row says.
fn faults(app: &App, started: &Started) -> Vec<String> {
    let (row, run) = (&started.row, app.finished(&started.run_id));
    let mut faults = Vec::new();
    let mut check = |what: &str, is: Value, expected: Value| {
        if is != expected {
            faults.push(format!("{}: {what} is {is}, not {expected}", row.file));
        }
    };
    let message = run["failureMessage"].as_str().unwrap_or("");
    let status = if row.fails.is_some() {
        "failed"
    } else {
        "completed"
    };
    check(
        "the status",
        json!([run["status"], message.contains(row.fails.unwrap_or(""))]),
        json!([status, true]),
    );
    let said = json!([message]);
    check(
        "the failure",
        said.clone(),
        if row.fails.is_some() {
            said
        } else {
            json!([""])
        },
    );
    let events = app.events(&started.run_id);
    let done = |kind: &str| {
        let events = events.iter().map(|event| (&event["kind"], &event["data"]));
        let of_kind =
            events.filter(|(event, data)| *event == "step.completed" && data["type"] == kind);
        of_kind
            .map(|(_, data)| data.clone())
            .collect::<Vec<Value>>()
    };
    let asked = done("model")
        .iter()
        .flat_map(|data| data["toolCalls"].as_array().unwrap().clone())
        .map(|call| {
            let arguments: Value =
                serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap_or(json!({}));
            format!("{} {arguments}", call["name"].as_str().unwrap())
        })
        .collect::<Vec<String>>();
    check("what is called", json!(asked), json!(row.calls));
    let refused = done("tool")
        .iter()
        .filter(|data| data["isError"] == json!(true))
        .count();
    check("the number of refused calls", json!(refused), json!(0));
    check(
        "the number of requests",
        json!(started.server.asked().len()),
        json!(row.requests),
    );
    if let Some(usage) = row.usage {
        let tokens = &run["usage"]["tokens"];
        check(
            "the usage",
            json!([tokens["prompt"], tokens["completion"], tokens["cacheRead"]]),
            json!(usage),
        );
    }
    if row.fails.is_none() {
        let output = app.output(&started.run_id);
        let expected = row
            .text
            .map_or_else(|| output["text"].clone(), |text| json!(text));
        check("the text", output["text"].clone(), expected);
        check(
            "whether it was cut",
            output["answerCut"].clone(),
            if row.is_cut { json!(true) } else { Value::Null },
        );
        let ended = &events.last().unwrap()["data"]["answerCut"];
        check(
            "whether its event says so",
            ended.clone(),
            if row.is_cut { json!(true) } else { Value::Null },
        );
    }
    if let Some(reasoning) = row.reasoning {
        let steps = app
            .get(&format!("/v1/runs/{}/steps", started.run_id))
            .expect(200);
        check(
            "the reasoning",
            steps["data"][0]["result"]["reasoning"].clone(),
            json!(reasoning),
        );
        let event = &done("model")[0];
        check(
            "what its event says of it",
            json!([event["hasReasoning"], event.get("reasoning")]),
            json!([true, null]),
        );
    }
    if let Some(within) = row.within {
        let ended = time::OffsetDateTime::parse(
            run["completedAt"].as_str().unwrap(),
            &time::format_description::well_known::Rfc3339,
        )
        .unwrap();
        let began = time::OffsetDateTime::parse(
            run["startedAt"].as_str().unwrap(),
            &time::format_description::well_known::Rfc3339,
        )
        .unwrap();
        check(
            "whether it ended in its time",
            json!((ended - began) < within),
            json!(true),
        );
    }
    if let Some(sends) = row.sends {
        let sent = started.server.asked().last().map(|(_, body)| body.clone());
        check(
            "whether it is sent what it needs",
            json!(sent.is_some_and(|body| sends(&body))),
            json!(true),
        );
    }
    faults
}
