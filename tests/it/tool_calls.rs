//! HTTP tools as a turn calls them: what the model is told when a call goes wrong, and what is
//! called again.

use crate::harness::{App, Deaf, NewTool, ToolAnswer, ToolServer, eventually, kinds};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::outbound::HostAccess;
use serde_json::{Value, json};
use std::time::Duration;

/// A model that calls the tool `look_up` with these arguments once and then says something.
fn model(arguments: &Value) -> Provider {
    Provider::start(Script {
        queue: vec![Step::new(Reply::ToolCalls(vec![(
            "look_up".to_owned(),
            arguments.clone(),
        )]))],
        then: Step::text("Well."),
    })
    .unwrap()
}

struct Called {
    /// What the model was told.
    tool_result: String,
    /// What readers saw of it.
    is_error: bool,
    events: Vec<Value>,
}

/// A turn that calls this tool, to its end.
#[track_caller]
fn call(app: &App, url: &str, arguments: &Value, change: impl FnOnce(&mut NewTool<'_>)) -> Called {
    let model = model(arguments);
    let maker = app.maker();
    let project = maker.project();
    let mut tool = NewTool::new("look_up", url);
    change(&mut tool);
    let tool = maker.tool(project, &tool);
    let agent = maker.agent_of(project, &model.base_url(), |version| {
        version.tools = vec![tool];
    });
    let id = app.start_turn(agent, "a");
    let run = app.finished(&id);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["usage"]["calls"], 2);
    let requests = model.requests();
    let messages = requests[1].body["messages"].as_array().unwrap();
    let tool_result = messages.last().unwrap();
    assert_eq!(tool_result["role"], "tool");
    let events = app.events(&id);
    kinds(&events);
    let done = events
        .iter()
        .find(|event| event["kind"] == "step.completed" && event["data"]["type"] == "tool");
    Called {
        tool_result: tool_result["content"].as_str().unwrap().to_owned(),
        is_error: done.unwrap()["data"]["isError"].as_bool().unwrap(),
        events,
    }
}

