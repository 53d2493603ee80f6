//! SIGTERM while runs stream.

use crate::check::{Strict, check};
use crate::follow::{Follower, Seen};
use crate::report;
use crate::world::{Agents, Pace, config, shared_database};
use postgres::NoTls;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use uuid::Uuid;

/// Longer than anybody follows a run that does not go on: whoever goes on was handed the run.
const LEASE: Duration = Duration::from_secs(600);

/// How long a stop took, how long the runs after it, and the runs.
type Stopped = (Duration, Duration, Vec<(Uuid, Seen)>);

/// Stops a server in the middle of streams and starts the next, again where the machine was so busy that
/// a run was over before the stop. `between`: the model's pace.
fn stop_and_start(between: Duration, shutdown: Duration) -> Stopped {
    let stopped = (0..5).find_map(|_| try_to_stop(between, shutdown));
    stopped.expect("a stop in the middle of every run")
}

fn try_to_stop(between: Duration, shutdown: Duration) -> Option<Stopped> {
    let config = config(shared_database())
        .with("SVC_RUN_LEASE_MS", LEASE.as_millis())
        .with("SVC_SHUTDOWN_TIMEOUT_MS", shutdown.as_millis());
    let server = config.start();
    let client = config.client();
    let pace = Pace {
        between,
        ..Pace::default()
    };
    let agents = Agents::make(&client, pace);
    let followers: Vec<Follower> = (0..4)
        .map(|_| {
            let run_id = agents.start_turn(&client, agents.repeatable);
            Follower::of(client.clone(), agents.repeatable, run_id)
        })
        .collect();
    // On a busy machine many words come as one piece, and a run may be over before its third.
    let is_streaming = crate::eventually("text to be streamed", || {
        let streams = |follower: &Follower| follower.look(|seen| seen.pieces >= 3);
        let is_over = followers.iter().any(Follower::is_over);
        (is_over || followers.iter().all(streams)).then_some(!is_over)
    });
    if !is_streaming {
        return None;
    }
    let mut sql = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    let now = "select clock_timestamp()";
    let asked_at: OffsetDateTime = sql.query_one(now, &[]).unwrap().get(0);
    let (status, took) = server.terminate();
    // It has two seconds after its deadline to hand back what it holds, which may be too few.
    if !status.success() && took > shutdown + Duration::from_millis(1500) {
        return None;
    }
    assert!(status.success(), "{status}: see {}", config.log.display());
    let over = "select count(*) from runs where completed_at <= $1";
    let over: i64 = sql.query_one(over, &[&asked_at]).unwrap().get(0);
    if over > 0 {
        return None;
    }
    let started_at = Instant::now();
    let _server = config.start();
    let runs: Vec<(Uuid, Seen)> = followers
        .into_iter()
        .map(|follower| (follower.agent_id, follower.finish()))
        .collect();
    let over_after = started_at.elapsed();
    for (_, seen) in &runs {
        assert!(
            seen.ends.iter().any(|end| end == "server-stopping"),
            "{:?}",
            seen.ends
        );
        assert_eq!(seen.ends.last().unwrap(), "run-finished");
    }
    let figures = check(&config, &agents, &runs, Strict::Completed);
    assert_eq!(figures.completed, runs.len());
    Some((took, over_after, runs))
}

fn restarted(runs: &[(Uuid, Seen)]) -> usize {
    let events = runs.iter().flat_map(|(_, seen)| &seen.events);
    events
        .filter(|event| event.kind == "step.restarted")
        .count()
}

#[test]
fn a_stop_lets_steps_end_and_hands_the_rest_of_the_run_over() {
    let (took, over_after, runs) =
        stop_and_start(Duration::from_millis(60), Duration::from_secs(20));
    assert_eq!(restarted(&runs), 0, "every step had time to end");
    let figures = format!(
        "tookMs={} allOverAfterMs={}",
        took.as_millis(),
        over_after.as_millis()
    );
    report("stop", &figures);
}

#[test]
fn a_stop_cuts_what_outlasts_its_deadline_and_hands_it_over() {
    let stop = || stop_and_start(Duration::from_millis(150), Duration::from_millis(500));
    // A server that stands still at its deadline finds the whole answer afterwards.
    let mut stops = (0..3).map(|_| stop());
    let cut = stops.find(|(_, _, runs)| restarted(runs) > 0);
    let (took, over_after, _) = cut.expect("no step outlasted the deadline");
    let figures = format!(
        "tookMs={} allOverAfterMs={}",
        took.as_millis(),
        over_after.as_millis()
    );
    report("stop cut", &figures);
}
