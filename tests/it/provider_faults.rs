//! What a run does when its model provider is down, slow, cut, wrong or busy: it recovers, or fails
//! with a sentence that says why.

use crate::harness::{App, Deaf, NewVersion, Puppet, kinds};
use agent_runtime::config::Origin;
use agent_runtime::dev::provider::{Fault, Provider, Reply, Script, Step};
use agent_runtime::outbound::{self, HostAccess, Outbound, Timeouts};
use agent_runtime::runtime::ModelKeys;
use agent_runtime::secret::Secret;
use agent_runtime::server::Options;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const KEY: &str = "sk-0123456789abcdef-secret";

/// Three attempts with short waits, and time for a first byte that a busy machine keeps.
fn app() -> App {
    app_with_first_byte(Duration::from_secs(10))
}

fn app_with_first_byte(first_byte: Duration) -> App {
    App::start_with(|options| {
        options.runs.model_attempts = 3;
        options.runs.first_wait = Duration::from_millis(20);
        options.runs.model_timeouts = Timeouts {
            connect: Duration::from_secs(10),
            first_byte,
            idle: None,
            total: Duration::from_secs(15),
        };
    })
}

fn provider(queue: Vec<Step>, then: Step) -> Provider {
    Provider::start(Script { queue, then }).unwrap()
}

/// Runs a turn against this provider to its end.
#[track_caller]
fn run(app: &App, base_url: &str) -> Value {
    let id = app.start_turn(app.agent(base_url), "a");
    app.finished(&id)
}

/// The run failed after this many calls; its message holds these words.
#[track_caller]
fn check_failed(run: &Value, calls: i64, words: &[&str]) {
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["usage"]["calls"], calls, "{run}");
    let message = run["failureMessage"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
    assert!(message.len() < 2000 && !message.contains('\n'), "{message}");
}

#[track_caller]
fn check_recovered(app: &App, run: &Value, calls: i64) {
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["usage"]["calls"], calls, "{run}");
    let id = run["id"].as_str().unwrap();
    assert_eq!(app.output(id), json!({"text": "At last."}));
    let events = app.events(id);
    let count = |kind: &str| {
        kinds(&events)
            .iter()
            .filter(|known| **known == kind)
            .count()
    };
    let failed = usize::try_from(calls - 1).unwrap();
    assert_eq!(count("step.failed"), failed, "{events:?}");
    assert_eq!(count("run.waiting"), failed);
    assert_eq!(count("step.started"), failed + 1);
}

#[test]
fn one_that_is_down_fails_the_run() {
    let app = app();
    let deaf = Deaf::new();
    let run = run(&app, &format!("http://{}/v1", deaf.address()));
    check_failed(&run, 3, &["model provider", "3 times"]);
    let events = app.events(run["id"].as_str().unwrap());
    let failed = events.iter().filter(|event| event["kind"] == "step.failed");
    let again: Vec<&Value> = failed.map(|event| &event["data"]["willRetry"]).collect();
    assert_eq!(again, [true, true, false]);
}

#[test]
fn one_whose_first_byte_does_not_come_is_left() {
    let slow = Step::text("Too late.").before(Duration::from_secs(60));
    // The answer to the second call has its time, too.
    let app = app_with_first_byte(Duration::from_secs(4));
    let recovering = provider(vec![slow.clone()], Step::text("At last."));
    check_recovered(&app, &run(&app, &recovering.base_url()), 2);
    let app = app_with_first_byte(Duration::from_millis(400));
    let hanging = provider(Vec::new(), slow);
    check_failed(&run(&app, &hanging.base_url()), 3, &["model provider"]);
}

#[test]
fn one_that_is_slow_but_goes_on_is_waited_for() {
    // Each pause is far shorter than the wait for a first byte, and all of them are longer.
    let app = app_with_first_byte(Duration::from_secs(4));
    let slow = Step::text("At last.").between(Duration::from_millis(1400));
    let provider = provider(Vec::new(), slow);
    check_recovered(&app, &run(&app, &provider.base_url()), 1);
}

#[test]
fn one_that_is_cut_is_asked_again() {
    let app = app();
    for (queue, calls) in [
        (vec![Step::text("Cut here.").fault(2, Fault::Cut)], 2),
        (vec![Step::text("Cut here.").fault(0, Fault::Cut); 2], 3),
    ] {
        let provider = provider(queue, Step::text("At last."));
        check_recovered(&app, &run(&app, &provider.base_url()), calls);
    }
    // A stream that ends as HTTP says, and not as chat completions do.
    let unfinished = json!({"choices": [{"index": 0, "delta": {"content": "Only this"}}]});
    let unfinished = Step::new(Reply::Events(vec![unfinished.to_string()]));
    let provider = provider(Vec::new(), unfinished);
    check_failed(&run(&app, &provider.base_url()), 3, &["cut off"]);
}

