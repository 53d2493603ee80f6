//! Faults while events go to twenty endpoints: the server killed at random moments, its database
//! restarted and stopped at once, its clock set forward and back.

mod check;
mod clock;
mod receivers;
mod scene;

use crate::database::send;
use crate::kills::{live, one_kill};
use crate::random::Random;
use crate::world::{cluster, config, shared_database};
use crate::{middle_and_most, report, setting};
use check::{Figures, check, come_to_rest};
use rustix::process::Signal;
use scene::{Emitted, Haste, Keys, Scene};
use std::time::{Duration, Instant};

/// Kills before everything is let come to rest and checked.
const KILLS_A_ROUND: u64 = 10;
/// Over which the events of a round are emitted: about as long as the kills take.
const EMITTED_OVER: Duration = Duration::from_secs(14);
const RUNS: usize = 40;
/// Endpoints that are unregistered in the middle, each together with a kill.
const UNREGISTERED: [usize; 3] = [2, 7, 11];

fn figures_of(figures: &Figures) -> String {
    format!(
        "events={} deliveries={} failed={} attempts={} hidden={} receipts={} repeated={}",
        figures.events,
        figures.deliveries,
        figures.failed,
        figures.attempts,
        figures.hidden,
        figures.receipts,
        figures.repeated
    )
}

#[test]
fn webhooks_outlive_kills_at_random_moments() {
    let kills = setting("CRASH_WEBHOOK_KILLS", 10);
    let until = Instant::now() + Duration::from_secs(setting("CRASH_SECONDS", 3600));
    let mut random = Random::seeded("webhooks");
    let mut all = Figures::default();
    let (mut done, mut starts, mut rests) = (0, Vec::new(), Vec::new());
    while done < kills && Instant::now() < until {
        let round = KILLS_A_ROUND.min(kills - done);
        let (figures, rest) = killed(&mut random, round, &mut starts);
        done += round;
        all += figures;
        rests.push(rest);
        let (start, start_most) = middle_and_most(&mut starts);
        let (_, rest_most) = middle_and_most(&mut rests);
        report(
            "webhooks",
            &format!(
                "kills={done} {} startP50Ms={start} startMaxMs={start_most} atRestAfterMaxMs={rest_most}",
                figures_of(&all)
            ),
        );
    }
    assert!(all.hidden > 0, "no kill met an attempt in flight");
}

/// Kills and starts with events throughout; then lets all come to rest, and checks. Says how long
/// that took.
fn killed(random: &mut Random, kills: u64, starts: &mut Vec<Duration>) -> (Figures, Duration) {
    let keys = Keys::new();
    let config = keys.set(config(shared_database()));
    let mut server = config.start();
    let scene = Scene::make(&config, &keys, random);
    let haste = Haste::begin(&config.database_url);
    let events = usize::try_from(setting("CRASH_EVENTS", 5000)).unwrap();
    let emitter = scene.emit(events, EMITTED_OVER);
    let runs = scene.run(RUNS, EMITTED_OVER);
    let mut unregistering = Vec::new();
    let mut killed_at = Vec::new();
    let mut to_unregister = UNREGISTERED.iter();
    for number in 0..kills {
        if number % 3 == 2
            && let Some(endpoint) = to_unregister.next()
        {
            unregistering.push(scene.unregister(*endpoint));
        }
        live(random);
        server = one_kill(&config, random, server, &mut killed_at, starts);
    }
    let mut emitted: Vec<Emitted> = emitter.join().unwrap();
    emitted.extend(runs.join().unwrap());
    for thread in unregistering {
        thread.join().unwrap();
    }
    let began = Instant::now();
    come_to_rest(&scene);
    let rest = began.elapsed();
    let figures = check(&scene, &emitted);
    drop(haste);
    server.kill();
    (figures, rest)
}

#[test]
fn webhooks_outlive_restarts_and_crashes_of_the_database() {
    let mut cluster = cluster("webhooks");
    let mut random = Random::seeded("webhooks-database");
    let keys = Keys::new();
    let config = keys
        .set(config(cluster.url()))
        .with("SVC_DATABASE_CHECKOUT_TIMEOUT_MS", 500);
    let mut server = config.start();
    let scene = Scene::make(&config, &keys, &mut random);
    let haste = Haste::begin(&config.database_url);
    let faults = setting("CRASH_RESTARTS", 4);
    let over = Duration::from_secs(2 * faults);
    let emitter = scene.emit(1000, over);
    let runs = scene.run(10, over);
    for number in 0..faults {
        random.let_pass(0, 2000);
        if number % 2 == 1 {
            // As `pg_ctl stop -m immediate` does.
            send(cluster.pid().unwrap(), Signal::QUIT);
            random.let_pass(0, 500);
        }
        cluster.restart().unwrap();
    }
    let mut emitted = emitter.join().unwrap();
    emitted.extend(runs.join().unwrap());
    let began = Instant::now();
    come_to_rest(&scene);
    let rest = began.elapsed();
    assert!(server.runs(), "the server stayed up");
    let figures = check(&scene, &emitted);
    drop(haste);
    report(
        "webhooks restarts",
        &format!(
            "restarts={faults} {} atRestAfterMs={}",
            figures_of(&figures),
            rest.as_millis()
        ),
    );
}
