//! `backup`: dumps the runtime's database, then the authorization server's, each as one snapshot,
//! while servers keep running.
//!
//! Guarantees: a directory with the final name is complete and was read back, or does not exist; an
//! unfinished one is called `DIR.partial`. Only its owner can read it. It holds no key: the
//! manifest names the keys that its content needs.

mod child;
mod dump;
mod files;
mod keys;
mod manifest;
mod programs;
mod target;

pub(super) use child::{Program, Watch};
pub(super) use dump::{Pace, relations};
pub(super) use keys::{KeyMatch, compare};
pub(super) use manifest::{Database, Manifest, digest_of};
pub(super) use programs::Programs;

use super::{Failure, Outcome, World, dev, terminal};
use crate::config::Settings;
use crate::ids::rfc3339;
use crate::secret::Secret;
use crate::store::backups::{self, Facts};
use crate::store::connect::Manager;
use crate::store::libpq::Environment;
use crate::store::{self, migrations};
use clap::Args;
use dump::Dump;
use files::{OPENFGA_FILE, RUNTIME_FILE};
use manifest::KEYS_NOTE;
use postgres::GenericClient;
use serde_json::json;
use std::path::PathBuf;
use target::Target;

const EXAMPLES: &str = "\
Examples:
  agent-runtime backup /var/backups/agent-runtime/2027-01-31
  agent-runtime backup --json /var/backups/agent-runtime/2027-01-31 | jq .runtime.sha256

The databases are those of SVC_DATABASE_URL and SVC_AUTHZ_DATABASE_URL; without the second, the \
authorization server's is left out, and a restore rebuilds it from the first. Without \
SVC_DATABASE_URL the private database of a running `dev` is backed up. Servers keep running. Key files are not in a backup: keep them, and keep them elsewhere.

DIR must not exist, or be empty. It appears once the backup is complete and verified. pg_dump and pg_restore \
of the server's version are needed (package postgresql-client).";

/// Arguments of `backup`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The directory to create
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print the manifest as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dev: dev::Found,
}

/// Makes a backup.
///
/// # Errors
/// A database cannot be reached or dumped, the directory cannot be written, or the command was
/// interrupted.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let world = &arguments.dev.world(world)?;
    let (settings, forgiven) = world.settings_for_upkeep()?;
    let watch = Watch::start()?;
    let target = Target::take(&arguments.directory)?;
    let made = take(world, &settings, &target, &watch);
    let manifest = match made {
        Ok(manifest) => manifest,
        Err(failure) => {
            target.give_up();
            return Err(watch.failure(failure));
        }
    };
    target.finish(&manifest)?;
    if arguments.json {
        return terminal::say_json(
            &json!({"directory": arguments.directory, "manifest": manifest}),
        );
    }
    for fault in &forgiven {
        terminal::note(format_args!("note: {fault}"));
    }
    say(&manifest, arguments)
}

fn take(world: &World, settings: &Settings, target: &Target, watch: &Watch) -> Outcome<Manifest> {
    let started_at = world.clock.now();
    let database = store::Options::from_settings(settings);
    let mut client = Manager::new(&database)?.client()?;
    // The manifest describes the same snapshot that is dumped.
    let (mut snapshot, name) = backups::snapshot(&mut client)?;
    let facts = backups::facts(&mut snapshot)?;
    if migrations::is_in_restore(&mut snapshot)? {
        return Err(Failure::new(
            "A restore of this database is not finished. Let it end, or run it again, before a backup.",
        ));
    }
    let recorded = migrations::recorded(&mut snapshot)?;
    if recorded.applied.is_empty() {
        return Err(Failure::new(format!(
            "Database {} holds no schema of this program: there is nothing to back up. Is SVC_DATABASE_URL right?",
            facts.database
        )));
    }
    if let Some(reason) = migrations::reason_to_refuse_older(&recorded.applied) {
        return Err(Failure::new(format!("The database {reason}")));
    }
    let secret_versions = backups::secret_versions(&mut snapshot)?;
    let tenants = backups::tenants(&mut snapshot)?;
    let openfga = match &settings.authorization_database {
        None => None,
        Some(url) => Some((url, find_openfga(url, &database, &mut snapshot)?)),
    };
    let dump = |url: &Secret, facts: &Facts, file: &str, snapshot: Option<&str>| {
        let programs = Programs::find(&world.vars, facts.server, 0)?;
        let wanted = Dump {
            programs: &programs,
            environment: &Environment::of(url)?,
            schema: &facts.schema,
            path: &target.path(file),
            what: file,
            snapshot,
        };
        dump::dump(&wanted, &world.clock, watch)
    };
    let dumped = dump(&database.url, &facts, RUNTIME_FILE, Some(&name))?;
    drop(snapshot);
    let runtime = Database::of(&facts, dumped).with_schema(&recorded);
    let openfga = match openfga {
        None => None,
        Some((url, found)) => {
            let dumped = dump(url, &found.facts, OPENFGA_FILE, None)?;
            Some(Database::of(&found.facts, dumped).with_version(found.version))
        }
    };
    Ok(Manifest {
        format: manifest::FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
        ended_at: world.clock.now(),
        authorization_model: crate::authz::model::VERSION,
        tenants,
        secret_versions: u64::try_from(secret_versions).unwrap_or(0),
        keys: keys::of(world, settings),
        keys_note: KEYS_NOTE.to_owned(),
        runtime,
        openfga,
    })
}

