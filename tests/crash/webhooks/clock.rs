//! The wall clock of the server set forward and back under it. Its database, the receivers and this
//! process keep theirs.

use super::check::{check, come_to_rest};
use super::figures_of;
use super::scene::{Haste, Keys, Scene};
use crate::clock::{DAY, HOUR, Leap};
use crate::random::Random;
use crate::report;
use crate::world::{place, shared_database};
use std::time::Duration;

/// Within what the tables have partitions for: from the month before to two months ahead. Beyond it
/// they are made within a second, in which events and their runs wait.
const LEAPS: [i64; 5] = [3 * HOUR, -3 * HOUR, 40 * DAY, -20 * DAY, 0];
const EVENTS: usize = 60;
const RUNS: usize = 4;
const OVER: Duration = Duration::from_millis(800);

#[test]
fn webhooks_outlive_leaps_of_the_clock() {
    let mut random = Random::seeded("webhooks-clock");
    let keys = Keys::new();
    let (leap, place) = Leap::govern(keys.set(place(shared_database())));
    let server = place.start();
    let scene = Scene::make(&place, &keys, &mut random);
    let haste = Haste::begin(&place.database_url);
    let mut emitted = Vec::new();
    for seconds in LEAPS {
        leap.set(seconds);
        // Every signature is of that time.
        scene.receivers.expect_ahead(&[seconds]);
        emitted.extend(scene.emit(EVENTS, OVER).join().unwrap());
        emitted.extend(scene.run(RUNS, OVER).join().unwrap());
        come_to_rest(&scene);
    }
    // And while deliveries are under way.
    scene.receivers.expect_ahead(&LEAPS);
    let emitter = scene.emit(5 * EVENTS, 3 * OVER);
    let runs = scene.run(RUNS, 3 * OVER);
    for seconds in LEAPS {
        std::thread::sleep(OVER / 2);
        leap.set(seconds);
    }
    emitted.extend(emitter.join().unwrap());
    emitted.extend(runs.join().unwrap());
    come_to_rest(&scene);
    let figures = check(&scene, &emitted);
    drop(haste);
    server.kill();
    report(
        "webhooks clock",
        &format!("leaps={} {}", 2 * LEAPS.len(), figures_of(&figures)),
    );
}
