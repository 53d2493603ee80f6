//! The wall clock of the server set forward and back under it. Its database, the receivers and this
//! process keep theirs.

use super::check::{check, come_to_rest};
use super::figures_of;
use super::scene::{Haste, Keys, Scene};
use crate::random::Random;
use crate::report;
use crate::server::Place;
use crate::world::{place, shared_database};
use std::path::{Path, PathBuf};
use std::time::Duration;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// Within what the tables have partitions for: from the month before to two months ahead.
const LEAPS: [i64; 5] = [3 * HOUR, -3 * HOUR, 40 * DAY, -20 * DAY, 0];
const EVENTS: usize = 60;
const RUNS: usize = 4;
const OVER: Duration = Duration::from_millis(800);

/// The library that stands between a program and its wall clock.
fn library() -> PathBuf {
    let places = ["/usr/lib", "/usr/lib64"];
    let inside = places.iter().flat_map(|place| {
        let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    });
    let mut found = inside
        .map(|path| match path.ends_with("faketime") {
            true => path,
            false => path.join("faketime"),
        })
        .map(|path| path.join("libfaketimeMT.so.1"))
        .filter(|path| path.exists());
    found
        .next()
        .expect("libfaketime; tests/setup/faketime installs it")
}

/// A file that says how far the server's wall clock is ahead.
struct Leap(PathBuf);

impl Leap {
    fn set(&self, seconds: i64) {
        // The server reads it all the time, and never half of it.
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(&new, &self.0).unwrap();
    }

    /// The place whose servers go by it; time that passes stays as it is.
    fn govern(place: Place) -> (Self, Place) {
        let leap = Self(place.log.with_extension("clock"));
        leap.set(0);
        let file = |path: &Path| path.display().to_string();
        let place = place
            .with("LD_PRELOAD", file(&library()))
            .with("FAKETIME_TIMESTAMP_FILE", file(&leap.0))
            .with("FAKETIME_NO_CACHE", 1)
            .with("FAKETIME_DONT_FAKE_MONOTONIC", 1)
            .with("NO_FAKE_STAT", 1);
        (leap, place)
    }
}

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
