//! Guardrails: what the built-in checks take beside one pass of the same patterns, and turns with three checks beside turns
//! without.

use super::plan::Plan;
use super::rounds::{Figure, compare};
use super::row::{About, Target};
use super::turns::service::{Clients, Service};
use super::turns::side::figure;
use super::turns::tool::Tool;
use super::turns::{CLIENTS_AT_ONCE, Calls};
use super::{Done, Outcome};
use agent_runtime::dev::provider::{Provider, Script};
use agent_runtime::guardrails::{
    Cache, CheckOrigin, Guards, Point, Policy, Streaming, Subject, expressions,
};
use regex::RegexSet;
use serde_json::{Value, json};
use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

const fn about(name: &'static str, work: &'static str) -> About {
    About {
        name,
        work,
        beside: "one pass of all their regular expressions as a set, which says only whether any matches",
        unit: "us",
        target: Target::AtMost(10.0),
        says_not: "The text is clean. Where something is found it is located, and its digits are checked.",
    }
}

const SHORT: About = about(
    "guardrails-4k",
    "pii, secrets, links and hidden-text over a clean text of 4 KiB, with the digest of the record",
);
const LONG: About = about(
    "guardrails-1m",
    "pii, secrets, links and hidden-text over a clean text of 1 MiB, with the digest of the record",
);

const TURNS: About = About {
    name: "guarded-turns",
    work: "agent turns of three journaled steps with a check at the input, one at the tool's result and one at the output, 16 at once",
    beside: "the same turns of an agent without guardrails",
    unit: "turns/s",
    target: Target::AtLeast(0.91),
    says_not: "Short texts. The model's text is held back until its verdict, which a model of this process makes short.",
};

/// Prose without anything to find.
fn clean(bytes: usize) -> String {
    let prose = "The order was sent on the second day, in 3 parcels (12 kg each); version 2.10.4 of the list says so. ";
    prose.repeat(bytes / prose.len() + 1)[..bytes].to_owned()
}

fn check(builtin: &str, at: &str, action: &str) -> Value {
    json!({"builtin": builtin, "at": [at], "action": action})
}

/// Microseconds of one pass, over as many as fill a tenth of a second.
fn timed(mut pass: impl FnMut()) -> f64 {
    let (began, mut passes) = (Instant::now(), 0_u32);
    while began.elapsed() < Duration::from_millis(100) {
        pass();
        passes += 1;
    }
    began.elapsed().as_secs_f64() * 1e6 / f64::from(passes)
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let all = json!([
        check("pii", "output", "block"),
        check("secrets", "output", "block"),
        check("links", "output", "block"),
        check("hidden-text", "output", "block"),
    ]);
    let policy = Policy {
        origin: CheckOrigin::Agent,
        version: None,
        guardrails: &all,
        streaming: Streaming::Held,
    };
    let guards = Guards::new(&Cache::default(), &[policy]);
    let set = RegexSet::new(expressions())?;
    for (about, bytes) in [(&SHORT, 4 << 10), (&LONG, 1 << 20)] {
        let text = clean(bytes);
        let subject = Subject {
            point: Point::Output,
            text: &text,
            tool: None,
        };
        if guards.judge(&subject).blocked.is_some() || set.is_match(&text) {
            return Err("the text is not clean".into());
        }
        done(compare(
            plan,
            about,
            || Figure::of(|| Ok(timed(|| drop(black_box(guards.judge(&subject)))))),
            || {
                Figure::of(|| {
                    Ok(timed(|| {
                        black_box(set.is_match(&text));
                    }))
                })
            },
        )?)?;
    }
    turns(plan, done)
}

fn turns(plan: Plan, done: Done<'_>) -> Outcome {
    let provider = Provider::start(Script::default())?;
    let tool = Tool::start()?;
    let calls = Calls {
        provider: &provider,
        tool: &tool,
    };
    let service = Service::start(&provider, &tool)?;
    let guarded: Clients<'_> = service.guarded(&json!([
        check("secrets", "input", "block"),
        check("hidden-text", "tool.result", "block"),
        check("pii", "output", "redact"),
    ]))?;
    let plain = service.turns();
    let turns = plan.pick(20, 100) * CLIENTS_AT_ONCE;
    let (mine, theirs) = (Cell::new(0.0), Cell::new(0.0));
    done(compare(
        plan,
        &TURNS,
        || figure(&guarded, &calls, turns, &mine),
        || figure(&plain, &calls, turns, &theirs),
    )?)
}
