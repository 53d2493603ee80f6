//! `kill -9` of the server at random moments of runs.

use crate::check::{Figures, Strict, check};
use crate::follow::{Follower, Seen};
use crate::random::Random;
use crate::server::{Server, ServerConfig};
use crate::world::{Agents, Pace, config, shared_database};
use crate::{middle_and_most, report, setting};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Runs at once.
const RUNS: usize = 6;

/// Kills before everything is let come to rest and checked.
const KILLS_A_ROUND: u64 = 10;

/// How long a server lives at most: longer than a turn takes.
const LONGEST_LIFE_MS: u64 = 1600;

/// What one round came to.
#[derive(Default)]
struct Round {
    kills: u64,
    runs: usize,
    connections: usize,
    pieces: usize,
    figures: Figures,
    /// From each kill to the next event of each run that was under way.
    recoveries: Vec<Duration>,
    starts: Vec<Duration>,
}

#[test]
fn runs_outlive_kills_at_random_moments() {
    let kills = setting("CRASH_KILLS", 10);
    let until = Instant::now() + Duration::from_secs(setting("CRASH_SECONDS", 3600));
    let mut random = Random::seeded("kills");
    let config = config(shared_database());
    let mut all = Round::default();
    while all.kills < kills && Instant::now() < until {
        let round = round(&config, &mut random, KILLS_A_ROUND.min(kills - all.kills));
        all.kills += round.kills;
        all.runs += round.runs;
        all.connections += round.connections;
        all.pieces += round.pieces;
        all.figures += round.figures;
        all.recoveries.extend(round.recoveries);
        all.starts.extend(round.starts);
        let (recovery, recovery_most) = middle_and_most(&mut all.recoveries);
        let (start, start_most) = middle_and_most(&mut all.starts);
        report(
            "kills",
            &format!(
                "kills={} runs={} completed={} failed={} lostAttempts={} connections={} pieces={} \
                 recoveryP50Ms={recovery} recoveryMaxMs={recovery_most} startP50Ms={start} startMaxMs={start_most}",
                all.kills,
                all.runs,
                all.figures.completed,
                all.figures.failed,
                all.figures.lost_attempts,
                all.connections,
                all.pieces,
            ),
        );
    }
    assert!(
        all.figures.lost_attempts > 0,
        "no kill met a step under way"
    );
}

/// Kills and starts, with runs throughout; then lets all come to their end, and checks.
fn round(config: &ServerConfig, random: &mut Random, kills: u64) -> Round {
    let mut round = Round::default();
    let mut server = config.start();
    let agents = Agents::make(&config.client(), Pace::default());
    let mut followers: Vec<Follower> = Vec::new();
    let mut killed_at = Vec::new();
    for number in 0..kills {
        let under_way = followers
            .iter()
            .filter(|follower| !follower.is_over())
            .count();
        for _ in under_way..RUNS {
            let agent_id = match random.below(3) {
                0 => agents.unrepeatable,
                _ => agents.repeatable,
            };
            followers.push(Follower::of_new_run(
                config.client(),
                agent_id,
                agents.turn(agent_id),
            ));
        }
        if number == 0 {
            // One for certain meets a step under way: at random, all may come when every run is over.
            crate::eventually("a call of the model", || {
                (agents.provider.count() > 0).then_some(())
            });
        } else {
            live(random);
        }
        server = one_kill(config, random, server, &mut killed_at, &mut round.starts);
    }
    let mut runs: Vec<(Uuid, Seen)> = Vec::new();
    for follower in followers {
        let agent_id = follower.agent_id;
        runs.push((agent_id, follower.finish()));
    }
    round.figures = check(config, &agents, &runs, Strict::Crashes);
    round.kills = kills;
    round.runs = runs.len();
    round.connections = runs.iter().map(|(_, seen)| seen.connections).sum();
    round.pieces = runs.iter().map(|(_, seen)| seen.pieces).sum();
    round.recoveries = recoveries(&killed_at, &runs);
    server.kill();
    round
}

/// The time that a server lives.
pub(crate) fn live(random: &mut Random) {
    random.let_pass(0, LONGEST_LIFE_MS);
}

/// Kills the server and starts the next, which now and then is killed while it starts.
pub(crate) fn one_kill(
    config: &ServerConfig,
    random: &mut Random,
    server: Server,
    killed_at: &mut Vec<Instant>,
    starts: &mut Vec<Duration>,
) -> Server {
    server.kill();
    killed_at.push(Instant::now());
    if random.below(4) == 0 {
        let starting = config.spawn();
        random.let_pass(0, 300);
        starting.kill();
    }
    let mut server = config.spawn();
    starts.push(server.wait_ready());
    server
}

/// From each kill to the next event of each run that had begun and not finished.
fn recoveries(killed_at: &[Instant], runs: &[(Uuid, Seen)]) -> Vec<Duration> {
    let mut times = Vec::new();
    for killed_at in killed_at {
        for (_, seen) in runs {
            let before = seen.events.iter().any(|event| event.at < *killed_at);
            let next = seen.events.iter().find(|event| event.at >= *killed_at);
            if let (true, Some(next)) = (before, next) {
                times.push(next.at - *killed_at);
            }
        }
    }
    times
}

#[test]
fn a_tool_that_may_not_be_called_again_is_not() {
    let config = config(shared_database());
    let server = config.start();
    let client = config.client();
    // It does not answer before the server is killed.
    let pace = Pace {
        tool: Duration::from_secs(15),
        ..Pace::default()
    };
    let agents = Agents::make(&client, pace);
    let run_id = agents.start_turn(&client, agents.unrepeatable);
    let follower = Follower::of(client, agents.unrepeatable, run_id);
    agents.tool.wait_for(run_id);
    server.kill();
    let _server = config.start();
    let seen = follower.finish();
    assert_eq!(agents.tool.calls().len(), 1);
    let last = seen.events.last().unwrap();
    assert_eq!(last.kind, "run.failed");
    let message = last.data["failureMessage"].as_str().unwrap();
    assert!(
        message.contains("charge") && message.contains("not declared idempotent"),
        "{message}"
    );
    check(
        &config,
        &agents,
        &[(agents.unrepeatable, seen)],
        Strict::Crashes,
    );
}

#[test]
fn a_tool_that_may_be_called_again_is_told_the_same_key() {
    // Nobody takes up a run whose holder the machine holds up for a while.
    let config = config(shared_database()).with("SVC_RUN_LEASE_MS", 5000);
    let server = config.start();
    let client = config.client();
    // It does not answer before the server is killed.
    let pace = Pace {
        tool: Duration::from_secs(15),
        ..Pace::default()
    };
    let agents = Agents::make(&client, pace);
    let run_id = agents.start_turn(&client, agents.repeatable);
    let follower = Follower::of(client, agents.repeatable, run_id);
    agents.tool.wait_for(run_id);
    server.kill();
    agents.tool.take(Duration::from_millis(50));
    let _server = config.start();
    let seen = follower.finish();
    let calls: Vec<(i32, i32)> = agents
        .tool
        .calls()
        .iter()
        .map(|call| (call.step, call.attempt))
        .collect();
    assert_eq!(calls, [(2, 1), (2, 2)]);
    let restarted = seen
        .events
        .iter()
        .find(|event| event.kind == "step.restarted")
        .unwrap();
    assert_eq!(restarted.data["lostAttempt"], 1);
    check(
        &config,
        &agents,
        &[(agents.repeatable, seen)],
        Strict::Completed,
    );
}
