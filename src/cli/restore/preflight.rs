//! The checks that a backup can be restored here, before anything is changed.

use super::super::backup::{self, KeyMatch, Manifest, Programs, Watch, digest_of};
use super::super::{Failure, Outcome, World};
use super::Arguments;
use crate::config::Settings;
use crate::store;
use crate::store::backups::{self, Facts, LockRoom};
use crate::store::connect::Manager;
use crate::store::migrations;
use std::path::Path;

/// A restore whose checks passed.
pub(super) struct Checked {
    /// The runtime's database, locked by this connection.
    pub(super) client: postgres::Client,
    pub(super) runtime: Facts,
    pub(super) programs: Programs,
    /// None: the dump is not restored, or there is none.
    pub(super) openfga: Option<Openfga>,
    /// Warnings for the operator.
    pub(super) notes: Vec<String>,
}

/// The target of the authorization server's dump.
pub(super) struct Openfga {
    pub(super) facts: Facts,
    pub(super) programs: Programs,
}

/// Checks the files, the program, the keys and the databases.
///
/// # Errors
/// Why the backup cannot be restored.
pub(super) fn check(
    world: &World,
    settings: &Settings,
    arguments: &Arguments,
    manifest: &Manifest,
    watch: &Watch,
) -> Outcome<Checked> {
    check_files(&arguments.directory, manifest, watch)?;
    check_program(manifest)?;
    let mut notes = Vec::new();
    check_keys(world, settings, arguments, manifest, &mut notes)?;
    notes.extend(tenant_note(settings, manifest));
    let database = store::Options::from_settings(settings);
    let mut client = Manager::new(&database)?.client()?;
    let runtime = backups::facts(&mut client)?;
    check_database("SVC_DATABASE_URL", &runtime, &manifest.runtime)?;
    let is_empty = backups::is_empty(&mut client)?;
    if !is_empty && migrations::recorded(&mut client)?.applied.is_empty() {
        return Err(stranger("SVC_DATABASE_URL", &runtime, "this program's"));
    }
    if !arguments.replace && !is_empty {
        return Err(Failure::new(format!(
            "Database {} is not empty. Add --replace to replace its content, or name an empty one in SVC_DATABASE_URL.",
            runtime.database
        )));
    }
    let programs = programs(world, &runtime, &manifest.runtime)?;
    let relations = backup::relations(&programs, &file(arguments, &manifest.runtime), watch)?;
    check_locks(relations, !is_empty, backups::lock_room(&mut client)?)?;
    let openfga = check_openfga(
        world,
        settings,
        arguments,
        manifest,
        watch,
        &mut client,
        &mut notes,
    )?;
    Ok(Checked {
        client,
        runtime,
        programs,
        openfga,
        notes,
    })
}

fn file(arguments: &Arguments, database: &backup::Database) -> std::path::PathBuf {
    arguments.directory.join(&database.dump.file)
}

fn programs(world: &World, facts: &Facts, dumped: &backup::Database) -> Outcome<Programs> {
    Programs::find(&world.vars, facts.server, dumped.dump.pg_dump)
}

/// Each file exists and has the recorded digest.
fn check_files(directory: &Path, manifest: &Manifest, watch: &Watch) -> Outcome {
    for (what, database) in manifest.databases() {
        let dump = &database.dump;
        let is_plain =
            Path::new(&dump.file).components().count() == 1 && !dump.file.starts_with('.');
        if !is_plain {
            return Err(Failure::new(format!(
                "The manifest names a file that cannot be in a backup: {}.",
                super::terminal::printable(&dump.file)
            )));
        }
        let path = directory.join(&dump.file);
        let mut pace = backup::Pace::of(&format!("verifying {what}"));
        let (sha256, bytes) = digest_of(&path, |bytes| pace.show(bytes))?;
        drop(pace);
        watch.check()?;
        if bytes != dump.bytes || sha256 != dump.sha256 {
            return Err(Failure::new(format!(
                "{} is damaged: it has {bytes} bytes and SHA-256 {sha256}, and {} bytes and {} were written. Nothing was changed. Take another backup.",
                path.display(),
                dump.bytes,
                super::terminal::printable(&dump.sha256)
            )));
        }
    }
    Ok(())
}

/// This program supports the schema.
fn check_program(manifest: &Manifest) -> Outcome {
    if let Some(reason) = migrations::reason_to_refuse_older(&manifest.runtime.migrations) {
        return Err(Failure::new(format!("The backup's database {reason}")));
    }
    let Some(oldest) = &manifest.runtime.oldest_program else {
        return Ok(());
    };
    match migrations::refusal_of_older(oldest)? {
        None => Ok(()),
        Some(_) => Err(Failure::new(format!(
            "The backup was made by version {} for version {oldest} or later; this is {}. Install {oldest} or later.",
            manifest.program,
            env!("CARGO_PKG_VERSION")
        ))),
    }
}

