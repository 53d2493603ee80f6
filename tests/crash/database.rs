//! The database restarted, killed and stopped under a server that stays up.

use crate::check::{Strict, check};
use crate::follow::{Follower, Seen};
use crate::probe::{Asked, Probe, all_at_once, all_within};
use crate::random::Random;
use crate::server::{Server, ServerConfig};
use crate::wait::until_due;
use crate::world::{Agents, Pace, cluster, config};
use crate::{eventually, report, setting};
use agent_runtime::dev::cluster::Cluster;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};
use uuid::Uuid;

const RUNS: usize = 6;
const PROBES: &[&str] = &["/healthz", "/metrics"];
const REQUESTS: &[&str] = &["/v1/runs?limit=1", "/v1/projects?limit=1"];
const DEADLINE: Duration = Duration::from_millis(2500);
/// A busy machine may take this long beyond a deadline.
const GRACE: Duration = Duration::from_secs(5);
/// Of every run, after the database is back.
const LONGEST_RECOVERY: Duration = Duration::from_secs(20);
/// More at once than there are request threads.
const CROWD: usize = 30;

fn with_short_deadlines(config: ServerConfig) -> ServerConfig {
    config
        .with("SVC_REQUEST_DEADLINE_MS", DEADLINE.as_millis())
        .with("SVC_DATABASE_CHECKOUT_TIMEOUT_MS", 500)
        .with("SVC_DATABASE_STATEMENT_TIMEOUT_MS", 2000)
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // A backend may have ended since it was listed.
    let _ = kill_process(pid, signal);
}

/// Starts turns until told to stop, so that something is always under way.
fn start_runs(
    config: &ServerConfig,
    agents: &Agents,
    followers: &mut Vec<Follower>,
    random: &mut Random,
) {
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
}

fn finish(followers: Vec<Follower>) -> Vec<(Uuid, Seen)> {
    let each = followers
        .into_iter()
        .map(|follower| (follower.agent_id, follower.finish()));
    each.collect()
}

/// The events of the run that took longest, with the times of their writing and of their reading.
fn slowest(config: &ServerConfig, runs: &[(Uuid, Seen)]) -> String {
    let over = |(_, seen): &&(Uuid, Seen)| seen.events.last().map(|event| event.at);
    let (_, seen) = runs.iter().max_by_key(over).unwrap();
    let run_id = seen.run_id.unwrap();
    let mut sql = postgres::Client::connect(&config.database_url, postgres::NoTls).unwrap();
    let written = sql
        .query(
            "select (extract(epoch from created_at - min(created_at) over ()) * 1000)::bigint \
             from run_events where run_id = $1 order by seq",
            &[&run_id],
        )
        .unwrap();
    let first = seen.events[0].at;
    let lines = seen.events.iter().zip(&written).map(|(event, row)| {
        let (written, read) = (row.get::<_, i64>(0), (event.at - first).as_millis());
        format!(
            "\n  {} {} {} written {written} ms, read {read} ms",
            event.seq, event.kind, event.data
        )
    });
    format!("run {run_id} took longest: {}", lines.collect::<String>())
}

/// What a fault of the database did to those who asked meanwhile.
struct Watched {
    server: Server,
    probe: Probe,
    requests: Probe,
}

impl Watched {
    fn start(config: &ServerConfig, server: Server) -> Self {
        Self {
            server,
            probe: Probe::start(config.client(), PROBES),
            requests: Probe::start(config.client(), REQUESTS),
        }
    }

    /// Probes were answered at once and requests within their deadline. Says so in figures.
    fn stop(mut self) -> (Server, String) {
        let probed = self.probe.stop();
        let slowest = all_at_once(&probed, 200);
        let requests = self.requests.stop();
        let refused = all_within(&requests, &[200, 503, 504], DEADLINE + GRACE);
        let longest = requests.iter().map(|(_, time)| *time).max().unwrap();
        assert!(self.server.runs(), "the server stayed up");
        let figures = format!(
            "probes={} slowestProbeMs={} requests={} refused={refused} longestRequestMs={}",
            probed.len(),
            slowest.as_millis(),
            requests.len(),
            longest.as_millis()
        );
        (self.server, figures)
    }
}