#[test]
fn one_that_answers_with_a_web_page_says_so() {
    let app = app();
    let page = Step::plain(200, "text/html", "<!DOCTYPE html><title>Sign in</title>");
    let provider = provider(Vec::new(), page);
    let run = run(&app, &provider.base_url());
    check_failed(&run, 1, &["web page", "base URL"]);
}

#[test]
fn an_error_inside_an_answer_is_an_error() {
    let app = app();
    let busy = json!({"error": {"message": "The model is overloaded.", "code": 503}});
    let wrong = json!({"error": {"message": "No such model.", "type": "invalid_request_error"}});
    let stream = |payload: &Value| Step::new(Reply::Events(vec![payload.to_string()]));
    for busy in [Step::json(200, &busy), stream(&busy)] {
        let provider = provider(vec![busy], Step::text("At last."));
        check_recovered(&app, &run(&app, &provider.base_url()), 2);
    }
    for wrong in [Step::json(200, &wrong), stream(&wrong)] {
        let provider = provider(Vec::new(), wrong);
        check_failed(&run(&app, &provider.base_url()), 1, &["No such model."]);
    }
}

#[test]
fn one_that_is_asked_too_much_is_given_the_time_it_wants() {
    let app = app();
    let busy = Step::json(429, &json!({"error": {"message": "Slow down."}}));
    let provider = provider(
        vec![busy.header("retry-after", "1")],
        Step::text("At last."),
    );
    let began = Instant::now();
    check_recovered(&app, &run(&app, &provider.base_url()), 2);
    assert!(
        began.elapsed() >= Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn one_that_wants_more_time_than_the_turn_has_fails_the_run() {
    let app = app();
    let busy = Step::json(503, &json!({})).header("retry-after", "600");
    let provider = provider(vec![busy], Step::text("At last."));
    let agent = app.agent_with(&provider.base_url(), |version| {
        version.limits = json!({"turnTimeoutMs": 60_000});
    });
    let id = app.start_turn(agent, "a");
    check_failed(&app.finished(&id), 1, &["HTTP 503"]);
}

#[test]
fn a_fault_of_its_own_passes() {
    let app = app();
    for status in [500, 502, 503, 529] {
        let fault = Step::json(status, &json!({"error": {"message": "Oh."}}));
        let provider = provider(vec![fault], Step::text("At last."));
        check_recovered(&app, &run(&app, &provider.base_url()), 2);
    }
    let fault = Step::json(500, &json!({"error": {"message": "Broken\nfor good."}}));
    let provider = provider(Vec::new(), fault);
    check_failed(
        &run(&app, &provider.base_url()),
        3,
        &["HTTP 500", "Broken for good.", "3 times"],
    );
    assert_eq!(provider.count(), 3);
}

/// An app whose operator listed a key for this provider.
fn app_with_key(base_url: &str) -> App {
    let url = base_url.parse().unwrap();
    App::start_with(|options| {
        let mut keys = ModelKeys::default();
        keys.add("main", &url, Secret::new(KEY));
        options.model_keys = keys;
    })
}

#[test]
fn a_key_that_is_refused_fails_the_run_at_once_and_is_not_shown() {
    let body = json!({"error": {"message": format!("Incorrect API key: {KEY}.")}});
    let provider = provider(vec![Step::json(401, &body)], Step::text("Unreached."));
    let app = app_with_key(&provider.base_url());
    let maker = app.maker();
    let project = maker.project();
    let keyed = maker.provider(&provider.base_url(), Some("main"));
    let agent = maker.bare_agent(project);
    maker.version(agent, keyed, &NewVersion::new("1.0.0"));
    let id = app.start_turn(agent, "a");
    let run = app.finished(&id);
    check_failed(&run, 1, &["API key", "HTTP 401"]);
    assert_eq!(provider.count(), 1);
    let sent = &provider.requests()[0].headers;
    let authorization = sent.iter().find(|(name, _)| name == "authorization");
    assert_eq!(authorization.unwrap().1, format!("Bearer {KEY}"));
    let progress = app.get(&format!("/v1/runs/{id}/progress"));
    assert!(
        !progress.text.contains(KEY) && !progress.text.contains("sk-0123"),
        "{progress:?}"
    );
    let kept: String = app
        .database
        .client()
        .query_one(
            "select (select string_agg(to_jsonb(c)::text, ' ') from run_model_calls c)
               || (select string_agg(to_jsonb(e)::text, ' ') from run_events e)
               || (select string_agg(to_jsonb(r)::text, ' ') from runs r)",
            &[],
        )
        .unwrap()
        .get(0);
    assert!(!kept.contains("sk-0123"), "{kept}");
}

/// Restarts the app with other options.
fn restart(app: App, change: impl FnOnce(&mut Options)) -> App {
    let (database, clock, seeds) = app.stop();
    App::start_on(database, clock, seeds, change)
}

#[test]
fn a_key_goes_to_its_own_origin_alone() {
    let (one, two) = (
        provider(Vec::new(), Step::text("At last.")),
        provider(Vec::new(), Step::text("At last.")),
    );
    let list = |keys: &[(&str, &Provider)]| {
        let mut listed = ModelKeys::default();
        for (name, provider) in keys {
            let url = provider.base_url().parse().unwrap();
            listed.add(*name, &url, Secret::new(KEY));
        }
        move |options: &mut Options| options.model_keys = listed
    };
    let app = App::start_with(list(&[("first", &one), ("second", &two), ("third", &one)]));
    let maker = app.maker();
    let project = maker.project();
    let agent_at = |provider: &Provider, key: &str| {
        let provider = maker.provider(&provider.base_url(), Some(key));
        let agent = maker.bare_agent(project);
        maker.version(agent, provider, &NewVersion::new("1.0.0"));
        agent
    };
    let first = agent_at(&one, "first");
    let second = agent_at(&two, "second");
    let third = agent_at(&one, "third");
    // The operator lists the second key for another origin from now on, and the third no more.
    let app = restart(app, list(&[("first", &one), ("second", &one)]));
    let finish = |agent| app.finished(&app.start_turn(agent, "a"));
    check_recovered(&app, &finish(first), 1);
    check_failed(&finish(second), 0, &["API key second", "another origin"]);
    check_failed(&finish(third), 0, &["API key third", "not listed"]);
    assert_eq!((one.count(), two.count()), (1, 0));
}

#[test]
fn a_deployed_server_does_not_call_itself() {
    let provider = provider(Vec::new(), Step::text("Unreached."));
    let port = provider.base_url();
    let port = port
        .trim_end_matches("/v1")
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let app = App::start();
    let agents = [
        provider.base_url(),
        format!("http://localhost:{port}/v1"),
        format!("http://[::1]:{port}/v1"),
        "http://169.254.169.254/v1".to_owned(),
        "http://metadata.google.internal/v1".to_owned(),
    ]
    .map(|base_url| app.agent(&base_url));
    let app = restart(app, |options| {
        options.runs.host_access = HostAccess::Deployed
    });
    for agent in agents {
        let run = app.finished(&app.start_turn(agent, "a"));
        check_failed(&run, 1, &["does not let a tenant reach"]);
    }
    assert_eq!(provider.count(), 0);
    // The operator may open exactly one origin on loopback.
    let origin = provider.base_url();
    let origin = Origin::parse(origin.trim_end_matches("/v1")).unwrap();
    let app = restart(app, |options| {
        options.runs.host_access = HostAccess::Deployed;
        options.outbound = Outbound::new(outbound::Options {
            host_access_origins: vec![origin],
            ..outbound::Options::default()
        })
        .unwrap();
    });
    let run = |agent| app.finished(&app.start_turn(agent, "a"));
    assert_eq!(run(agents[0])["status"], "completed");
    check_failed(&run(agents[1]), 1, &["SVC_HOST_ACCESS_ORIGINS"]);
    assert_eq!(provider.count(), 1);
}

#[test]
fn a_turn_has_its_time_and_its_steps() {
    let app = App::start();
    let puppet = Puppet::start();
    let agent = app.agent_with(&puppet.base_url(), |version| {
        version.limits = json!({"turnTimeoutMs": 3000});
    });
    // A turn whose time is over before the model was asked has waited for a busy machine.
    let run = (0..10)
        .map(|_| app.finished(&app.start_turn(agent, "a")))
        .find(|run| run["usage"]["calls"] != 0);
    check_failed(&run.unwrap(), 1, &["turnTimeoutMs", "3000 ms"]);
    puppet.call().wait_until_cut();
    let looping = provider(
        Vec::new(),
        Step::new(Reply::ToolCalls(vec![("none".to_owned(), json!({}))])),
    );
    let agent = app.agent_with(&looping.base_url(), |version| {
        version.limits = json!({"maxSteps": 5});
    });
    let id = app.start_turn(agent, "a");
    check_failed(&app.finished(&id), 3, &["5 steps", "maxSteps"]);
}
