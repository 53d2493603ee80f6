//! Spans as a collector gets them: one tree from a request to its tools, whichever process carries the run; nothing of
//! what was said; and a collector that is away costs nothing.

use crate::harness::{
    App, Collector, Database, LogLines, NewTool, Puppet, Span, ToolAnswer, ToolServer, WELL,
    eventually, made, seeds,
};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::ids::Clock;
use agent_runtime::secret::Secret;
use agent_runtime::server::Options;
use agent_runtime::traces;
use serde_json::json;
use std::net::TcpListener;
use std::time::Duration;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn parent() -> String {
    format!("00-{TRACE}-{CALLER}-01")
}

/// Spans go there, in small delays.
fn to(url: &str) -> traces::Options {
    traces::Options {
        delay: Duration::from_millis(20),
        first_wait: Duration::from_millis(20),
        ..traces::Options::new(url)
    }
}

fn start(url: &str, change: impl FnOnce(&mut Options)) -> (App, LogLines) {
    let (lines, clock) = (LogLines::default(), Clock::system());
    let seeds = seeds(&clock);
    let app = App::start_logged(
        Database::migrated(),
        clock,
        seeds,
        &lines.logger(),
        |options| {
            options.traces = Some(to(url));
            change(options);
        },
    );
    (app, lines)
}

/// Spans of this name, once there are so many.
#[track_caller]
fn named(collector: &Collector, name: &str, count: usize) -> Vec<Span> {
    eventually(name, || {
        let found = collector.named(name);
        assert!(found.len() <= count, "{found:?}");
        (found.len() == count).then_some(found)
    })
}

fn metric(app: &App, name: &str) -> f64 {
    let text = app.get("/metrics").text;
    let line = text.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("{name} is not in {text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[track_caller]
fn says(span: &Span, attributes: &[(&str, &str)]) {
    for (name, value) in attributes {
        let found = span.attributes.get(*name).map(String::as_str);
        assert_eq!(found, Some(*value), "{name} of {span:?}");
    }
}

/// A model that calls the tool once and then answers, and that tool.
fn model_and_tool() -> (Provider, ToolServer) {
    let arguments = json!({"word": "argument-text"});
    let model = Provider::start(Script {
        queue: vec![Step::new(Reply::ToolCalls(vec![(
            "look_up".to_owned(),
            arguments,
        )]))],
        then: Step::text("answer-text"),
    });
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("tool-text"));
    (model.unwrap(), tool)
}

/// The attributes of a request, its run, the call of a model that ended it, and the call of a tool before.
fn each_says_what_it_was(request: &Span, run: &Span, model: &Span, tool: &Span, ids: [&str; 4]) {
    let [request_id, agent, project, tool_id] = ids;
    says(
        request,
        &[
            ("http.request.method", "POST"),
            ("http.route", "/v1/runs"),
            ("http.response.status_code", "202"),
            ("agent_runtime.request.id", request_id),
        ],
    );
    says(
        run,
        &[
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.agent.id", agent),
            ("agent_runtime.project.id", project),
            ("agent_runtime.run.status", "completed"),
        ],
    );
    says(
        model,
        &[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", "m"),
            ("gen_ai.response.finish_reasons", "stop"),
            ("server.address", "127.0.0.1"),
            ("agent_runtime.step", "3"),
            ("agent_runtime.attempt", "1"),
        ],
    );
    let counted = ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"];
    for name in counted {
        let count: u64 = model.attributes[name].parse().unwrap();
        assert!(count > 0, "{name}");
    }
    says(
        tool,
        &[
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "look_up"),
            ("agent_runtime.tool.id", tool_id),
        ],
    );
}

/// Nothing that was said, and no secret, is in what a collector got.
fn no_export_says(collector: &Collector, token: &str) {
    for export in collector.exports() {
        assert_eq!(export.headers["content-type"], "application/json");
        assert_eq!(export.headers["authorization"], "Bearer collector-secret");
        assert!(export.text.contains("staging"));
        for said in [
            "message-text",
            "argument-text",
            "tool-text",
            "answer-text",
            "collector-secret",
            token,
        ] {
            assert!(!export.text.contains(said), "{said} is in {}", export.text);
        }
    }
}