#[test]
fn runs_outlive_restarts_and_crashes_of_the_database() {
    let mut cluster = cluster("restarted");
    let mut random = Random::seeded("restarts");
    let config = with_short_deadlines(config(cluster.url()));
    let server = config.start();
    let agents = Agents::make(&config.client(), Pace::default());
    let watched = Watched::start(&config, server);
    let mut followers = Vec::new();
    let faults = setting("CRASH_RESTARTS", 4);
    for number in 0..faults {
        start_runs(&config, &agents, &mut followers, &mut random);
        random.let_pass(0, 900);
        if number % 2 == 1 {
            send(cluster.pid().unwrap(), Signal::KILL);
            random.let_pass(0, 500);
        }
        cluster.restart().unwrap();
    }
    let restored_at = Instant::now();
    let runs = finish(followers);
    let recovery = restored_at.elapsed();
    let (_server, asked) = watched.stop();
    let figures = check(&config, &agents, &runs, Strict::Crashes);
    assert!(recovery < LONGEST_RECOVERY, "{}", slowest(&config, &runs));
    report(
        "restarts",
        &format!(
            "restarts={faults} runs={} completed={} failed={} lostAttempts={} allOverAfterMs={} {asked}",
            runs.len(),
            figures.completed,
            figures.failed,
            figures.lost_attempts,
            recovery.as_millis(),
        ),
    );
}

#[test]
fn what_a_tool_answered_while_the_database_was_away_is_kept() {
    let mut cluster = cluster("away");
    // The lease outlives the outage, so nobody else may take the run up meanwhile.
    let config = with_short_deadlines(config(cluster.url())).with("SVC_RUN_LEASE_MS", 20_000);
    let _server = config.start();
    let client = config.client();
    let pace = Pace {
        tool: Duration::from_millis(700),
        ..Pace::default()
    };
    let agents = Agents::make(&client, pace);
    let run_id = agents.start_turn(&client, agents.unrepeatable);
    let follower = Follower::of(client, agents.unrepeatable, run_id);
    agents.tool.wait_for(run_id);
    send(cluster.pid().unwrap(), Signal::KILL);
    eventually("the end of the database", || {
        (!cluster.is_running()).then_some(())
    });
    agents.tool.wait_for_answer(run_id);
    // What was asked for after that meets no database, as the run's own write does.
    let asked = config.client().get("/v1/runs?limit=1").unwrap();
    assert!([503, 504].contains(&asked.status), "{}", asked.body);
    cluster.restart().unwrap();
    let seen = follower.finish();
    let figures = check(
        &config,
        &agents,
        &[(agents.unrepeatable, seen)],
        Strict::Completed,
    );
    assert_eq!(figures.lost_attempts, 0);
}

#[test]
fn a_server_ends_in_time_while_its_database_does_not_answer() {
    let cluster = cluster("silent");
    let shutdown = Duration::from_secs(1);
    let config = with_short_deadlines(config(cluster.url()))
        .with("SVC_SHUTDOWN_TIMEOUT_MS", shutdown.as_millis());
    let server = config.start();
    let client = config.client();
    let pace = Pace {
        tool: Duration::from_millis(300),
        ..Pace::default()
    };
    let agents = Agents::make(&client, pace);
    let run_id = agents.start_turn(&client, agents.repeatable);
    let follower = Follower::of(client.clone(), agents.repeatable, run_id);
    agents.tool.wait_for(run_id);
    let stopped = stop_answering(&cluster);
    // Requests hang in it, and the run's own writes.
    let requests = Probe::start(client, REQUESTS);
    agents.tool.wait_for_answer(run_id);
    requests.wait_for(1);
    let (status, took) = server.terminate();
    requests.stop();
    answer_again(&stopped);
    // It has ended before the database answered again.
    assert_eq!(
        status.code(),
        Some(1),
        "it says that it left something behind"
    );
    let _server = config.start();
    let seen = follower.finish();
    check(
        &config,
        &agents,
        &[(agents.repeatable, seen)],
        Strict::Completed,
    );
    report(
        "stop without database",
        &format!("tookMs={}", took.as_millis()),
    );
}

