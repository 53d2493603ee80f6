//! The report: for people, and as JSON for programs.

use super::code;
use super::finding::{Finding, Level};
use crate::cli::terminal::{self, Style, printable};
use crate::cli::{Failure, Outcome, World};
use serde_json::json;

/// Columns of the level and of the code.
const LEVEL_WIDTH: usize = 7;
const CODE_WIDTH: usize = 19;

/// Prints the report.
///
/// # Errors
/// There is a fault.
pub(super) fn say(world: &World, found: &[Finding], as_json: bool) -> Outcome {
    let count = |level| found.iter().filter(|f| f.level == level).count();
    let faults = count(Level::Fault);
    let warnings = count(Level::Warning);
    if as_json {
        terminal::say_json(&json!({
            "ok": faults == 0, "faults": faults, "warnings": warnings, "checks": found,
            "version": env!("CARGO_PKG_VERSION"),
        }))?;
    } else {
        let style = Style::of_stdout(&world.vars);
        for finding in found {
            terminal::say(line(style, finding))?;
        }
        terminal::say(style.bold(&format!(
            "{}, {}, {} ok, {} skipped.",
            counted(faults, "fault"),
            counted(warnings, "warning"),
            count(Level::Ok),
            count(Level::Skipped)
        )))?;
    }
    match faults {
        0 => Ok(()),
        _ => Err(Failure::said()),
    }
}

/// Prints what there is to know of each check.
///
/// # Errors
/// Nothing can be written.
pub(super) fn list(world: &World) -> Outcome {
    let style = Style::of_stdout(&world.vars);
    for about in code::ALL {
        terminal::say(format_args!(
            "{}\n  {}\n  {}\n  → {}",
            style.bold(about.code.name()),
            about.looks_at,
            about.means,
            about.to_do
        ))?;
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn line(style: Style, finding: &Finding) -> String {
    let padded = |text: &str| format!("{text:LEVEL_WIDTH$}");
    let level = match finding.level {
        Level::Ok => style.green(&padded("ok")),
        Level::Skipped => style.dim(&padded("skipped")),
        Level::Warning => style.yellow(&padded("warning")),
        Level::Fault => style.red(&padded("fault")),
    };
    let code = finding.code.name();
    let mut text = format!(
        "{level}  {code:CODE_WIDTH$}  {}",
        printable(&finding.sentence)
    );
    if let Some(remedy) = &finding.remedy {
        let indent = " ".repeat(LEVEL_WIDTH + 2 + CODE_WIDTH + 2);
        text = format!(
            "{text}\n{indent}{}",
            style.dim(&format!("→ {}", printable(remedy)))
        );
    }
    text
}