#[test]
fn request_run_model_and_tool_are_one_tree_and_say_nothing_of_what_was_said() {
    let collector = Collector::start();
    let (app, lines) = start(&collector.url(), |options| {
        let traces = options.traces.as_mut().unwrap();
        traces.headers = vec![(
            "authorization".to_owned(),
            Secret::new("Bearer collector-secret"),
        )];
        traces.environment = Some("staging".to_owned());
    });
    let (model, tool) = model_and_tool();
    let maker = app.maker();
    let project = maker.project();
    let tool_id = maker.tool(project, &NewTool::new("look_up", &tool.url()));
    let agent = maker.agent_of(project, &model.base_url(), |version| {
        version.tools = vec![tool_id];
        version.limits = json!({});
    });
    let body = json!({"agentId": agent, "message": "message-text"}).to_string();
    let headers = [("traceparent", &*parent()), ("tracestate", "a=1")];
    let answer = app.send("POST", "/v1/runs", Some(body), &headers);
    let request_id = answer.header("x-request-id").unwrap().to_owned();
    let response = answer.header("traceresponse").unwrap().to_owned();
    let run_id = made::id(&answer.expect(202)["run"]);
    assert_eq!(app.finished(&run_id)["status"], "completed");

    let request = &named(&collector, "POST /v1/runs", 1)[0];
    let run = &named(&collector, "invoke_agent", 1)[0];
    let models = named(&collector, "chat m", 2);
    let tools = named(&collector, "execute_tool look_up", 1);
    assert_eq!(request.parent.as_deref(), Some(CALLER));
    assert_eq!(request.id, &response[36..52]);
    assert_eq!(run.parent.as_ref(), Some(&request.id));
    let [tenant, project, agent, tool_id] =
        [app.seeds.tenant_id, project, agent, tool_id].map(|id| id.to_string());
    for span in models.iter().chain(&tools) {
        assert_eq!(span.parent.as_ref(), Some(&run.id), "{span:?}");
        assert!(run.began <= span.began && span.began <= span.ended && span.ended <= run.ended);
        says(span, &[("agent_runtime.run.id", &run_id)]);
    }
    for span in models.iter().chain(&tools).chain([request, run]) {
        assert_eq!(span.trace, TRACE);
        assert!(!span.is_failed, "{span:?}");
        says(span, &[("agent_runtime.tenant.id", &tenant)]);
    }
    // Who is called sees the span that calls.
    let asked = tool.asked();
    let expected = format!("00-{TRACE}-{}-01", tools[0].id);
    assert_eq!(asked[0].header("traceparent"), expected);
    for (request, span) in model.requests().iter().zip(&models) {
        let mut headers = request.headers.iter();
        let sent = headers.find(|(name, _)| name == "traceparent").unwrap();
        assert_eq!(sent.1, format!("00-{TRACE}-{}-01", span.id));
    }
    assert_eq!(
        (request.kind, run.kind, models[0].kind, tools[0].kind),
        (2, 1, 3, 1)
    );
    let ids = [&*request_id, &agent, &project, &tool_id];
    each_says_what_it_was(request, run, &models[1], &tools[0], ids);
    no_export_says(&collector, app.token());
    assert!(lines.with("collector").is_empty());
    assert!(metric(&app, "agent_runtime_spans_exported_total") >= 5.0);
}

#[test]
fn a_run_that_another_replica_carries_on_stays_one_trace() {
    let collector = Collector::start();
    let url = collector.url();
    let (app, _) = start(&url, |_| {});
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let body = json!({"agentId": agent, "message": "a"}).to_string();
    let answer = app.send(
        "POST",
        "/v1/runs",
        Some(body),
        &[("traceparent", &parent())],
    );
    let id = made::id(&answer.expect(202)["run"]);
    let mut lost = puppet.call();
    lost.say("Lost ");
    let (database, clock, seeds) = app.stop_within(Duration::from_millis(300));
    let app = App::start_on(database, clock, seeds, |options| {
        options.traces = Some(to(&url));
    });
    puppet.call().finish();
    assert_eq!(app.finished(&id)["status"], "completed");
    let run = &named(&collector, "invoke_agent", 1)[0];
    let request = &named(&collector, "POST /v1/runs", 1)[0];
    assert_eq!(run.parent.as_ref(), Some(&request.id));
    let attempts = named(&collector, "chat m", 2);
    for (attempt, number) in attempts.iter().zip(["1", "2"]) {
        assert_eq!(
            (attempt.trace.as_str(), attempt.parent.as_ref()),
            (TRACE, Some(&run.id))
        );
        says(attempt, &[("agent_runtime.attempt", number)]);
    }
    assert_ne!(attempts[0].id, attempts[1].id);
    says(&attempts[0], &[("error.type", "lost")]);
    assert!(attempts[0].is_failed && !attempts[1].is_failed);
    assert!(run.began <= attempts[0].began);
}