impl Called {
    #[track_caller]
    fn check_error(&self, words: &[&str]) {
        assert!(self.is_error, "{}", self.tool_result);
        for word in words {
            assert!(
                self.tool_result.contains(word),
                "{word:?} is not in {:?}",
                self.tool_result
            );
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_told_to_the_model() {
    let app = App::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("unreached"));
    let schema = json!({"type": "object", "required": ["word"], "additionalProperties": false,
        "properties": {"word": {"type": "string"}}});
    for wrong in [
        json!({}),
        json!({"word": 1}),
        json!({"word": "a", "more": 1}),
        json!([]),
    ] {
        let called = call(&app, &tool.url(), &wrong, |tool| {
            tool.schema = schema.clone()
        });
        called.check_error(&["do not fit"]);
    }
    assert!(tool.asked().is_empty());
}

/// A model reads a schema from its beginning, so the author's order of fields is kept: in the database, in what is read
/// back, and in what the model is sent.
#[test]
fn the_order_of_a_schemas_properties_is_the_authors() {
    let app = App::start();
    let model = model(&json!({"zone": "a", "city": "b", "amount": 1}));
    let maker = app.maker();
    let project = maker.project();
    let schema = r#"{"type":"object","required":["zone","city"],"properties":{"zone":{"type":"string"},"city":{"type":"string","description":"Where."},"amount":{"type":"integer"}},"additionalProperties":false}"#;
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("done"));
    let mut new = NewTool::new("look_up", "");
    let url = tool.url();
    new.url = &url;
    new.schema = serde_json::from_str(schema).unwrap();
    let tool = maker.tool(project, &new);
    let read = app.get(&format!("/v1/tools/{tool}"));
    assert!(read.text.contains(schema), "{}", read.text);
    let stored = "select arguments_schema::text from tools where tool_id = $1";
    let stored: String = app
        .database
        .client()
        .query_one(stored, &[&tool])
        .unwrap()
        .get(0);
    assert_eq!(stored, schema);
    let agent = maker.agent_of(project, &model.base_url(), |version| {
        version.tools = vec![tool];
    });
    app.finished(&app.start_turn(agent, "a"));
    let requests = model.requests();
    let sent = &requests[0].body["tools"][0]["function"]["parameters"];
    assert_eq!(sent.to_string(), schema);
}

#[test]
fn a_tool_that_refuses_is_quoted_to_the_model() {
    let app = App::start();
    for status in [400, 404, 500, 302] {
        let tool = ToolServer::start(move |_, _| ToolAnswer::Status(status, "because".to_owned()));
        let called = call(&app, &tool.url(), &json!({}), |_| {});
        called.check_error(&[&status.to_string(), "because"]);
        assert_eq!(tool.asked().len(), 1, "an answer is an answer");
    }
}

#[test]
fn an_answer_that_is_too_long_is_an_error_to_the_model() {
    let app = App::start();
    let fits = "a".repeat(1024 * 1024);
    let longer = format!("{fits}b");
    let tool = ToolServer::start(move |_, _| ToolAnswer::ok(longer.clone()));
    let called = call(&app, &tool.url(), &json!({}), |_| {});
    called.check_error(&["1048576"]);
    assert!(called.tool_result.len() < 1000);
    assert_eq!(tool.asked().len(), 1, "it would be as long again");
    let tool = ToolServer::start(move |_, _| ToolAnswer::ok(fits.clone()));
    let called = call(&app, &tool.url(), &json!({}), |_| {});
    assert_eq!(
        (called.is_error, called.tool_result.len()),
        (false, 1024 * 1024)
    );
    let shown = called
        .events
        .iter()
        .find(|event| event["data"]["outputTruncated"] == true)
        .expect("readers are shown a part");
    assert_eq!(shown["data"]["output"].as_str().unwrap().len(), 16 * 1024);
}

#[test]
fn a_tool_that_does_not_answer_in_time_is_called_again_only_if_it_may_be() {
    let app = App::start();
    for (idempotent, calls) in [(true, 3), (false, 1)] {
        let tool = ToolServer::start(|_, _| ToolAnswer::Hang);
        let called = call(&app, &tool.url(), &json!({}), |tool| {
            tool.idempotent = idempotent;
            // Time enough for a busy machine to ask.
            tool.timeout_ms = 1500;
        });
        called.check_error(&["got no answer", "Nobody knows whether the call took effect"]);
        assert!(!called.tool_result.contains("could not be called"));
        eventually("every call to be read", || {
            (tool.asked().len() >= calls).then_some(())
        });
        assert_eq!(tool.asked().len(), calls);
    }
}

#[test]
fn a_tool_that_comes_back_is_reached() {
    let app = App::start();
    let tool = ToolServer::start(|_, before| match before {
        0 | 1 => ToolAnswer::Cut,
        _ => ToolAnswer::ok("here"),
    });
    let called = call(&app, &tool.url(), &json!({}), |_| {});
    assert_eq!(
        (called.is_error, called.tool_result.as_str()),
        (false, "here")
    );
    let asked = tool.asked();
    assert_eq!(asked.len(), 3);
    let key = asked[0].header("idempotency-key").to_owned();
    assert!(key.ends_with("-2") && key.len() > 36, "{key}");
    for one in &asked {
        assert_eq!(one.header("idempotency-key"), key);
        assert!(one.header("traceparent").starts_with("00-"), "{one:?}");
        assert_eq!(one.header("content-type"), "application/json");
    }
    assert_ne!(
        asked[0].header("traceparent"),
        asked[1].header("traceparent")
    );
    let attempts: Vec<&Value> = called
        .events
        .iter()
        .filter(|event| event["kind"] == "step.started" && event["data"]["type"] == "tool")
        .map(|event| &event["data"]["attempt"])
        .collect();
    assert_eq!(attempts, [1, 2, 3]);
}

#[test]
fn a_tool_that_is_down_is_an_error_to_the_model() {
    let app = App::start();
    let deaf = Deaf::new();
    for idempotent in [true, false] {
        let called = call(
            &app,
            &format!("http://{}/", deaf.address()),
            &json!({}),
            |tool| {
                tool.idempotent = idempotent;
            },
        );
        called.check_error(&["could not be called"]);
        let failed = kinds(&called.events)
            .iter()
            .filter(|kind| **kind == "step.failed")
            .count();
        assert_eq!(failed, if idempotent { 2 } else { 0 });
    }
    let metrics = app.get("/metrics").text;
    let calls = |outcome: &str| {
        let series =
            format!("agent_runtime_tool_calls_total{{kind=\"http\",outcome=\"{outcome}\"}} ");
        let mut lines = metrics.lines();
        lines.find_map(|line| line.strip_prefix(&series)?.parse::<f64>().ok())
    };
    assert_eq!(
        (calls("unreachable"), calls("error")),
        (Some(4.0), Some(0.0))
    );
}

#[test]
fn a_tool_of_another_name_does_not_exist() {
    let app = App::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("unreached"));
    let called = call(&app, &tool.url(), &json!({}), |tool| tool.name = "another");
    called.check_error(&["no tool", "look_up"]);
    assert!(tool.asked().is_empty());
}

#[test]
fn text_that_no_database_takes_is_mended() {
    let app = App::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("a\0b"));
    let called = call(&app, &tool.url(), &json!({}), |_| {});
    assert_eq!(called.tool_result, "a\u{fffd}b");
}

#[test]
fn a_deployed_server_calls_no_tool_on_its_own_host() {
    // The provider is on this host too, so the model is asked while that is allowed: the server is
    // deployed, as it were, while the run waits to call its tool again.
    let app = App::start_with(|options| options.runs.first_wait = Duration::from_secs(8));
    let tool = ToolServer::start(|_, _| ToolAnswer::Cut);
    let model = model(&json!({}));
    let url = tool.url();
    let maker = app.maker();
    let project = maker.project();
    let look_up = maker.tool(project, &NewTool::new("look_up", &url));
    let agent = maker.agent_of(project, &model.base_url(), |version| {
        version.tools = vec![look_up];
    });
    let id = app.start_turn(agent, "a");
    app.run_once(&id, "waiting");
    let (database, clock, seeds) = app.stop();
    let app = App::start_on(database, clock, seeds, |options| {
        options.runs.host_access = HostAccess::Deployed;
    });
    let run = app.finished(&id);
    assert_eq!(run["status"], "failed");
    let message = run["failureMessage"].as_str().unwrap();
    assert!(message.contains("does not let a tenant reach"), "{message}");
    let events = app.events(&id);
    let tool_result = events
        .iter()
        .find(|event| event["kind"] == "step.completed" && event["data"]["type"] == "tool")
        .unwrap();
    assert_eq!(tool_result["data"]["isError"], true);
    let output = tool_result["data"]["output"].as_str().unwrap();
    assert!(output.contains("does not let a tenant reach"), "{output}");
    assert_eq!((model.count(), tool.asked().len()), (1, 1));
}
