//! docs/streaming.md. How streams behave is in `streams`; how each of them ends, in `src/http/sse/format.rs`.

use crate::harness::openfga::Relay;
use crate::harness::page::{Page, part};
use crate::harness::site::Site;
use crate::harness::{App, Client, Puppet, eventually};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};

/// Lines of the browser's script, at most.
const LINES_MOST: usize = 20;

/// How long the browser may take, in seconds.
const MOST_S: &str = "60";

#[test]
fn the_page_has_every_event_with_its_fields() {
    let page = Page::read("streaming.md");
    let app = App::start();
    let description = app.get("/openapi.json").expect(200);
    let schemas = &description["components"]["schemas"];
    let kinds = schemas["RunEvent"]["discriminator"]["mapping"]
        .as_object()
        .unwrap();
    assert!(kinds.len() > 10, "{kinds:?}");
    for kind in kinds.keys() {
        page.check_row(&format!("`{kind}`"));
    }
    page.check_row("`stream.reset`");
    let described = schemas.to_string();
    for field in ["willRetry", "lostAttempt", "outputTruncated", "retryAt"] {
        assert!(described.contains(field) && page.text.contains(&format!("`{field}`")));
    }
}

/// A browser without a window, which prints what it shows once the page has nothing more to do.
fn browse(url: &str, profile: &std::path::Path) -> Child {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "5", MOST_S])
        .arg(part("chromium/browser"));
    command.args(["--headless", "--disable-gpu", "--dump-dom"]);
    // Its clock stands while an answer is under way, and jumps where the page only waits.
    command.arg("--virtual-time-budget=1000000000");
    command.arg(format!("--user-data-dir={}", profile.display()));
    if rustix::process::geteuid().is_root() {
        command.arg("--no-sandbox");
    }
    command.arg(url).stdin(Stdio::null());
    let outputs = command.stdout(Stdio::piped()).stderr(Stdio::null());
    outputs.spawn().unwrap()
}

/// Streams that the server has open; none if it was too busy to say.
fn streams(app: &App) -> Option<i64> {
    let metrics = app.get("/metrics").text;
    let mut lines = metrics.lines();
    let line = lines.find_map(|line| line.strip_prefix("agent_runtime_streams "));
    line.map(|figure| figure.parse().unwrap())
}

#[test]
fn the_page_for_browsers_shows_the_answer_over_a_cut_connection() {
    let html = Page::read("streaming.md").blocks("html").remove(0);
    let script = html.split("<script type=\"module\">\n").nth(1).unwrap();
    let lines = script.split("</script>").next().unwrap().lines().count();
    assert!(
        lines <= LINES_MOST,
        "the browser's script has {lines} lines"
    );

    let site = Site::start(html);
    let origin = site.origin();
    let app = App::start_with(|options| options.allowed_origins = vec![origin]);
    let relay = Relay::before(app.address());
    let model = Puppet::start();
    let agent = app.agent(&model.base_url());
    let body = json!({"agentId": agent, "message": "How are you?"});
    let started = app.post("/v1/runs", &body).expect(202);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (run, token) = (
        text(&started["run"]["id"]),
        text(&started["publicToken"]["token"]),
    );
    let stream = format!("{}{}", relay.url(), Client::stream_of(&run));
    let profile = tempfile::tempdir().unwrap();
    let url = format!("{}/follow.html#{stream},{token}", site.origin());
    let browser = browse(&url, profile.path());

    let mut call = model.call();
    call.say("Grüße 👋, ");
    eventually("the browser's stream", || {
        (streams(&app) == Some(1)).then_some(())
    });
    relay.cut();
    call.say("I am ");
    eventually("the end of the browser's stream", || {
        (streams(&app) == Some(0)).then_some(())
    });
    relay.heal();
    eventually("the browser's second stream", || {
        (streams(&app) == Some(1)).then_some(())
    });
    call.say("well.");
    call.finish();
    app.finished(&run);
    let shown = browser.wait_with_output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let whole = "<pre id=\"answer\">Grüße 👋, I am well.</pre>";
    assert!(shown.contains(whole), "the browser shows:\n{shown}");
}