#[test]
fn a_request_of_a_flow_has_a_span_also_where_its_process_died() {
    let collector = Collector::start();
    let url = collector.url();
    let (app, _) = start(&url, |_| {});
    let server = ToolServer::start(|_, before| match before {
        0 => ToolAnswer::Hang,
        _ => ToolAnswer::ok("put"),
    });
    let put = json!({"method": "put", "endpoint": server.url(), "body": {}});
    let flow = json!({
        "projectId": made::project(&app),
        "definition": {
            "document": {"dsl": "1.0.3", "namespace": "test", "name": "puts", "version": "1.0.0"},
            "do": [{"put": {"call": "http", "with": put}}],
        },
    });
    app.post("/v1/flows", &flow).expect(201);
    let start = json!({"flowId": "test.puts", "input": {}});
    let id = made::id(&app.post("/v1/runs", &start).expect(202)["run"]);
    eventually("the request", || (server.asked().len() == 1).then_some(()));
    let (database, clock, seeds) = app.stop_within(Duration::from_millis(300));
    let app = App::start_on(database, clock, seeds, |options| {
        options.traces = Some(to(&url));
    });
    assert_eq!(app.finished(&id)["status"], "completed");
    let run = &named(&collector, "run_flow", 1)[0];
    let attempts = named(&collector, "PUT", 2);
    for (attempt, asked) in attempts.iter().zip(server.asked()) {
        assert_eq!((attempt.kind, attempt.parent.as_ref()), (3, Some(&run.id)));
        says(attempt, &[("http.request.method", "PUT")]);
        let sent = format!("00-{}-{}-01", run.trace, attempt.id);
        assert_eq!(asked.header("traceparent"), sent);
    }
    says(&attempts[0], &[("error.type", "lost")]);
    says(&attempts[1], &[("http.response.status_code", "200")]);
}

#[test]
fn a_run_that_is_cancelled_while_nobody_holds_it_has_its_span() {
    let collector = Collector::start();
    let (app, _) = start(&collector.url(), |options| {
        options.runs.first_wait = Duration::from_secs(60);
    });
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::new(Reply::Plain {
            status: 500,
            headers: Vec::new(),
            body: "away".to_owned(),
        }),
    });
    let agent = app.agent(&provider.unwrap().base_url());
    let body = json!({"agentId": agent, "message": "a"}).to_string();
    let answer = app.send(
        "POST",
        "/v1/runs",
        Some(body),
        &[("traceparent", &parent())],
    );
    let id = made::id(&answer.expect(202)["run"]);
    app.run_once(&id, "waiting");
    app.cancel(&id);
    let run = &named(&collector, "invoke_agent", 1)[0];
    assert_eq!(run.trace, TRACE);
    says(run, &[("agent_runtime.run.status", "cancelled")]);
    let attempt = &named(&collector, "chat m", 1)[0];
    assert_eq!(attempt.parent.as_ref(), Some(&run.id));
    says(attempt, &[("error.type", "failed")]);
}

#[test]
fn a_trace_that_its_caller_does_not_sample_is_not_recorded() {
    let collector = Collector::start();
    let (app, _) = start(&collector.url(), |_| {});
    let unsampled = format!("00-{TRACE}-{CALLER}-00");
    app.send("GET", "/v1/projects", None, &[("traceparent", &unsampled)])
        .expect(200);
    app.get("/v1/agents").expect(200);
    let listed = &named(&collector, "GET /v1/agents", 1)[0];
    assert_eq!(listed.parent, None);
    assert!(collector.named("GET /v1/projects").is_empty());
}

