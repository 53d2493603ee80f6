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
pub mod flow;
pub mod flows;
pub mod follow;
mod hidden_line;
mod hold;
mod input;
mod kept_keys;
pub mod license;
pub mod login;
pub mod manual;
pub mod migrate;
pub mod model_providers;
mod names;
mod notify;
pub mod openapi;
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
use std::process::ExitCode;

/// What a command gets from its surroundings.
#[derive(Clone)]
pub struct World {
    vars: Vars,
    clock: Clock,
}

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    /// The message for stderr; empty if it was printed already.
    message: String,
    /// Print the message for the journal, each line as an error.
    journal: bool,
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

impl Failure {
    /// The command failed: exit code 1.
    fn new(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
            journal: false,
        }
    }

    /// The settings or the database refuse, and a restart would not help: exit code 78 (`EX_CONFIG`
    /// of sysexits.h). A service manager can so distinguish it from a failure that may pass.
    fn for_good(self) -> Self {
        Self { code: 78, ..self }
    }

    /// The command line is wrong: exit code 2.
    fn usage(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            message: message.into(),
            journal: false,
        }
    }

    /// The command did its work and found something that should not be: exit code 2.
    fn found() -> Self {
        Self {
            code: 2,
            message: String::new(),
            journal: false,
        }
    }

    /// The same with the name of another setting.
    fn about(mut self, named: &str, meant: &str) -> Self {
        self.message = self.message.replace(named, meant);
        self
    }

    /// The same in the journal's format, if stderr goes there.
    fn heard_by(mut self, vars: &Vars) -> Self {
        self.journal = terminal::is_journal(vars);
        self
    }

    fn text(self) -> String {
        let text = format!("agent-runtime: {}", self.message);
        if !self.journal {
            return text;
        }
        let lines: Vec<_> = text.lines().map(|line| format!("<3>{line}")).collect();
        lines.join("\n")
    }

    /// The same with a further sentence.
    fn with(mut self, sentence: &str) -> Self {
        self.message = format!("{}\n{sentence}", self.message);
        self
    }

    /// The command failed and has printed why: exit code 1.
    fn said() -> Self {
        Self::new("")
    }
}

impl From<crate::error::Error> for Failure {
    /// The whole error: whoever runs a command is the operator.
    fn from(error: crate::error::Error) -> Self {
        let mut text = error.message().to_owned();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            text = format!("{text}\n  because: {inner}");
            cause = inner.source();
        }
        Self::new(text)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(format!("{error}."))
    }
}

/// An error in one sentence for an operator: what failed, and its innermost cause.
fn reason(error: &crate::error::Error) -> String {
    let mut cause = std::error::Error::source(error);
    let mut innermost = None;
    while let Some(inner) = cause {
        innermost = Some(inner.to_string());
        cause = inner.source();
    }
    match innermost {
        Some(text) if !error.message().contains(&text) => format!("{} ({text})", error.message()),
        _ => error.message().to_owned(),
    }
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
