//! `POST /v1/runs/{runId}/cancel`, whatever the run is doing.

use crate::harness::{
    App, NewTool, Puppet, ToolAnswer, ToolServer, end_of, eventually, is_finished, kinds, within,
};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A busy machine's share of what is to take a second.
const ROOM: Duration = Duration::from_secs(2);

#[track_caller]
fn check_cancelled(app: &App, id: &str) -> Value {
    let run = app.finished(id);
    assert_eq!(run["status"], "cancelled", "{run}");
    assert_eq!(run["failureMessage"], Value::Null);
    assert_eq!(run["cancelRequested"], true);
    assert_eq!(kinds(&app.events(id)).last(), Some(&"run.cancelled"));
    assert_eq!(app.output(id), Value::Null);
    run
}

#[test]
fn a_queued_run_ends_at_once_and_is_never_begun() {
    let app = App::start_with(|options| options.runs.threads = 1);
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let blocking = app.start_turn(agent, "first");
    let call = puppet.call();
    let queued = app.start_turn(agent, "second");
    let answered = app.cancel(&queued);
    assert_eq!(answered["status"], "cancelled");
    let run = check_cancelled(&app, &queued);
    assert_eq!(run, answered);
    assert_eq!(run["startedAt"], Value::Null);
    assert_eq!(
        kinds(&app.events(&queued)),
        ["run.created", "run.cancelled"]
    );
    let third = app.start_turn(agent, "third");
    call.finish();
    app.finished(&blocking);
    let call = puppet.call();
    assert_eq!(call.body["messages"][1]["content"], "third");
    call.finish();
    app.finished(&third);
    let mut database = app.database.client();
    eventually("its job to be gone", || {
        let jobs = database.query_one("select count(*) from job_jobs", &[]);
        (jobs.unwrap().get::<_, i64>(0) == 0).then_some(())
    });
}

#[test]
fn a_run_that_waits_for_another_try_ends_at_once() {
    let app = App::start_with(|options| options.runs.first_wait = Duration::from_secs(5));
    let provider = Provider::start(Script {
        queue: vec![Step::json(500, &json!({"error": {"message": "Not now."}}))],
        then: Step::text("Too late."),
    })
    .unwrap();
    let agent = app.agent(&provider.base_url());
    let id = app.start_turn(agent, "a");
    let waiting = app.run_once(&id, "waiting");
    assert_eq!(waiting["usage"]["calls"], 1);
    assert_eq!(app.cancel(&id)["status"], "cancelled");
    check_cancelled(&app, &id);
    // Another run waits as long and then goes on: by then the first would have too.
    provider.push(Step::json(500, &json!({})));
    let other = app.start_turn(agent, "b");
    assert_eq!(app.finished(&other)["status"], "completed");
    assert_eq!(provider.count(), 3);
    check_cancelled(&app, &id);
}

#[test]
fn a_run_that_streams_is_cut() {
    let app = App::start();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    within(ROOM, || {
        let id = app.start_turn(agent, "a");
        let mut call = puppet.call();
        call.say("Never ");
        let mut stream = app.follow(&id);
        let mut events = stream.until("text.delta");
        let began = Instant::now();
        let asked = app.cancel(&id);
        assert_eq!(asked["cancelRequested"], true);
        call.wait_until_cut();
        check_cancelled(&app, &id);
        let took = began.elapsed();
        events.extend(stream.rest());
        assert_eq!(end_of(&events), "run-finished");
        let shown = app.events(&id);
        assert_eq!(
            kinds(&shown),
            [
                "run.created",
                "run.started",
                "step.started",
                "run.cancelRequested",
                "run.cancelled"
            ]
        );
        assert_eq!(app.run(&id)["usage"]["calls"], 1, "the cut call is counted");
        took
    });
}

#[test]
fn a_run_whose_provider_says_nothing_is_cut() {
    let app = App::start();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    within(ROOM, || {
        let id = app.start_turn(agent, "a");
        let call = puppet.call();
        let began = Instant::now();
        app.cancel(&id);
        call.wait_until_cut();
        check_cancelled(&app, &id);
        began.elapsed()
    });
}

