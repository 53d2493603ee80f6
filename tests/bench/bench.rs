//! Benchmarks: each prints a ratio measured beside its baseline in the same run, last, and fails if
//! the median misses its target. Run by `make bench`, alone on a machine; never by the tests.
//!
//! Rounds are interleaved (the baseline goes first in every other one), so that what else the
//! machine does falls on both. Ratios travel to other machines; the absolute figures do not.
//!
//! Not here: the queue's throughput (`jobs/examples/throughput.rs`).

#![allow(clippy::print_stdout, reason = "a benchmark's figures are its output")]

mod authorized_read;
mod bare;
mod client;
mod constant;
mod decisions;
mod first_text;
mod machine;
mod openfga;
mod read_run;
mod reader;
mod rounds;
mod webhooks;
mod world;
mod wrk;

use std::process::ExitCode;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A benchmark: says whether its target was met.
type Bench = fn() -> Outcome<bool>;

const BENCHES: [(&str, Bench); 6] = [
    ("constant", constant::run),
    ("read-run", read_run::run),
    ("first-text", first_text::run),
    ("authorized-read", authorized_read::run),
    ("decisions", decisions::run),
    ("webhooks", webhooks::run),
];

fn main() -> ExitCode {
    // Cargo passes `--bench` of its own; what else is given names the benchmarks to run.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let known = BENCHES.map(|(name, _)| name);
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
        println!(
            "No benchmark is called {unknown}. There are: {}.",
            known.join(", ")
        );
        return ExitCode::from(2);
    }
    let chosen = BENCHES
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
    let mut met = true;
    for (name, bench) in chosen {
        match bench() {
            Ok(this) => met &= this,
            Err(error) => {
                println!("{name}: could not be measured: {error}");
                met = false;
            }
        }
    }
    if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