/// Stops the cluster's processes, and says which.
pub(crate) fn stop_answering(cluster: &Cluster) -> Vec<u32> {
    // The postmaster first: it starts no more.
    let postmaster = cluster.pid().unwrap();
    send(postmaster, Signal::STOP);
    eventually("the postmaster to stand still", || {
        let stat = std::fs::read_to_string(format!("/proc/{postmaster}/stat")).unwrap();
        stat.rsplit_once(") ")?.1.starts_with('T').then_some(())
    });
    let stopped = processes(cluster);
    for pid in &stopped {
        send(*pid, Signal::STOP);
    }
    stopped
}

pub(crate) fn answer_again(stopped: &[u32]) {
    for pid in stopped.iter().rev() {
        send(*pid, Signal::CONT);
    }
}

/// The postmaster and everything that it started.
fn processes(cluster: &Cluster) -> Vec<u32> {
    let postmaster = cluster.pid().unwrap();
    let mut all = vec![postmaster];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // pid (name) state parent
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        if parent == Some(postmaster) {
            all.push(pid);
        }
    }
    all
}

#[test]
fn a_database_that_stops_answering_is_waited_for() {
    let cluster = cluster("stopped");
    let mut random = Random::seeded("stopped");
    let config = with_short_deadlines(config(cluster.url()));
    let server = config.start();
    let agents = Agents::make(&config.client(), Pace::default());
    let watched = Watched::start(&config, server);
    let mut followers = Vec::new();
    start_runs(&config, &agents, &mut followers, &mut random);
    random.let_pass(300, 800);
    let connections = connections(&followers);
    let stopped = stop_answering(&cluster);
    let crowd: Vec<Probe> = (0..CROWD)
        .map(|_| Probe::start(config.client(), REQUESTS))
        .collect();
    // Longer than any request may take: each of the crowd begins its fifth when four were given up.
    let stop_seconds = setting("CRASH_STOP_SECONDS", 0);
    until_due(Instant::now() + Duration::from_secs(stop_seconds));
    for one in &crowd {
        one.wait_for(5);
    }
    // A run that a busy machine began late is followed for the first time.
    let had = connections.iter().zip(self::connections(&followers));
    let reopened: usize = had
        .filter(|(before, _)| **before > 0)
        .map(|(before, now)| now - before)
        .sum();
    answer_again(&stopped);
    let restored_at = Instant::now();
    let client = config.client();
    eventually("a request to be served again", || {
        let answer = client.get("/v1/runs?limit=1");
        answer
            .is_ok_and(|answer| answer.status == 200)
            .then_some(())
    });
    let served_again = restored_at.elapsed();
    let crowd: Vec<Asked> = crowd.into_iter().flat_map(Probe::stop).collect();
    let crowd_refused = all_within(&crowd, &[200, 503, 504], DEADLINE + GRACE);
    assert!(crowd_refused >= CROWD, "requests were refused meanwhile");
    start_runs(&config, &agents, &mut followers, &mut random);
    let runs = finish(followers);
    let recovery = restored_at.elapsed();
    let (_server, asked) = watched.stop();
    let figures = check(&config, &agents, &runs, Strict::Crashes);
    assert_eq!(reopened, 0, "streams stay open while the database is away");
    report(
        "stopped",
        &format!(
            "seconds={stop_seconds} runs={} completed={} failed={} lostAttempts={} crowd={} crowdRefused={crowd_refused} servedAgainMs={} allOverAfterMs={} {asked}",
            runs.len(),
            figures.completed,
            figures.failed,
            figures.lost_attempts,
            crowd.len(),
            served_again.as_millis(),
            recovery.as_millis(),
        ),
    );
}

/// How many connections each has opened.
fn connections(followers: &[Follower]) -> Vec<usize> {
    let each = followers
        .iter()
        .map(|follower| follower.look(|seen| seen.connections));
    each.collect()
}
