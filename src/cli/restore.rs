//! `restore`: puts a backup back, brings the schema up to this program, and brings the authorization
//! server in step.
//!
//! Guarantees: everything that can be judged is judged before anything is changed; each database
//! changes in one transaction, so that whatever cuts it off leaves it as it was; from the first change
//! to the last a mark in the runtime's database keeps every server from serving it. Postgres holds the
//! truth: what the authorization server has beside it goes, whatever the ages of the two dumps.

mod judge;
mod load;

use super::backup::{Manifest, Programs, Watch};
use super::{Failure, Outcome, World, authz, terminal};
use crate::config::Settings;
use crate::secret::Secret;
use crate::server::options;
use crate::store::connect::{Environment, Manager};
use crate::store::{backups, migrations};
use clap::Args;
use judge::Judged;
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agent-runtime restore --dry-run /var/backups/agent-runtime/2027-01-31
  systemctl stop agent-runtime
  agent-runtime restore --replace /var/backups/agent-runtime/2027-01-31

The databases are those of SVC_DATABASE_URL and SVC_AUTHZ_DATABASE_URL. The first must be used by
nobody else meanwhile. The authorization server is to run: it is brought in step at the end, whatever
the ages of the two dumps. Without the second setting, or with --without-openfga, it is filled from
the first database alone.

What was cut off is run again with --replace; until then no server serves the database.";

/// Arguments of `restore`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The backup's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Verify the backup and say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Replace what the databases hold
    #[arg(long)]
    replace: bool,
    /// Restore though keys of the backup's secrets are missing or others
    #[arg(long)]
    without_keys: bool,
    /// Leave the authorization server's dump aside
    #[arg(long)]
    without_openfga: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Restores a backup.
///
/// # Errors
/// The backup is damaged, the databases or the settings do not take it, somebody uses the runtime's
/// database, or something could not be done.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let (settings, forgiven) = world.settings_for_upkeep()?;
    let watch = Watch::start()?;
    for fault in &forgiven {
        terminal::note(format_args!("note: {fault}"));
    }
    let restored = restore(world, &settings, arguments, &watch);
    let told = restored.map_err(|failure| watch.failure(failure))?;
    if arguments.json {
        return terminal::say_json(&told);
    }
    Ok(())
}

fn restore(
    world: &World,
    settings: &Settings,
    arguments: &Arguments,
    watch: &Watch,
) -> Outcome<Value> {
    let manifest = Manifest::read(&arguments.directory)?;
    let mut judged = judge::judge(world, settings, arguments, &manifest, watch)?;
    let say = |line: String| match arguments.json {
        true => Ok(()),
        false => terminal::say(line),
    };
    say(format!(
        "backup: whole, made by version {}, {} bytes in all",
        manifest.program,
        manifest
            .databases()
            .map(|(_, of)| of.dump.bytes)
            .sum::<u64>()
    ))?;
    for note in &judged.notes {
        say(format!("note: {note}"))?;
    }
    if arguments.dry_run {
        say("Nothing was changed. It can be restored.".to_owned())?;
        return Ok(json!({"dryRun": true, "manifest": manifest, "notes": judged.notes}));
    }
    hold(&mut judged)?;
    load_runtime(arguments, &manifest, &judged, settings, watch)?;
    say(format!(
        "runtime: database {} restored",
        judged.runtime.database
    ))?;
    let log = super::serve::open_log(&world.vars, settings, &world.clock)?;
    let manager = Manager::new(&options::store(settings))?;
    let applied = migrations::migrate_restored(&manager, &log)?;
    if !applied.is_empty() {
        say(format!(
            "runtime: migrations applied: {}",
            applied.join(", ")
        ))?;
    }
    let openfga = load_openfga(arguments, &manifest, &judged, settings, watch)?;
    if let Some(database) = &openfga {
        say(format!("openfga: database {database} restored"))?;
    }
    backups::end(&mut judged.client)?;
    watch.may_leave();
    let reconciled = reconcile(world, settings)?;
    say(match &reconciled {
        Some(sums) => format!(
            "permissions: in step with {} tenants; added {}, removed {}",
            sums.compared, sums.missing, sums.extra
        ),
        None => "permissions: SVC_AUTHZ_API_URL is not set, so there is nothing to bring in step"
            .to_owned(),
    })?;
    say("Restored. Next: start the server.".to_owned())?;
    Ok(json!({
        "dryRun": false, "manifest": manifest, "notes": judged.notes,
        "runtime": judged.runtime.database, "migrations": applied, "openfga": openfga,
        "permissions": reconciled.map(|sums| json!({
            "tenants": sums.compared, "added": sums.missing, "removed": sums.extra,
        })),
    }))
}

/// Takes the database for this restore alone, and sets the mark. Who serves it already is seen after
/// that: who comes later sees the mark.
fn hold(judged: &mut Judged) -> Outcome {
    let client = &mut judged.client;
    if !backups::hold(client)? {
        return Err(Failure::new(
            "Another restore of this database is under way.",
        ));
    }
    let was_begun = migrations::is_in_restore(client)?;
    backups::begin(client)?;
    let others = backups::others(client)?;
    if others.is_empty() {
        return Ok(());
    }
    if !was_begun {
        backups::end(client)?;
    }
    let listed: Vec<String> = others
        .iter()
        .map(|other| {
            let from = other.address.as_ref();
            let from = from.map_or_else(String::new, |address| format!(", from {address}"));
            format!(
                "  {} (role {}, process {}{from})",
                other.name, other.role, other.pid
            )
        })
        .collect();
    Err(Failure::new(format!(
        "The database is in use. Stop every server first (systemctl stop agent-runtime) and end what else is connected:\n{}",
        listed.join("\n")
    )))
}

fn load_runtime(
    arguments: &Arguments,
    manifest: &Manifest,
    judged: &Judged,
    settings: &Settings,
    watch: &Watch,
) -> Outcome {
    let url = &settings.database.url;
    let wanted = loading(
        arguments,
        &manifest.runtime.dump.file,
        &judged.programs,
        url,
        "runtime",
    )?;
    load::load(&wanted.of(&manifest.runtime), watch)
}

/// Loads the authorization server's dump, where there is one and a database for it. Its name, if so.
fn load_openfga(
    arguments: &Arguments,
    manifest: &Manifest,
    judged: &Judged,
    settings: &Settings,
    watch: &Watch,
) -> Outcome<Option<String>> {
    let (Some(openfga), Some(dump), Some(url)) = (
        &judged.openfga,
        &manifest.openfga,
        &settings.authorization_database,
    ) else {
        return Ok(None);
    };
    let wanted = loading(
        arguments,
        &dump.dump.file,
        &openfga.programs,
        url,
        "openfga",
    )?;
    load::load(&wanted.of(dump), watch)?;
    Ok(Some(openfga.facts.database.clone()))
}

fn loading<'a>(
    arguments: &Arguments,
    file: &str,
    programs: &'a Programs,
    url: &Secret,
    what: &'static str,
) -> Outcome<load::Target<'a>> {
    Ok(load::Target {
        programs,
        environment: Environment::of(url)?,
        path: arguments.directory.join(file),
        what,
    })
}

fn reconcile(world: &World, settings: &Settings) -> Outcome<Option<authz::Sums>> {
    if settings.authorization.is_none() {
        return Ok(None);
    }
    let sums = authz::repair_all(world, settings).map_err(|failure| {
        Failure::new(format!(
            "The databases are restored. The authorization server is not in step with them yet: {}\nEach server compares it at its start; or run: agent-runtime authz repair",
            failure.message
        ))
    })?;
    Ok(Some(sums))
}
