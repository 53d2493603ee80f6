//! `restore`: restores a backup, migrates the schema to this program's version, and synchronizes
//! the authorization server.
//!
//! Guarantees: all checks come before the first change. Each database changes in one transaction,
//! so an interruption leaves it as it was. From the first change to the last, a mark in the
//! runtime's database keeps every server from using it. PostgreSQL is the truth
//! (`postgres-is-the-truth`): whatever the ages of the two dumps, the authorization server ends up
//! equal to it.

mod arguments;
mod load;
mod preflight;

use super::backup::{Manifest, Programs, Watch};
use super::{Failure, Outcome, World, authz, terminal};
use crate::config::Settings;
use crate::secret::Secret;
use crate::store;
use crate::store::connect::Manager;
use crate::store::libpq::Environment;
use crate::store::{backups, migrations};
pub use arguments::Arguments;
use load::Cut;
use preflight::Checked;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long a session that has just ended may still be listed by PostgreSQL.
const GOING: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Restores a backup.
///
/// # Errors
/// The backup is damaged, the databases or the settings do not fit it, somebody uses the runtime's
/// database, or a step failed.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let (settings, forgiven) = world.settings_for_upkeep()?;
    let watch = Watch::start()?;
    for fault in &forgiven {
        terminal::note(format_args!("note: {fault}"));
    }
    let restore = Restore {
        world,
        settings: &settings,
        arguments,
        watch: &watch,
        manifest: Manifest::read(&arguments.directory)?,
    }
    .run()?;
    match arguments.json {
        true => terminal::say_json(&restore),
        false => Ok(()),
    }
}

/// What a restore needs.
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

    /// The result, for programs.
    fn run(&self) -> Outcome<Value> {
        let manifest = &self.manifest;
        let checked = preflight::check(
            self.world,
            self.settings,
            self.arguments,
            manifest,
            self.watch,
        )?;
        let dumps = manifest.databases().map(|(_, of)| of.dump.bytes);
        self.say(format_args!(
            "backup: complete, made by version {}, {} bytes in all",
            manifest.program,
            dumps.sum::<u64>()
        ))?;
        for note in &checked.notes {
            self.say(format_args!("note: {note}"))?;
        }
        if self.arguments.dry_run {
            self.say("Nothing was changed. It can be restored.")?;
            return Ok(json!({"dryRun": true, "manifest": manifest, "notes": checked.notes}));
        }
        let (runtime, notes) = (checked.runtime.database.clone(), checked.notes.clone());
        let (migrations, openfga) = self.put_back(checked)?;
        self.watch.may_leave();
        let reconciled = reconcile(self.world, self.settings)?;
        self.say(match &reconciled {
            Some(sums) => format!(
                "permissions: synchronized for {} tenants; added {}, removed {}",
                sums.compared, sums.missing, sums.extra
            ),
            None => "permissions: SVC_AUTHZ_API_URL is not set, so there is nothing to synchronize"
                .to_owned(),
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

    /// Replaces both databases, under the mark. Returns the applied migrations, and the name of the
    /// authorization server's database if it was replaced.
    fn put_back(&self, mut checked: Checked) -> Outcome<(Vec<&'static str>, Option<String>)> {
        let was_begun = hold(&mut checked, self.watch)?;
        let loaded = self.load(&checked.programs, &self.settings.database_url, "runtime");
        if let Err(cut) = loaded {
            if cut.is_undone && !was_begun {
                backups::end(&mut checked.client)?;
            }
            return Err(self.watch.failure(cut.failure));
        }
        self.say(format_args!(
            "runtime: database {} restored",
            checked.runtime.database
        ))?;
        // A dump carries no statistics that every version restores.
        backups::analyze(&mut checked.client)?;
        let log = super::serve::open_log(&self.world.vars, self.settings, &self.world.clock)?;
        let manager = Manager::new(&store::Options::from_settings(self.settings))?;
        let applied = migrations::migrate_restored(&manager, &log)?;
        if !applied.is_empty() {
            let listed = applied.join(", ");
            self.say(format_args!("runtime: migrations applied: {listed}"))?;
        }
        let openfga = self.put_back_openfga(&checked)?;
        backups::end(&mut checked.client)?;
        Ok((applied, openfga))
    }

    /// Loads the authorization server's dump, if there is one and a database for it.
    fn put_back_openfga(&self, checked: &Checked) -> Outcome<Option<String>> {
        let url = self.settings.authorization_database.as_ref();
        let (Some(openfga), Some(url)) = (&checked.openfga, url) else {
            return Ok(None);
        };
        self.load(&openfga.programs, url, "openfga").map_err(|cut| {
            self.watch.failure(cut.failure).with(
                "The runtime's database is restored, but the authorization server's is not. No server uses it until you run the restore again, with --replace.",
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
            // Both were checked before.
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

/// Waits until nobody else is connected, [`GOING`] at most. Returns who still is.
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

/// Takes the database for this restore alone, and sets the mark. Then it looks for sessions: a
/// server that comes later sees the mark. True: an earlier restore had set it.
fn hold(checked: &mut Checked, watch: &Watch) -> Outcome<bool> {
    let client = &mut checked.client;
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
    if settings.authorization_url.is_none() {
        return Ok(None);
    }
    let sums = authz::repair_all(world, settings).map_err(|failure| {
        Failure::new(format!(
            "The databases are restored, but the authorization server could not be synchronized: {}\nEach server synchronizes it at its start; or run: agent-runtime authz repair",
            failure.message
        ))
    })?;
    Ok(Some(sums))
}
