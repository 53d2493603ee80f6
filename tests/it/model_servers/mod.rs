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
    let run = app.finished(&started.run_id);
    let events = app.events(&started.run_id);
    let mut found = Found {
        row: &started.row,
        faults: Vec::new(),
    };
    found.end(&run);
    found.calls(&events);
    let requests = started.server.asked();
    let row = found.row;
    found.check(
        "the number of requests",
        json!(requests.len()),
        json!(row.requests),
    );
    if let Some(sends) = row.sends {
        let is_sent = requests.last().is_some_and(|(_, body)| sends(body));
        found.check(
            "whether it is sent what it needs",
            json!(is_sent),
            json!(true),
        );
    }
    if row.fails.is_none() {
        found.answer(&app.output(&started.run_id), &events);
    }
    if let Some(reasoning) = row.reasoning {
        let path = format!("/v1/runs/{}/steps", started.run_id);
        let step = &app.get(&path).expect(200)["data"][0];
        found.check(
            "the reasoning",
            step["result"]["reasoning"].clone(),
            json!(reasoning),
        );
        let event = &completed(&events, "model")[0];
        let said = json!([event["hasReasoning"], event.get("reasoning")]);
        found.check("what its event says of it", said, json!([true, null]));
    }
    found.faults
}

/// The data of the completed steps of a kind.
fn completed<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let events = events
        .iter()
        .filter(|event| event["kind"] == "step.completed");
    let data = events.map(|event| &event["data"]);
    data.filter(|data| data["type"] == kind).collect()
}

/// What differs from a row.
struct Found<'a> {
    row: &'a Row,
    faults: Vec<String>,
}

impl Found<'_> {
    fn check(&mut self, what: &str, is: Value, expected: Value) {
        if is != expected {
            let file = self.row.file;
            self.faults
                .push(format!("{file}: {what} is {is}, not {expected}"));
        }
    }

    fn end(&mut self, run: &Value) {
        let row = self.row;
        let message = run["failureMessage"].as_str().unwrap_or("");
        let status = if row.fails.is_some() {
            "failed"
        } else {
            "completed"
        };
        let says = row
            .fails
            .map_or(message.is_empty(), |words| message.contains(words));
        let said = json!([run["status"], says, message]);
        self.check("the end", said, json!([status, true, message]));
        if let Some(usage) = row.usage {
            let tokens = &run["usage"]["tokens"];
            let counted = json!([tokens["prompt"], tokens["completion"], tokens["cacheRead"]]);
            self.check("the usage", counted, json!(usage));
        }
        if let Some(within) = row.within {
            let at = |name: &str| {
                let text = run[name].as_str().unwrap();
                let form = &time::format_description::well_known::Rfc3339;
                time::OffsetDateTime::parse(text, form).unwrap()
            };
            let is_quick = at("completedAt") - at("startedAt") < within;
            self.check("whether it ended in its time", json!(is_quick), json!(true));
        }
    }

    fn calls(&mut self, events: &[Value]) {
        let asked = completed(events, "model").into_iter();
        let asked = asked.flat_map(|data| data["toolCalls"].as_array().unwrap());
        let asked: Vec<String> = asked
            .map(|call| {
                let text = call["arguments"].as_str().unwrap();
                let arguments = serde_json::from_str(text).unwrap_or(json!({}));
                format!("{} {arguments}", call["name"].as_str().unwrap())
            })
            .collect();
        self.check("what is called", json!(asked), json!(self.row.calls));
        let refused = completed(events, "tool").into_iter();
        let refused = refused.filter(|data| data["isError"] == true).count();
        self.check("the number of refused calls", json!(refused), json!(0));
    }

    fn answer(&mut self, output: &Value, events: &[Value]) {
        let row = self.row;
        if let Some(text) = row.text {
            self.check("the text", output["text"].clone(), json!(text));
        }
        let is_cut = if row.is_cut { json!(true) } else { Value::Null };
        let ended = &events.last().unwrap()["data"]["answerCut"];
        self.check(
            "whether it was cut",
            output["answerCut"].clone(),
            is_cut.clone(),
        );
        self.check("whether its event says so", ended.clone(), is_cut);
    }
}