#[test]
fn a_run_on_another_replica_is_cut() {
    let app = App::start();
    let other = app.replica(|options| options.runs.poll = Duration::from_secs(600));
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    within(Duration::from_millis(1500) + ROOM, || {
        let id = app.start_turn(agent, "a");
        let mut call = puppet.call();
        call.say("Never ");
        let began = Instant::now();
        assert_eq!(other.cancel(&id)["cancelRequested"], true);
        call.wait_until_cut();
        check_cancelled(&other, &id);
        began.elapsed()
    });
}

#[test]
fn a_run_that_waits_for_its_tool_is_cut() {
    let app = App::start();
    let tool = ToolServer::start(|_, _| ToolAnswer::Hang);
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::new(Reply::ToolCalls(vec![("slow".to_owned(), json!({}))])),
    })
    .unwrap();
    let url = tool.url();
    let maker = app.maker();
    let project = maker.project();
    let slow = maker.tool(project, &NewTool::new("slow", &url));
    let agent = maker.agent_of(project, &provider.base_url(), |version| {
        version.tools = vec![slow]
    });
    let mut rounds = 0;
    within(ROOM, || {
        rounds += 1;
        let id = app.start_turn(agent, "a");
        eventually("the tool to be asked", || {
            (tool.asked().len() == rounds).then_some(())
        });
        let began = Instant::now();
        app.cancel(&id);
        check_cancelled(&app, &id);
        let took = began.elapsed();
        assert_eq!(tool.asked().len(), rounds);
        took
    });
}

#[test]
fn a_finished_run_stays_as_it_is() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: vec![
            Step::text("Yes."),
            Step::json(401, &json!({"error": {"message": "no"}})),
        ],
        then: Step::default(),
    })
    .unwrap();
    let agent = app.agent(&provider.base_url());
    for status in ["completed", "failed"] {
        let id = app.start_turn(agent, "a");
        let run = app.finished(&id);
        assert_eq!(run["status"], status);
        assert_eq!(app.cancel(&id), run);
        assert_eq!(app.run(&id), run);
    }
    let nobody = app.clock.new_id();
    app.send("POST", &format!("/v1/runs/{nobody}/cancel"), None, &[])
        .expect_error(404, "not-found");
}

#[test]
fn a_cancel_is_asked_once_however_often() {
    let app = App::start();
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    let _call = puppet.call();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| app.cancel(&id));
        }
    });
    check_cancelled(&app, &id);
    let events = app.events(&id);
    let asked = kinds(&events)
        .iter()
        .filter(|kind| **kind == "run.cancelRequested")
        .count();
    assert_eq!(asked, 1, "{events:?}");
}

#[test]
fn a_cancel_that_races_the_end_changes_no_finished_run() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Yes.").before(Duration::from_millis(20)),
    })
    .unwrap();
    let agent = app.agent(&provider.base_url());
    let (mut completed, mut cancelled) = (0, 0);
    // Later after a cancel that came before the end, sooner after one that came behind it: whatever a run takes
    // here, the cancels gather about its end.
    let mut wait = Duration::ZERO;
    let mut round = 0;
    while round < 60 || ((completed == 0 || cancelled == 0) && round < 400) {
        round += 1;
        let id = app.start_turn(agent, "a");
        crate::harness::let_time_pass(wait);
        let answered = app.cancel(&id);
        let run = app.finished(&id);
        if is_finished(&answered) {
            assert_eq!(answered, run, "what was said to be finished has changed");
        } else {
            assert_eq!(run["status"], "cancelled", "it was asked before its end");
        }
        let events = app.events(&id);
        let last = *kinds(&events).last().unwrap();
        match run["status"].as_str().unwrap() {
            "completed" => {
                completed += 1;
                wait = wait * 3 / 4;
                assert_eq!(last, "run.completed");
                assert_eq!(run["cancelRequested"], false);
                assert_eq!(app.output(&id), json!({"text": "Yes."}));
            }
            _ => {
                cancelled += 1;
                wait += Duration::from_millis(3);
                check_cancelled(&app, &id);
            }
        }
        assert_eq!(app.run(&id), run);
    }
    assert!(completed > 0 && cancelled > 0, "{completed} {cancelled}");
}
