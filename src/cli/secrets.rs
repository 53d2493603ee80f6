//! `secrets`: the uses of secrets (`secret_uses`), and `rewrap`.
//!
//! `rewrap` wraps the data keys of secrets with the present key, after a rotation. It may run beside running servers, and may
//! be repeated after any end.

use super::{Failure, Outcome, World, database, secret_uses, terminal};
use crate::error::{Code, Error};
use crate::outbound::Outbound;
use crate::secrets::{self, Rewrapped, Secrets};
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::IsTerminal;
use uuid::Uuid;

const REWRAP_EXAMPLES: &str = "\
Examples:
  agent-runtime secrets rewrap --dry-run     print how many it would wrap, and which cannot be read
  agent-runtime secrets rewrap               wrap them
  agent-runtime secrets rewrap --json | jq '.unreadable[]'

For SVC_SECRETS_BACKEND=postgres, with the settings of the servers. Each data key that is not \
wrapped with the present key is unwrapped, tried on its value, wrapped and written; values stay as \
they are. Servers may keep running, and an interrupted command may be repeated. With --dry-run \
every data key is unwrapped and tried, and nothing is written.

Exits 0 if all are wrapped with the present key, 2 if some could not be read, 1 if it failed. With \
--dry-run: 0 if all can be read.";

const EXAMPLES: &str = "\
Examples:
  agent-runtime secrets uses
  agent-runtime secrets uses add WEATHER_KEY https://api.example.com --project support
  agent-runtime secrets rewrap --dry-run

Values enter through PUT /v1/secrets/{environment}/{name}, and are never shown.";

/// The commands on secrets.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Command {
    /// List where secrets may be sent, add a use, or delete one
    Uses(Box<secret_uses::Arguments>),
    /// Wrap data keys with the present key
    Rewrap(Rewrap),
}

/// Arguments of `secrets rewrap`.
#[derive(Args)]
#[command(after_help = REWRAP_EXAMPLES)]
pub struct Rewrap {
    /// Only read, and print what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs one of the commands.
///
/// # Errors
/// The backend wraps no keys; the database or the key-management service does not answer; or some
/// data keys could not be read.
pub fn run(world: &World, command: &Command) -> Outcome {
    match command {
        Command::Uses(arguments) => secret_uses::run(world, arguments),
        Command::Rewrap(arguments) => rewrap(world, arguments),
    }
}

fn rewrap(world: &World, arguments: &Rewrap) -> Outcome {
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
    let rewrapped = done?;
    if arguments.json {
        terminal::say_json(&json!({
            "versions": rewrapped.versions, "current": rewrapped.current, "rewrapped": rewrapped.rewrapped,
            "unreadable": rewrapped.unreadable, "dryRun": arguments.dry_run,
        }))?;
    } else {
        say(&rewrapped, arguments.dry_run)?;
    }
    match rewrapped.unreadable.is_empty() {
        true => Ok(()),
        false => Err(Failure::found()),
    }
}

fn say(rewrapped: &Rewrapped, dry_run: bool) -> Outcome {
    for sentence in &rewrapped.unreadable {
        terminal::say(format_args!("not readable: {sentence}"))?;
    }
    let done = if dry_run {
        "would be wrapped"
    } else {
        "wrapped anew"
    };
    terminal::say(format_args!(
        "{} versions: {} already wrapped with the present key, {} {done}, {} could not be read.",
        rewrapped.versions,
        rewrapped.current,
        rewrapped.rewrapped,
        rewrapped.unreadable.len()
    ))
}

fn open(world: &World) -> Outcome<Secrets> {
    let settings = world.settings()?;
    let log = super::serve::open_log(&world.vars, &settings, &world.clock)?;
    // The wrapping key is shared by all tenants.
    let backend = secrets::Options::from_settings(&settings, Uuid::nil())?;
    if !matches!(backend, secrets::Options::Postgres(_)) {
        return Err(Error::new(
            Code::NotConfigured,
            "No keys are wrapped here: that needs SVC_SECRETS_BACKEND=postgres.",
        )
        .into());
    }
    let store = database::open(&settings, log.clone())?;
    let outbound = Outbound::from_settings(&settings)?;
    Ok(Secrets::new(backend, &store, &outbound, &world.clock, log)?)
}
