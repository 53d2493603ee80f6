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
use crate::store::connect::Manager;
use crate::store::libpq::Environment;
use crate::store::{backups, migrations};
use clap::Args;
use judge::Judged;
use load::Cut;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  agent-runtime restore --dry-run /var/backups/agent-runtime/2027-01-31
  systemctl stop agent-runtime
  agent-runtime restore --replace /var/backups/agent-runtime/2027-01-31

The databases are those of SVC_DATABASE_URL and SVC_AUTHZ_DATABASE_URL. The first must be used by \
nobody else meanwhile. The authorization server is to run: it is brought in step at the end, whatever \
the ages of the two dumps. Without the second setting, or with --without-openfga, it is filled from \
the first database alone.

What was cut off is run again with --replace; until then no server serves the database.";

/// Who has just ended may be connected for so long: Postgres sees it when it comes to it.
const GOING: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
    /// Replace what the databases hold; never what is neither the runtime's nor OpenFGA's
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
    let told = Restore {
        world,
        settings: &settings,
        arguments,
        watch: &watch,
        manifest: Manifest::read(&arguments.directory)?,
    }
    .run()?;
    match arguments.json {
        true => terminal::say_json(&told),
        false => Ok(()),
    }
}

/// What a restore is made of.
struct Restore<'a> {
    world: &'a World,
    settings: &'a Settings,
    arguments: &'a Arguments,
    watch: &'a Watch,
    manifest: Manifest,
}

impl Restore<'_> {
    fn say(&self, line: impl std::fmt::Display) -> Outcome {
        match self.arguments.json {
            true => Ok(()),
            false => terminal::say(line),
        }
    }

    /// What it came to, for programs.
    fn run(&self) -> Outcome<Value> {
        let manifest = &self.manifest;
        let judged = judge::judge(
            self.world,
            self.settings,
            self.arguments,
            manifest,
            self.watch,
        )?;
        let dumps = manifest.databases().map(|(_, of)| of.dump.bytes);
        self.say(format_args!(
            "backup: whole, made by version {}, {} bytes in all",
            manifest.program,
            dumps.sum::<u64>()
        ))?;
        for note in &judged.notes {
            self.say(format_args!("note: {note}"))?;
        }
        if self.arguments.dry_run {
            self.say("Nothing was changed. It can be restored.")?;
            return Ok(json!({"dryRun": true, "manifest": manifest, "notes": judged.notes}));
        }
        let (runtime, notes) = (judged.runtime.database.clone(), judged.notes.clone());
        let (migrations, openfga) = self.put_back(judged)?;
        self.watch.may_leave();
        let reconciled = reconcile(self.world, self.settings)?;
        self.say(match &reconciled {
            Some(sums) => format!(
                "permissions: in step with {} tenants; added {}, removed {}",
                sums.compared, sums.missing, sums.extra
            ),
            None => {
                "permissions: SVC_AUTHZ_API_URL is not set, so there is nothing to bring in step"
                    .to_owned()
            }
        })?;
        self.say("Restored. Next: start the server.")?;
        Ok(json!({
            "dryRun": false, "manifest": manifest, "notes": notes, "runtime": runtime,
            "migrations": migrations, "openfga": openfga,
            "permissions": reconciled.map(|sums| json!({
                "tenants": sums.compared, "added": sums.missing, "removed": sums.extra,
            })),
        }))
    }

    /// Replaces both databases: from the mark to its end. The migrations that were applied, and the
    /// name of the authorization server's database if it was replaced.
    fn put_back(&self, mut judged: Judged) -> Outcome<(Vec<&'static str>, Option<String>)> {
        let was_begun = hold(&mut judged, self.watch)?;
        let loaded = self.load(&judged.programs, &self.settings.database.url, "runtime");
        if let Err(cut) = loaded {
            if cut.is_undone && !was_begun {
                backups::end(&mut judged.client)?;
            }
            return Err(self.watch.failure(cut.failure));
        }
        self.say(format_args!(
            "runtime: database {} restored",
            judged.runtime.database
        ))?;
        // A dump carries no statistics that every version restores.
        backups::analyze(&mut judged.client)?;
        let log = super::serve::open_log(&self.world.vars, self.settings, &self.world.clock)?;
        let manager = Manager::new(&options::store(self.settings))?;
        let applied = migrations::migrate_restored(&manager, &log)?;
        if !applied.is_empty() {
            let listed = applied.join(", ");
            self.say(format_args!("runtime: migrations applied: {listed}"))?;
        }
        let openfga = self.put_back_openfga(&judged)?;
        backups::end(&mut judged.client)?;
        Ok((applied, openfga))
    }

    /// Loads the authorization server's dump, where there is one and a database for it.
    fn put_back_openfga(&self, judged: &Judged) -> Outcome<Option<String>> {
        let url = self.settings.authorization_database.as_ref();
        let (Some(openfga), Some(url)) = (&judged.openfga, url) else {
            return Ok(None);
        };
        self.load(&openfga.programs, url, "openfga").map_err(|cut| {
            self.watch.failure(cut.failure).with(
                "The runtime's database is restored, and the authorization server's is not: no server serves it until the restore was run again, with --replace.",
            )
        })?;
        let name = openfga.facts.database.clone();
        self.say(format_args!("openfga: database {name} restored"))?;
        Ok(Some(name))
    }

    /// Loads one of the dumps.
    fn load(&self, programs: &Programs, url: &Secret, what: &'static str) -> Result<(), Cut> {
        let dumped = self.manifest.databases().find(|(name, _)| *name == what);
        let environment = Environment::of(url);
        let (Some((_, dumped)), Ok(environment)) = (dumped, environment) else {
            // Both were judged before.
            return Err(Cut::undone(Failure::new(format!(
                "{what} cannot be restored."
            ))));
        };
        let wanted = load::Load {
            programs,
            environment: &environment,
            path: &self.arguments.directory.join(&dumped.dump.file),
            schema: &dumped.schema,
            what,
        };
        load::load(&wanted, self.watch)
    }
}

/// Looks until nobody is in the way, or for [`GOING`]. The last look.
fn last_look<T>(
    watch: &Watch,
    mut look: impl FnMut() -> Outcome<T>,
    is_free: impl Fn(&T) -> bool,
) -> Outcome<T> {
    let until = Instant::now() + GOING;
    loop {
        let found = look()?;
        if is_free(&found) || Instant::now() >= until {
            return Ok(found);
        }
        watch.check()?;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Takes the database for this restore alone, and sets the mark. Who serves it already is seen after
/// that: who comes later sees the mark. True: an earlier restore had set it.
fn hold(judged: &mut Judged, watch: &Watch) -> Outcome<bool> {
    let client = &mut judged.client;
    if !last_look(watch, || Ok(backups::hold(client)?), |is_held| *is_held)? {
        return Err(Failure::new(
            "Another restore of this database is under way.",
        ));
    }
    let was_begun = migrations::is_in_restore(client)?;
    backups::begin(client)?;
    let others = last_look(watch, || Ok(backups::others(client)?), Vec::is_empty);
    if others.as_ref().is_ok_and(Vec::is_empty) {
        return Ok(was_begun);
    }
    if !was_begun {
        backups::end(client)?;
    }
    let listed: Vec<String> = others?
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