/// A database that should be the authorization server's.
pub(super) struct FoundOpenfga {
    pub(super) facts: Facts,
    /// None: it is not OpenFGA's, or not yet.
    pub(super) version: Option<i64>,
    pub(super) is_empty: bool,
}

/// Finds the authorization server's database to dump.
fn find_openfga(
    url: &Secret,
    options: &store::Options,
    runtime: &mut impl GenericClient,
) -> Outcome<FoundOpenfga> {
    let found = look_at_openfga(url, options, runtime)?;
    if found.version.is_none() {
        return Err(Failure::new(format!(
            "SVC_AUTHZ_DATABASE_URL: database {} is not OpenFGA's: it has no tables of OpenFGA in schema {}. Name OpenFGA's, or unset it: a restore then rebuilds OpenFGA from the runtime's database.",
            found.facts.database, found.facts.schema
        )));
    }
    Ok(found)
}

/// Looks at the authorization server's database, with the waits of the runtime's. Refuses the target
/// that the runtime's tables lie in.
pub(super) fn look_at_openfga(
    url: &Secret,
    runtime_options: &store::Options,
    runtime: &mut impl GenericClient,
) -> Outcome<FoundOpenfga> {
    let named = |failure: Failure| failure.about("SVC_DATABASE_URL", "SVC_AUTHZ_DATABASE_URL");
    let options = store::Options {
        url: url.clone(),
        ..runtime_options.clone()
    };
    let client = Manager::new(&options).and_then(|manager| manager.client());
    let mut client = client.map_err(|error| named(error.into()))?;
    let facts = backups::facts(&mut client)?;
    if backups::is_same_place(runtime, &mut client)? {
        return Err(Failure::new(format!(
            "SVC_DATABASE_URL and SVC_AUTHZ_DATABASE_URL name one database, and one schema in it: database {}, schema {}. Each would be replaced by the other. OpenFGA needs its own: correct one of the two.",
            facts.database, facts.schema
        )));
    }
    Ok(FoundOpenfga {
        version: backups::openfga_version(&mut client)?,
        is_empty: backups::is_empty(&mut client)?,
        facts,
    })
}

fn say(manifest: &Manifest, arguments: &Arguments) -> Outcome {
    terminal::say(format_args!("backup: {}", arguments.directory.display()))?;
    for (what, database) in [
        ("runtime", Some(&manifest.runtime)),
        ("openfga", manifest.openfga.as_ref()),
    ] {
        let line = match database {
            Some(of) => format!(
                "{what}: database {}, {} bytes, sha256 {}",
                of.database, of.dump.bytes, of.dump.sha256
            ),
            None => format!(
                "{what}: left out, because SVC_AUTHZ_DATABASE_URL is not set; a restore rebuilds it from the runtime's"
            ),
        };
        terminal::say(line)?;
    }
    for key in &manifest.keys {
        terminal::say(format_args!(
            "needed for a restore and not in the backup: the key of {}{}",
            key.setting,
            key.path
                .as_ref()
                .map_or_else(String::new, |path| format!(", {path}"))
        ))?;
    }
    terminal::say(format_args!(
        "done: {} to {}",
        rfc3339::text(manifest.started_at),
        rfc3339::text(manifest.ended_at)
    ))
}
