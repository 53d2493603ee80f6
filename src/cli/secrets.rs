//! `secrets rewrap`: wraps the data keys of secrets by the key that stands now, after that was
//! rotated. It may run beside running servers, and again after any end.

use super::{Failure, Outcome, World, terminal};
use crate::error::{Code, Error};
use crate::secrets::{Rewrapped, Secrets};
use crate::server::options;
use crate::store::{Store, connect::Manager, migrations};
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::IsTerminal;
use uuid::Uuid;

const REWRAP_EXAMPLES: &str = "\
Examples:
  agent-runtime secrets rewrap --dry-run     say how many it would wrap, and which cannot be read
  agent-runtime secrets rewrap               wrap them
  agent-runtime secrets rewrap --json | jq '.unreadable[]'

For SVC_SECRETS_BACKEND=postgres, with the settings of the servers. Each data key that another key \
than the one of now has wrapped is unwrapped, tried on its value, wrapped anew and written; values \
stay as they are. Running servers need no stop, and what was stopped can be begun again. With \
--dry-run those of the key of now are unwrapped and tried, too, and nothing is written.

Exits 0 if all are wrapped by the key of now, 2 if some could not be read, 1 if it could not be done. \
With --dry-run: 0 if all can be read.";

/// The commands on secrets.
#[derive(Subcommand)]
#[command(after_help = REWRAP_EXAMPLES)]
pub enum Command {
    /// Wrap data keys by the key that stands now
    Rewrap(Rewrap),
}

/// Arguments of `secrets rewrap`.
#[derive(Args)]
#[command(after_help = REWRAP_EXAMPLES)]
pub struct Rewrap {
    /// Only read, and say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs one of the commands.
///
/// # Errors
/// The backend wraps no keys; the database or the key-management service gives no answer; some data
/// keys could not be read.
pub fn run(world: &World, command: &Command) -> Outcome {
    let Command::Rewrap(arguments) = command;
    let secrets = open(world)?;
    let shows_progress = std::io::stderr().is_terminal();
    let done = secrets.rewrap(arguments.dry_run, |so_far| {
        if shows_progress {
            terminal::progress(format_args!("{} versions", so_far.versions));
        }
    });
    if shows_progress {
        terminal::progress("");
    }
    let told = done?;
    if arguments.json {
        terminal::say_json(&json!({
            "versions": told.versions, "current": told.current, "rewrapped": told.rewrapped,
            "unreadable": told.unreadable, "dryRun": arguments.dry_run,
        }))?;
    } else {
        say(&told, arguments.dry_run)?;
    }
    match told.unreadable.is_empty() {
        true => Ok(()),
        false => Err(Failure::found()),
    }
}

fn say(told: &Rewrapped, dry_run: bool) -> Outcome {
    for sentence in &told.unreadable {
        terminal::say(format_args!("not readable: {sentence}"))?;
    }
    let done = if dry_run {
        "would be wrapped anew"
    } else {
        "wrapped anew"
    };
    terminal::say(format_args!(
        "{} versions: {} by the key of now already, {} {done}, {} could not be read.",
        told.versions,
        told.current,
        told.rewrapped,
        told.unreadable.len()
    ))
}

fn open(world: &World) -> Outcome<Secrets> {
    let settings = world.settings()?;
    let log = super::serve::open_log(&world.vars, &settings, &world.clock)?;
    // Nothing that is wrapped is of one tenant alone.
    let backend = options::secrets(&settings, Uuid::nil())?;
    if !matches!(backend, crate::secrets::Options::Postgres(_)) {
        return Err(Error::new(
            Code::NotConfigured,
            "No keys are wrapped here: that needs SVC_SECRETS_BACKEND=postgres.",
        )
        .into());
    }
    let database = options::store(&settings);
    let plan = migrations::plan(&mut Manager::new(&database)?.client()?)?;
    if !plan.refusals.is_empty() || !plan.pending.is_empty() {
        return Err(Failure::new(
            "The database's schema is not this version's. See: agent-runtime migrate --check",
        ));
    }
    let store = Store::open(&database, log.clone())?;
    let outbound = options::outbound(&settings)?;
    Ok(Secrets::new(backend, &store, &outbound, &world.clock, log)?)
}
