//! A server that stops in the middle of runs, and the next one on the same database. What a crash
//! leaves behind is tested with the real program (`tests/crash`).

use crate::harness::{App, NewTool, Puppet, ToolAnswer, ToolServer, check_order, end_of, kinds};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Stops the server as an orchestrator does that does not wait for slow answers.
fn stop_soon(app: App) -> App {
    let (database, clock, seeds) = app.stop_within(Duration::from_millis(300));
    App::start_on(database, clock, seeds, |_| {})
}

#[test]
fn a_run_in_the_middle_of_an_answer_goes_on_after_a_restart() {
    let app = App::start();
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    let mut lost = puppet.call();
    lost.say("Lost ");
    let mut stream = app.follow(&id);
    let events = stream.until("text.delta");
    let last = events.iter().filter_map(|event| event.id).max().unwrap();
    let app = stop_soon(app);
    let mut call = puppet.call();
    call.say("Found.");
    let mut again = app.follow_after(&id, last);
    call.finish();
    let events = again.rest();
    check_order(&events, last + 1);
    assert_eq!(end_of(&events), "run-finished");
    let run = app.finished(&id);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(app.output(&id), json!({"text": "Found."}));
    assert_eq!(run["usage"]["calls"], 2, "the lost call is counted");
    assert_eq!(
        run["usage"]["tokens"]["prompt"], 10,
        "what it used is not known"
    );
    let shown = app.events(&id);
    assert_eq!(
        kinds(&shown),
        [
            "run.created",
            "run.started",
            "step.started",
            "step.restarted",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    let restarted = &shown[3]["data"];
    assert_eq!(
        (&restarted["lostAttempt"], &restarted["attempt"]),
        (&json!(1), &json!(2))
    );
    let outcomes: Vec<String> = app
        .database
        .client()
        .query("select outcome from run_model_calls order by attempt", &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(outcomes, ["lost", "completed"]);
}

/// A turn that calls two tools, one after the other, and is stopped while the second hangs.
fn stopped_in_its_second_tool(idempotent: bool) -> (App, String, ToolServer, ToolServer, Provider) {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: vec![Step::new(Reply::ToolCalls(vec![
            ("first".to_owned(), json!({})),
            ("second".to_owned(), json!({})),
        ]))],
        then: Step::text("Done."),
    })
    .unwrap();
    let hangs = Arc::new(AtomicBool::new(true));
    let first = ToolServer::start(|_, _| ToolAnswer::ok("one"));
    let still = hangs.clone();
    let second = ToolServer::start(move |_, _| match still.load(Ordering::Relaxed) {
        true => ToolAnswer::Hang,
        false => ToolAnswer::ok("two"),
    });
    let maker = app.maker();
    let project = maker.project();
    let tools = [("first", &first), ("second", &second)].map(|(name, server)| {
        let url = server.url();
        let mut tool = NewTool::new(name, &url);
        tool.idempotent = idempotent;
        maker.tool(project, &tool)
    });
    let agent = maker.agent_of(project, &provider.base_url(), |version| {
        version.tools = tools.to_vec();
    });
    let id = app.start_turn(agent, "a");
    crate::harness::eventually("the second tool to be asked", || {
        (second.asked().len() == 1).then_some(())
    });
    hangs.store(false, Ordering::Relaxed);
    (stop_soon(app), id, first, second, provider)
}

#[test]
fn finished_steps_are_not_done_again_and_an_idempotent_tool_is() {
    let (app, id, first, second, provider) = stopped_in_its_second_tool(true);
    let run = app.finished(&id);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["usage"]["calls"], 2);
    assert_eq!((first.asked().len(), provider.count()), (1, 2));
    let asked = second.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(
        asked[0].header("idempotency-key"),
        asked[1].header("idempotency-key")
    );
    let events = app.events(&id);
    let count = |kind: &str| {
        kinds(&events)
            .iter()
            .filter(|known| **known == kind)
            .count()
    };
    assert_eq!((count("step.restarted"), count("step.completed")), (1, 4));
}

#[test]
fn a_tool_that_may_not_be_called_again_fails_the_run() {
    let (app, id, first, second, provider) = stopped_in_its_second_tool(false);
    let run = app.finished(&id);
    assert_eq!(run["status"], "failed", "{run}");
    let message = run["failureMessage"].as_str().unwrap();
    assert!(
        message.contains("second") && message.contains("idempotent"),
        "{message}"
    );
    let counts = (first.asked().len(), second.asked().len(), provider.count());
    assert_eq!(counts, (1, 1, 1));
    kinds(&app.events(&id));
}

#[test]
fn runs_that_wait_and_runs_that_are_queued_outlive_a_restart() {
    let app = App::start_with(|options| {
        options.runs.threads = 1;
        // Long enough that the run still waits when the server stops.
        options.runs.first_wait = Duration::from_secs(8);
    });
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let waiting = app.start_turn(agent, "waiting");
    drop(puppet.call());
    app.run_once(&waiting, "waiting");
    let running = app.start_turn(agent, "running");
    let lost = puppet.call();
    let queued = app.start_turn(agent, "queued");
    assert_eq!(app.run(&queued)["status"], "queued");
    let app = stop_soon(app);
    drop(lost);
    for _ in 0..3 {
        let mut call = puppet.call();
        let said = call.body["messages"][1]["content"]
            .as_str()
            .unwrap()
            .to_owned();
        call.say(&said);
        call.finish();
    }
    for (id, said, calls) in [
        (waiting, "waiting", 2),
        (running, "running", 2),
        (queued, "queued", 1),
    ] {
        let run = app.finished(&id);
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(run["usage"]["calls"], calls);
        assert_eq!(app.output(&id), json!({"text": said}));
        kinds(&app.events(&id));
    }
    assert!(puppet.is_idle());
}

#[test]
fn a_stop_that_may_wait_lets_an_answer_come_to_its_end() {
    let app = App::start();
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    let mut call = puppet.call();
    let stopping = std::thread::spawn(move || app.stop());
    call.say("Whole.");
    call.finish();
    let (database, clock, seeds) = stopping.join().unwrap();
    let app = App::start_on(database, clock, seeds, |_| {});
    let run = app.finished(&id);
    assert_eq!(run["status"], "completed");
    assert_eq!(run["usage"]["calls"], 1);
    assert!(puppet.is_idle());
}
