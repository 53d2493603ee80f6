//! Random worlds of tenants, orgs, teams, projects and roles, changed by random calls through two
//! replicas. After every few of them a plain role function (`differential/model.rs`), OpenFGA's check
//! and the API's answers and lists say the same of every person and object; the API also of a member key
//! of each person's, by which nobody acts as a tenant admin.
//!
//! AGENT_RUNTIME_TEST_SEED repeats the world of a failure; AGENT_RUNTIME_TEST_WORLDS asks for more
//! than two worlds.

mod driver;
mod model;
mod oracles;

use driver::Driver;

/// Looks at a world.
const LOOKS: usize = 8;
/// Calls between two looks.
const CALLS: usize = 8;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn fresh_seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes) >> 16
}

#[test]
fn the_role_function_openfga_and_the_api_agree() {
    let repeated = number("AGENT_RUNTIME_TEST_SEED");
    let worlds = match repeated {
        Some(_) => 1,
        None => number("AGENT_RUNTIME_TEST_WORLDS").unwrap_or(2),
    };
    for _ in 0..worlds {
        let seed = repeated.unwrap_or_else(fresh_seed);
        let mut driver = Driver::start(seed);
        let furnished = driver.story.len();
        for look in 0..LOOKS {
            for _ in 0..CALLS {
                driver.step();
            }
            let faults = oracles::compare(&driver);
            assert!(
                faults.is_empty(),
                "AGENT_RUNTIME_TEST_SEED={seed}, look {look}: the oracles do not agree.\n{}\nThe calls so far:\n{}",
                faults.join("\n"),
                driver.story.join("\n")
            );
        }
        // It was no world in which nothing happens, or in which everybody may.
        let ended = |status: &str| {
            let calls = driver.story[furnished..].iter();
            calls.filter(|call| call.ends_with(status)).count()
        };
        let done = ended("200") + ended("201") + ended("204");
        assert!(
            done >= 10 && ended("403") >= 3,
            "AGENT_RUNTIME_TEST_SEED={seed}: {done} calls were done:\n{}",
            driver.story.join("\n")
        );
    }
}
