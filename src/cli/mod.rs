//! The commands of the binary, one file each: arguments, work and output.
//!
//! Guarantees:
//!
//! - Exit code 0: the command did what it was asked to. 1: it failed. 2: the command line is wrong,
//!   or a comparison found a difference. 78, for `serve` only: a restart would not help.
//!
//! - Results go to stdout, everything else to stderr. `--json` prints JSON only. Colours appear
//!   only on a terminal, and not if `NO_COLOR` is set.
//!
//! - No secret is taken from a command line. None is shown, except by a command whose purpose is to
//!   show it once.
//!
//! Not here: what the commands do. They start the server (`server`), read settings (`config`), or
//! call the API as any client does.

mod account;
mod agent_push;
pub mod agents;
mod approval_form;
pub mod approvals;
pub mod audit;
pub mod authz;
pub mod backup;
mod client;
pub mod completions;
pub mod conversations;
mod database;
mod deployment;
pub mod dev;
mod display;
pub mod doctor;
pub mod environments;
mod failure;
pub mod flow;
pub mod flows;
pub mod follow;
pub mod guardrails;
mod hidden_line;
mod hold;
mod input;
mod journal;
mod kept_keys;
pub mod license;
pub mod login;
pub mod manual;
pub mod migrate;
pub mod model_providers;
mod names;
mod notify;
pub mod openapi;
pub mod policies;
mod private_file;
mod pushed;
pub mod restore;
pub mod run;
pub mod runs;
mod secret_uses;
pub mod secrets;
pub mod serve;
pub mod settings;
pub mod setup;
pub mod sign_in_code;
mod signals;
mod table;
pub mod tenant;
mod terminal;
mod tool_push;
pub mod tools;
pub mod usage;
pub mod webhooks;

use crate::config::{self, Settings, Vars};
use crate::ids::Clock;
use failure::reason;
pub use failure::{Failure, Outcome};
use std::process::ExitCode;

/// What a command gets from its surroundings.
#[derive(Clone)]
pub struct World {
    vars: Vars,
    clock: Clock,
}

impl World {
    /// This process's surroundings.
    pub fn here() -> Self {
        Self {
            vars: Vars::from_environment(),
            clock: Clock::system(),
        }
    }

    /// The settings, or every fault of them.
    fn settings(&self) -> Outcome<Settings> {
        load(&self.vars, &self.clock)
    }
}

impl World {
    /// The settings for commands on the databases, with the other faults.
    fn settings_for_upkeep(&self) -> Outcome<(Settings, Vec<config::Fault>)> {
        config::load_for_upkeep(&self.vars, &self.clock).map_err(|faults| wrong(&faults))
    }
}

fn load(vars: &Vars, clock: &Clock) -> Outcome<Settings> {
    config::load(vars, clock).map_err(|faults| wrong(&faults))
}

fn wrong(faults: &[config::Fault]) -> Failure {
    let mut lines = vec!["The settings are wrong:".to_owned()];
    lines.extend(faults.iter().map(|fault| format!("  {fault}")));
    lines.push("See: agent-runtime check-config, agent-runtime settings".to_owned());
    Failure::new(lines.join("\n"))
}

/// The exit code of an outcome. Prints its failure on stderr.
pub fn exit(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = ExitCode::from(failure.code);
            if !failure.message.is_empty() {
                terminal::note(failure.text());
            }
            code
        }
    }
}
