//! `flow validate`: checks the definition of a flow, without a server. `flow push`: gives it to one.
//!
//! Not here: whether the tools, agents and flows that it names are there, which a server knows.

mod examined;
mod json;
mod parts;
mod push;
mod source;
#[cfg(test)]
mod tests;
mod yaml;

use super::terminal::{self, Style};
use super::{Failure, Outcome, World};
use clap::{Args, Subcommand};
pub(super) use examined::format_of;
use examined::{Examined, described, show, shown};
use serde_json::json;
pub(super) use source::Source;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agent-runtime flow validate refund.yaml
  agent-runtime flow push refund.yaml --project billing";

const VALIDATE_EXAMPLES: &str = "\
Examples:
  agent-runtime flow validate refund.yaml
  agent-runtime flow validate - < refund.json
  agent-runtime flow validate refund.yaml --json | jq -r '.faults[] | \"\\(.line): \\(.message)\"'

Needs no server. Exit codes: 0 valid, 2 faults were found, 1 the file could not be read.";

/// The commands on definitions.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Command {
    /// Show every fault of a definition, with its line
    Validate(Validate),
    /// Make a definition a version of a flow of a running server
    Push(push::Push),
}

/// Arguments of `flow validate`.
#[derive(Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    /// The definition, in JSON or YAML; `-` is stdin
    file: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs one of the commands.
///
/// # Errors
/// The definition has faults, or cannot be read.
pub fn run(world: &World, command: &Command) -> Outcome {
    match command {
        Command::Validate(arguments) => validate(world, arguments),
        Command::Push(arguments) => push::run(world, arguments),
    }
}

fn validate(world: &World, arguments: &Validate) -> Outcome {
    let Examined {
        name,
        source,
        report,
    } = Examined::of(&arguments.file)?;
    match arguments.json {
        true => terminal::say_json(&described(&source, &report))?,
        false => show(&name, &source, &report, Style::of_stdout(&world.vars))?,
    }
    match report.definition {
        Some(_) => Ok(()),
        None => Err(Failure::found()),
    }
}