#[test]
fn a_collector_that_is_away_costs_no_request_and_is_told_of_once() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let (app, lines) = start(&format!("http://{address}"), |options| {
        options.traces.as_mut().unwrap().queue_length = 4;
    });
    let dropped = r#"agent_runtime_spans_dropped_total{reason="full"}"#;
    eventually("spans to be dropped", || {
        app.get("/v1/projects").expect(200);
        (metric(&app, dropped) > 0.0).then_some(())
    });
    let away = eventually("the word that it is away", || {
        let records = lines.records("The collector of traces is away");
        (!records.is_empty()).then_some(records)
    });
    assert!(
        away[0]["collector"]
            .as_str()
            .unwrap()
            .contains(&address.to_string())
    );
    // It stays away for some more tries.
    for _ in 0..20 {
        app.get("/v1/projects").expect(200);
    }
    let collector = Collector::at(address, WELL);
    eventually("the word that it is back", || {
        app.get("/v1/agents").expect(200);
        let records = lines.records("The collector of traces takes spans again");
        (!records.is_empty()).then_some(())
    });
    assert!(
        !collector.named("GET /v1/projects").is_empty(),
        "what waited is sent"
    );
    assert_eq!(lines.records("The collector of traces").len(), 2);
    assert!(app.server().stuck().is_none());
}

#[test]
fn what_the_collector_refuses_is_dropped_and_what_it_puts_off_is_sent_again() {
    let collector = Collector::at(([127, 0, 0, 1], 0).into(), |before| match before {
        0 => (400, Vec::new(), "no"),
        1 => (503, vec![("retry-after", "1")], ""),
        2 => (
            200,
            Vec::new(),
            r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"x"}}"#,
        ),
        _ => (200, Vec::new(), "{}"),
    });
    let (app, lines) = start(&collector.url(), |_| {});
    app.get("/v1/projects").expect(200);
    eventually("a refusal", || {
        (!collector.exports().is_empty()).then_some(())
    });
    app.get("/v1/agents").expect(200);
    eventually("it to be sent again", || {
        let exports = collector.exports();
        (exports.len() >= 3).then(|| assert_eq!(exports[1].text, exports[2].text))
    });
    app.get("/v1/tools").expect(200);
    named(&collector, "GET /v1/tools", 1);
    assert!(collector.named("GET /v1/projects").is_empty());
    let refused = r#"agent_runtime_spans_dropped_total{reason="refused"}"#;
    assert_eq!(metric(&app, refused), 2.0);
    eventually("the word that it is over", || {
        (lines.records("takes spans again").len() == 1).then_some(())
    });
    assert_eq!(lines.records("The collector of traces refuses").len(), 1);
}

#[test]
fn spans_that_are_rejected_out_of_a_batch_hold_nothing_up_and_are_told_of_once() {
    let partial = r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"x"}}"#;
    let collector = Collector::at(([127, 0, 0, 1], 0).into(), move |_| {
        (200, Vec::new(), partial)
    });
    let (app, lines) = start(&collector.url(), |options| {
        options.traces.as_mut().unwrap().first_wait = Duration::from_secs(600);
    });
    for count in 1..=3 {
        app.get("/v1/projects").expect(200);
        eventually("an export", || {
            (collector.exports().len() >= count).then_some(())
        });
    }
    let refused = r#"agent_runtime_spans_dropped_total{reason="refused"}"#;
    eventually("three spans to be counted", || {
        (metric(&app, refused) >= 3.0).then_some(())
    });
    assert_eq!(lines.records("rejects spans out of them").len(), 1);
    assert_eq!(lines.records("The collector of traces").len(), 1);
}

#[test]
fn a_stop_sends_what_waits_and_does_not_wait_for_a_collector_that_hangs() {
    let collector = Collector::start();
    let (app, _) = start(&collector.url(), |options| {
        options.traces.as_mut().unwrap().delay = Duration::from_secs(600);
    });
    app.get("/v1/projects").expect(200);
    assert!(collector.exports().is_empty());
    app.stop();
    named(&collector, "GET /v1/projects", 1);

    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let (app, lines) = start(&url, |options| {
        options.traces.as_mut().unwrap().timeout = DAY;
    });
    app.get("/v1/projects").expect(200);
    let stopping = std::thread::spawn(move || drop(app.stop_within(DAY)));
    eventually("the end of the stop", || {
        stopping.is_finished().then_some(())
    });
    eventually("a word about the spans", || {
        (lines.records("Spans were lost at the stop").len() == 1).then_some(())
    });
}
