//! Benchmarks: each row is a figure measured beside its baseline in the same run, with a target. Run by `make bench`,
//! alone on a machine; never by the tests.
//!
//! Rounds are interleaved (the baseline goes first in every other one), so that what else the machine does falls on both.
//! Ratios travel to other machines; the absolute figures do not.
//!
//! The whole suite writes `docs/benchmarks.md` with a plot and a JSON file a row; `--short` measures each row in its short
//! form and writes nothing.

#![allow(clippy::print_stdout, reason = "a benchmark's figures are its output")]

mod audit_pages;
mod audit_rows;
mod authorized_read;
mod client;
mod clients;
mod constant;
mod decisions;
mod deliveries;
mod deployment;
mod first_text;
mod first_text_peer;
mod fleet;
mod flows;
mod guardrails;
mod held;
mod held_runs;
mod hooks;
mod hostile;
mod isolation;
mod langgraph;
mod load;
mod loopback;
mod machine;
mod openfga;
mod peer;
mod plan;
mod plot;
mod project_pages;
mod queue;
mod read_run;
mod reader;
mod readers;
mod receipts;
mod replicas;
mod report;
mod rounds;
mod row;
mod slow_provider;
mod start;
mod streams;
mod turns;
mod world;
mod wrk;

use plan::Plan;
use row::Row;
use std::process::ExitCode;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Takes each row as soon as it is measured: what fails after it does not lose it.
type Done<'a> = &'a mut dyn FnMut(Row) -> Outcome;

/// Measures the rows of one kind of work.
type Bench = fn(Plan, Done<'_>) -> Outcome;

const BENCHES: &[(&str, Bench)] = &[
    ("constant", constant::run),
    ("read-run", read_run::run),
    ("clients", clients::run),
    ("first-text", first_text::run),
    ("first-text-langgraph", first_text_peer::run),
    ("turns", turns::run),
    ("flows", flows::run),
    ("guardrails", guardrails::run),
    ("approvals", flows::approvals::run),
    ("approval-lists", flows::approval_lists::run),
    ("waiting-flows", flows::waiting::run),
    ("flow-definitions", flows::definitions::run),
    ("hostile-expressions", hostile::run),
    ("jobs", queue::run),
    ("streams", streams::run),
    ("held-runs", held_runs::run),
    ("authorized-read", authorized_read::run),
    ("decisions", decisions::run),
    ("project-pages", project_pages::run),
    ("audit-pages", audit_pages::run),
    ("webhooks", deliveries::run),
    ("webhooks-isolation", isolation::run),
    ("replicas", replicas::run),
    ("start", start::run),
];

/// What the command line asks for: the form of the suite, and the benchmarks to run, all if none.
fn arguments() -> Result<(Plan, Vec<String>), String> {
    // Cargo passes `--bench` of its own.
    let given = std::env::args().skip(1).filter(|given| given != "--bench");
    let (options, wanted): (Vec<String>, Vec<String>) =
        given.partition(|given| given.starts_with('-'));
    if let Some(unknown) = options.iter().find(|option| *option != "--short") {
        return Err(format!("There is no {unknown}. There is: --short."));
    }
    let known: Vec<&str> = BENCHES.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        return Err(format!(
            "No benchmark is called {unknown}. There are: {known}."
        ));
    }
    let plan = Plan {
        short: !options.is_empty(),
    };
    Ok((plan, wanted))
}

fn main() -> ExitCode {
    if let Some(evaluated) = hostile::evaluated() {
        return match evaluated {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                println!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let (plan, wanted) = match arguments() {
        Ok(given) => given,
        Err(fault) => {
            println!("{fault}");
            return ExitCode::from(2);
        }
    };
    let chosen = BENCHES
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
    let (mut met, mut measured, mut failed) = (0, 0, false);
    let mut done = |row: Row| {
        println!("{}", row.line());
        measured += 1;
        met += usize::from(row.is_met());
        if plan.short {
            Ok(())
        } else {
            report::keep(&row)
        }
    };
    for (name, bench) in chosen {
        println!("{name}");
        if let Err(error) = bench(plan, &mut done) {
            println!("{name}: could not be measured: {error}");
            failed = true;
        }
    }
    if !plan.short
        && let Err(error) = report::write()
    {
        println!("The page of figures could not be written: {error}");
        failed = true;
    }
    println!("{met} of {measured} targets met");
    // A target that is missed is a figure like any other; what was not measured is a fault.
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
