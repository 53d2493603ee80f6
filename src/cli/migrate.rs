//! `migrate`: brings the schema to this version, or prints what it would do.

use super::{Failure, Outcome, World, dev, terminal};
use crate::store;
use crate::store::connect::Manager;
use crate::store::migrations;
use clap::Args;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  agent-runtime migrate --check    print what would be done, change nothing
  agent-runtime migrate            do it

The database is that of SVC_DATABASE_URL, else the private one of a running `dev`. A server \
migrates at its start. Use this command to do it before. Exits 1 if the schema cannot be migrated, and prints the reasons.";

/// Arguments of `migrate`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Print what would be done, and change nothing
    #[arg(long)]
    check: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dev: dev::Found,
}

/// Migrates, or prints what it would do.
///
/// # Errors
/// The database cannot be reached, or the schema cannot be migrated.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let world = &arguments.dev.world(world)?;
    let settings = world.settings()?;
    let manager = Manager::new(&store::Options::from_settings(&settings))?;
    let mut client = manager.client()?;
    let plan = migrations::plan(&mut client)?;
    if arguments.check || !plan.refusals.is_empty() {
        if arguments.json {
            terminal::say_json(&json!({"pending": plan.pending, "refusals": plan.refusals}))?;
        } else {
            for name in &plan.pending {
                terminal::say(format_args!("pending: {name}"))?;
            }
            if plan.pending.is_empty() && plan.refusals.is_empty() {
                terminal::say("The schema is up to date.")?;
            }
        }
        return match plan.refusals.is_empty() {
            true => Ok(()),
            false if arguments.json => Err(Failure::said()),
            false => Err(Failure::new(plan.refusals.join("\n"))),
        };
    }
    let log = super::serve::open_log(&world.vars, &settings, &world.clock)?;
    let applied = migrations::migrate(&manager, &log)?;
    if arguments.json {
        return terminal::say_json(&json!({ "applied": applied }));
    }
    for name in &applied {
        terminal::say(format_args!("applied: {name}"))?;
    }
    terminal::say("The schema is up to date.")
}
