//! No tenant keeps another waiting: a tenant's runs begin only while they hold fewer run threads than are free, whatever
//! its model providers do.

use crate::harness::{App, Client, Item, eventually};
use agent_runtime::dev::provider::{Provider, Script, Step};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// `SVC_RUN_THREADS`: what one tenant has at most.
const THREADS: usize = 8;

/// A provider that answers at once, or takes the call and says nothing.
fn provider(before: Duration) -> Provider {
    let then = Step {
        before,
        ..Step::text("Done.")
    };
    let queue = Vec::new();
    Provider::start(Script { queue, then }).unwrap()
}

/// Far more runs than one tenant has threads, all of whose model calls hang.
fn hang(client: &Client, tarpit: &Provider) {
    let agent = client.agent(&tarpit.base_url());
    for _ in 0..10 * THREADS {
        client.start_turn(agent, "a");
    }
}

/// So many runs hold a thread, and stay so.
fn holds(app: &App, running: usize) {
    eventually("the runs to hold their threads", || {
        let stats = app.server().shared().runtime.queue_stats().unwrap();
        (stats.running == running as u64).then_some(())
    });
}

/// From the request that makes a run to the first text of its answer.
fn first_text(client: &Client, agent: Uuid) -> Duration {
    let began = Instant::now();
    let run = client.start_turn(agent, "a");
    let mut stream = client.follow(&run);
    loop {
        match stream.item() {
            // The step's end has the whole text, where the stream began after it.
            Item::Event(event)
                if ["text.delta", "step.completed"].contains(&event.kind.as_str()) =>
            {
                return began.elapsed();
            }
            Item::Event(_) | Item::Comment | Item::Retry(_) => {}
            Item::End | Item::Cut => panic!("the stream ended before any text"),
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn a_tenant_whose_provider_hangs_keeps_no_other_waiting() {
    let [app, usual] = [(); 2].map(|()| App::start_with(|options| options.runs.threads = THREADS));
    let (tarpit, quick) = (
        provider(Duration::from_secs(3600)),
        provider(Duration::ZERO),
    );
    hang(&app, &tarpit);
    holds(&app, THREADS);
    let others = [app.other_tenant(), usual.other_tenant()];
    let both = others
        .each_ref()
        .map(|client| (client, client.agent(&quick.base_url())));
    // Alternately, so that whatever slows the machine slows both.
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..33 {
        for ((client, agent), times) in both.iter().zip(&mut times) {
            let time = first_text(client, *agent);
            // The first ones plan statements and open connections.
            if round >= 4 {
                times.push(time);
            }
        }
    }
    let [beside, alone] = times.map(median);
    assert!(
        beside <= 2 * alone,
        "{beside:?} beside a tarpit, {alone:?} usually"
    );
    holds(&app, THREADS);
}

#[test]
fn a_tenant_with_too_many_runs_that_have_not_ended_starts_no_other() {
    let app = App::start_with(|options| options.runs.run_limits.unfinished = 3);
    let (tarpit, quick) = (
        provider(Duration::from_secs(3600)),
        provider(Duration::ZERO),
    );
    let agent = app.agent(&tarpit.base_url());
    let runs: Vec<String> = (0..3).map(|_| app.start_turn(agent, "a")).collect();
    let start = serde_json::json!({"agentId": agent, "message": "a"});
    let refused = app
        .post("/v1/runs", &start)
        .expect_error(429, "too-many-requests");
    let said = "The tenant may have 3 runs that have not ended, and no more begin until some have ended or are cancelled.";
    assert_eq!(refused["message"], said);
    let other = app.other_tenant();
    let run = other.start_turn(other.agent(&quick.base_url()), "a");
    assert_eq!(other.finished(&run)["status"], "completed");
    app.cancel(&runs[0]);
    app.finished(&runs[0]);
    eventually("the tenant to have room", || {
        (app.post("/v1/runs", &start).status == 202).then_some(())
    });
}

#[test]
fn tenants_that_hang_leave_threads_to_the_next_one() {
    let app = App::start_with(|options| options.runs.threads = THREADS);
    let (tarpit, quick) = (
        provider(Duration::from_secs(3600)),
        provider(Duration::ZERO),
    );
    hang(&app, &tarpit);
    holds(&app, THREADS);
    // The second has half of what is left, the third half of that.
    hang(&app.other_tenant(), &tarpit);
    holds(&app, THREADS + THREADS / 2);
    hang(&app.other_tenant(), &tarpit);
    holds(&app, THREADS + THREADS / 2 + THREADS / 4);
    let last = app.other_tenant();
    let agent = last.agent(&quick.base_url());
    for _ in 0..3 {
        first_text(&last, agent);
    }
}
