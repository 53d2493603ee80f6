//! No file descriptors left.

use crate::harness::{Client, House, PATIENCE, get, limits};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::process::Command;

const FEW: u64 = 64;

/// The limit is a process's, so the test runs itself again in one of its own.
#[test]
fn running_out_of_descriptors_ends_nothing() {
    if getrlimit(Resource::Nofile)
        .current
        .is_some_and(|most| most <= FEW)
    {
        return runs_out();
    }
    let binary = std::env::current_exe().unwrap();
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -n {FEW}; exec \"$0\" \"$@\""))
        .arg(binary)
        .args([
            "--exact",
            "descriptors::running_out_of_descriptors_ends_nothing",
        ])
        .status()
        .unwrap();
    assert!(status.success(), "see the output above");
}

fn runs_out() {
    let house = House::open(limits());
    let mut before = house.client();
    before.send(get("/fast"));
    assert_eq!(before.answer().body, "ok");
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    // One for a client; the door has none for it.
    taken.pop();
    let mut turned_away = Client::connect(house.door.local_addr());
    turned_away.is_closed();
    assert!(house.door.stats().accept_failures > 0);
    before.send(get("/fast"));
    assert_eq!(before.answer().body, "ok");
    taken.clear();
    house.serves_others();
    assert!(house.door.stop(PATIENCE));
}
