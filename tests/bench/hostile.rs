//! Expressions of authors who mean harm: how long the slowest takes until its budget ends it, and how much memory the largest
//! takes.
//!
//! The programs are those of the tests of expressions, which say what each ends with. Each is evaluated in a process of its own,
//! this program started again, so that none finds memory that another has left.

use super::machine::peak_kib;
use super::plan::Plan;
use super::rounds::{Figure, alone};
use super::row::{About, Target};
use super::{Done, Outcome};
use ::expressions::{Budget, Error, Expression};
use serde_json::json;
use std::process::Command;
use std::time::Instant;

/// What each ends with, and the program.
const PROGRAMS: &str = include_str!("../../expressions/tests/it/hostile.txt");

/// What an expression of a flow may use.
const STEPS: u64 = 1_000_000;

/// The argument of a process that evaluates one program; its number follows.
const EVALUATES: &str = "evaluate-hostile";

const TIME: About = About {
    name: "hostile-expressions-time",
    work: "the slowest of the hostile expressions, until its budget ends it",
    beside: "none: it may hold a thread for so long",
    unit: "ms",
    target: Target::AtMost(100.0),
    says_not: "What nobody has thought of may be slower. A transition of a flow may evaluate five of them.",
};

const MEMORY: About = About {
    name: "hostile-expressions-memory",
    work: "the largest of the hostile expressions, until its budget ends it: resident memory beyond that before it",
    beside: "none: it may take so much",
    unit: "MiB",
    target: Target::AtMost(32.0),
    says_not: "What nobody has thought of may be larger. Each thread may evaluate one at a time.",
};

fn programs() -> impl Iterator<Item = &'static str> {
    let lines = PROGRAMS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ').map(|(_, program)| program))
}

/// Evaluates a program, where this process was started for that.
pub(crate) fn evaluated() -> Option<Outcome> {
    let mut given = std::env::args().skip(1);
    let is_asked = given.next().is_some_and(|first| first == EVALUATES);
    is_asked.then(|| evaluate(&given.next().unwrap_or_default()))
}

fn evaluate(number: &str) -> Outcome {
    let source = programs()
        .nth(number.parse()?)
        .ok_or("there is no such program")?;
    let expression = Expression::parse(source, &[]).map_err(|faults| format!("{faults:?}"))?;
    let id = std::process::id();
    let before = peak_kib(id)?;
    let began = Instant::now();
    let ended = expression.evaluate(&json!([1]), &[], &mut Budget::new(STEPS, STEPS));
    let took = began.elapsed();
    let kib = peak_kib(id)? - before;
    match ended {
        Err(Error::Steps(_) | Error::Weight | Error::Depth) => {
            println!("{} {kib}", took.as_secs_f64() * 1000.0);
            Ok(())
        }
        other => Err(format!("{source} was not ended by its budget: {other:?}").into()),
    }
}

/// The milliseconds and the MiB of one program.
fn cost(number: usize) -> Outcome<[f64; 2]> {
    let mut command = Command::new(std::env::current_exe()?);
    let ended = command.args([EVALUATES, &number.to_string()]).output()?;
    let said = String::from_utf8(ended.stdout)?;
    let figures = said
        .trim()
        .split_once(' ')
        .filter(|_| ended.status.success());
    let (ms, kib) = figures.ok_or_else(|| said.clone())?;
    Ok([ms.parse()?, kib.parse::<f64>()? / 1024.0])
}

/// The largest figure of all programs, with the program.
fn most(which: usize) -> Outcome<Figure> {
    let mut worst = (0.0, "");
    let mut figure = Figure::of(|| {
        for (number, program) in programs().enumerate() {
            let figure = cost(number)?[which];
            if figure > worst.0 {
                worst = (figure, program);
            }
        }
        Ok(worst.0)
    })?;
    figure.note = format!(" ({})", worst.1);
    Ok(figure)
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    done(alone(plan, &TIME, || most(0))?)?;
    done(alone(plan, &MEMORY, || most(1))?)
}