/// The keys of its secrets are present.
fn check_keys(
    world: &World,
    settings: &Settings,
    arguments: &Arguments,
    manifest: &Manifest,
    notes: &mut Vec<String>,
) -> Outcome {
    let mut refusals = Vec::new();
    for (key, key_match) in backup::compare(world, settings, manifest) {
        let was_at = key.path.as_ref();
        let was_at = was_at.map_or_else(String::new, |path| format!(" (it was in {path})"));
        let what = match key_match {
            KeyMatch::Same => continue,
            KeyMatch::Other if key.setting == "SVC_SECRETS_LOCAL_KEY_PATH" => format!(
                "The key of {} is not the backup's{was_at}. If it was rotated since, name the backup's key in SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH, and run `agent-runtime secrets rewrap` after the restore.",
                key.setting
            ),
            KeyMatch::Other => format!("The key of {} is not the backup's{was_at}.", key.setting),
            KeyMatch::Missing => format!("The key of {} is missing{was_at}.", key.setting),
            KeyMatch::Unknown => format!(
                "Whether the key of {} is the backup's is not known: whoever made the backup could not read it.",
                key.setting
            ),
        };
        let is_needed = key.for_secrets && manifest.secret_versions > 0;
        if is_needed && key_match != KeyMatch::Unknown && !arguments.without_keys {
            refusals.push(what);
        } else {
            notes.push(what);
        }
    }
    if refusals.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}\nThe backup's {} versions of secrets cannot be read without them. Put them back, or restore everything else with --without-keys.",
        refusals.join("\n"),
        manifest.secret_versions
    )))
}

/// A warning if the settings name a tenant that the backup does not have.
fn tenant_note(settings: &Settings, manifest: &Manifest) -> Option<String> {
    let (wanted, tenants) = settings.tenant.id.zip(manifest.tenants.as_ref())?;
    let oldest = tenants.first().filter(|_| !tenants.contains(&wanted))?;
    Some(format!(
        "SVC_TENANT_ID is {wanted}, which is none of the backup's {} tenants: the server would make a new and empty one at its start. Set SVC_TENANT_ID and SVC_SEED_USER_ID as they were; the backup's oldest tenant is {oldest}.",
        tenants.len()
    ))
}

/// The database accepts the dump.
fn check_database(setting: &str, facts: &Facts, dumped: &backup::Database) -> Outcome {
    let mut refusals = Vec::new();
    let major = |number: i32| number / 10_000;
    if major(facts.server) < major(dumped.postgresql_number) {
        refusals.push(format!(
            "The backup is of PostgreSQL {}, and the server is {}. Restore it to version {} or later.",
            dumped.postgresql,
            facts.server_text,
            major(dumped.postgresql_number)
        ));
    }
    if facts.encoding != "UTF8" {
        refusals.push(format!(
            "The database's encoding is {}. Create it with encoding UTF8.",
            facts.encoding
        ));
    }
    if facts.read_only {
        refusals.push("The database is read-only. Connect to the primary server.".to_owned());
    }
    if !facts.may_create {
        refusals.push(format!(
            "The role may not create tables in schema {}. As its owner run: grant create on schema {} to the role.",
            facts.schema, facts.schema
        ));
    }
    if facts.schema != dumped.schema {
        refusals.push(format!(
            "The backup's tables lie in schema {}, and this role's in {}. Set the role's search_path to the first.",
            dumped.schema, facts.schema
        ));
    }
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{setting}: database {}: {}",
            facts.database,
            refusals.join(" ")
        ))),
    }
}

/// The server has room for the locks of the transaction, which also locks what it removes.
fn check_locks(relations: u64, replaces: bool, room: LockRoom) -> Outcome {
    let needed = match replaces {
        true => relations.saturating_mul(2),
        false => relations,
    };
    match room.wanted(needed) {
        None => Ok(()),
        Some(wanted) => Err(Failure::new(format!(
            "The restore is one transaction and needs about {needed} locks, more than PostgreSQL has room for. Set max_locks_per_transaction = {wanted} (now {}) in postgresql.conf, restart PostgreSQL, and restore again.",
            room.each
        ))),
    }
}

/// Why a database with content is not replaced.
fn stranger(setting: &str, facts: &Facts, whose: &str) -> Failure {
    Failure::new(format!(
        "{setting}: database {} holds something and is not {whose}: nothing of it is replaced, with --replace either. Name {whose}, or an empty one.",
        facts.database
    ))
}

fn check_openfga(
    world: &World,
    settings: &Settings,
    arguments: &Arguments,
    manifest: &Manifest,
    watch: &Watch,
    client: &mut postgres::Client,
    notes: &mut Vec<String>,
) -> Outcome<Option<Openfga>> {
    let filled = "the authorization server is rebuilt from the runtime's database";
    let Some(dumped) = &manifest.openfga else {
        if settings.authorization_url.is_some() {
            notes.push(format!(
                "The backup holds no dump of the authorization server's database; {filled}."
            ));
        }
        return Ok(None);
    };
    let Some(url) = settings.authorization_database.as_ref() else {
        notes.push(format!("SVC_AUTHZ_DATABASE_URL is not set; {filled}."));
        return Ok(None);
    };
    if arguments.without_openfga {
        notes.push(format!(
            "The authorization server's dump is not restored; {filled}."
        ));
        return Ok(None);
    }
    let found = backup::look_at_openfga(url, &store::Options::from_settings(settings), client)?;
    let (facts, version) = (found.facts, found.version);
    let setting = "SVC_AUTHZ_DATABASE_URL";
    check_database(setting, &facts, dumped)?;
    if version.is_none() && !found.is_empty {
        return Err(stranger(setting, &facts, "OpenFGA's"));
    }
    if !arguments.replace && !found.is_empty {
        return Err(Failure::new(format!(
            "{setting}: database {} is not empty. Add --replace to replace all that it holds, or --without-openfga to fill it from the runtime's database.",
            facts.database
        )));
    }
    if dumped.version < version {
        notes.push(format!(
            "The authorization server's dump is of an older version than its database is now ({} and {}): run openfga migrate after the restore and restart it. A restart of agent-runtime-openfga does both.",
            dumped.version.unwrap_or(0),
            version.unwrap_or(0)
        ));
    }
    let programs = programs(world, &facts, dumped)?;
    backup::relations(&programs, &file(arguments, dumped), watch)?;
    Ok(Some(Openfga { facts, programs }))
}
