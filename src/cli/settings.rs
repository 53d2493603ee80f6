//! `check-config` prints what the server would read. `settings` documents every setting.

use super::{Failure, Outcome, World, terminal};
use crate::config::{self, Fault, Origin, Report, Vars, render};
use crate::ids::Clock;
use crate::log;
use crate::outbound::{self, OperatorEndpoint};
use clap::{Args, ValueEnum};

const CHECK_EXAMPLES: &str = "\
Examples:
  agent-runtime check-config
  systemd-run --pipe --wait --collect -p User=agent-runtime \\
    -p EnvironmentFile=/etc/agent-runtime/agent-runtime.env \\
    -p LoadCredential=credentials:/etc/agent-runtime/credentials agent-runtime check-config
  agent-runtime check-config --json | jq '.faults[].setting'

Exits 1 if the server would not start. No secret is shown.";

const EXAMPLES: &str = "\
Examples:
  agent-runtime settings
  agent-runtime settings --format environment > agent-runtime.env
  agent-runtime settings --format manual | man -l -";

/// Arguments of `check-config`.
#[derive(Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArguments {
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `settings`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Help)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// A line or two a setting
    Help,
    /// A sample environment file
    Environment,
    /// The manual page, in roff
    Manual,
    /// The whole table, in Markdown
    Markdown,
}

/// The report on the settings, with what later parts of the program say of them. A subsystem that
/// nobody logs under is a warning (specification section 1.5).
pub(super) fn report(vars: &Vars, clock: &Clock) -> Report {
    const LEVELS: &str = "SVC_LOG_LEVELS";
    const ORIGINS: &str = "SVC_HOST_ACCESS_ORIGINS";
    let mut report = config::check(vars, clock);
    let value = |name| {
        let row = report.settings.iter().find(|row| row.name == name)?;
        row.value.as_deref()
    };
    let parsed = log::Options::parse(log::Given {
        levels: value(LEVELS),
        ..log::Given::default()
    });
    // A list that is wrong is a fault of the settings already.
    let (_, problems) = parsed.unwrap_or_default();
    let origins = value(ORIGINS).unwrap_or_default().split(',');
    let origins: Vec<Origin> = origins.filter_map(|o| Origin::parse(o.trim())).collect();
    // As of the server, which refuses to start.
    let collector = value("SVC_OTLP_ENDPOINT");
    let collector = collector.filter(|_| value("SVC_OTLP_HEADERS").is_none());
    let endpoints = OperatorEndpoint::all(value("SVC_AUTHZ_API_URL"), collector);
    if let Err(problem) = outbound::check_host_access_origins(&origins, &endpoints) {
        report.ok = false;
        report.faults.push(Fault {
            setting: ORIGINS.to_owned(),
            problem,
            remedy: "Remove it".to_owned(),
        });
    }
    let warnings = problems.iter();
    let warnings = warnings.map(|problem| format!("{LEVELS}: {problem}."));
    report.warnings.extend(warnings);
    report
}

/// Prints every setting with its value, and what is wrong.
///
/// # Errors
/// The server would not start.
pub fn check(world: &World, arguments: &CheckArguments) -> Outcome {
    let report = report(&world.vars, &world.clock);
    if arguments.json {
        terminal::say_json(&report)?;
    } else {
        terminal::write(report.text())?;
    }
    if report.ok {
        Ok(())
    } else {
        Err(Failure::said())
    }
}

/// Prints a document of the settings table.
///
/// # Errors
/// Nothing can be written.
pub fn print(arguments: &Arguments) -> Outcome {
    terminal::write(match arguments.format {
        Format::Help => render::help(),
        Format::Environment => render::environment_file(),
        Format::Manual => render::manual_page(),
        Format::Markdown => render::markdown(),
    })
}
