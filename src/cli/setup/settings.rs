//! The env file: what is missing is added, what the operator wrote stays.

use super::ledger::{Ledger, State};
use super::{Places, keys};
use crate::cli::account::Account;
use crate::cli::deployment;
use crate::cli::private_file::{self, Standing};
use crate::cli::serve::first_user;
use crate::cli::{Failure, Outcome};
use crate::config::{EnvFile, render};
use crate::ids::Clock;
use crate::secret::Secret;
use uuid::Uuid;

/// A setting that setup gives where the operator gave none, and its value.
pub(super) type Wanted = (&'static str, String);

/// Whether the secrets backend is, or is to be, the one that setup makes keys for.
pub(super) fn wants_local_secrets(settings: &EnvFile) -> bool {
    let is = |name: &str, wanted: &str| {
        let value = settings.value(name).map(Secret::expose).unwrap_or_default();
        value == wanted
    };
    !keys::has(settings, "SVC_SECRETS_BACKEND")
        || is("SVC_SECRETS_BACKEND", "postgres") && is("SVC_SECRETS_BACKEND_KMS", "local")
}

/// The settings that an installed service needs.
pub(super) fn wanted(settings: &EnvFile, clock: &Clock, database: &str) -> Outcome<Vec<Wanted>> {
    let tenant_id = match settings.value("SVC_TENANT_ID").map(Secret::expose) {
        None | Some("") => clock.new_id(),
        Some(text) => Uuid::parse_str(text)
            .map_err(|_| Failure::new("SVC_TENANT_ID in the env file is no UUID."))?,
    };
    let mut wanted = vec![
        ("SVC_DATABASE_URL", database.to_owned()),
        ("SVC_TENANT_ID", tenant_id.to_string()),
        // The one that a server without this setting takes.
        ("SVC_SEED_USER_ID", first_user(tenant_id).to_string()),
    ];
    if !keys::has(settings, "SVC_SECRETS_BACKEND") {
        wanted.push(("SVC_SECRETS_BACKEND", "postgres".to_owned()));
        wanted.push(("SVC_SECRETS_BACKEND_KMS", "local".to_owned()));
    }
    Ok(wanted)
}

/// Adds what is missing, and puts owner and mode right.
pub(super) fn write(
    ledger: &mut Ledger,
    places: &Places,
    service: Option<&Account>,
    mut settings: EnvFile,
    wanted: &[Wanted],
) -> Outcome<EnvFile> {
    let before = settings.text();
    for (name, value) in wanted {
        let standing = settings.value(name).map(Secret::expose);
        if standing == Some(value.as_str()) {
            ledger.enter(State::Kept, *name, None);
        } else if keys::is_given(places, &settings, name) {
            ledger.enter(State::Kept, *name, Some("the value there is yours"));
        } else {
            settings.set(name, &Secret::new(value.as_str()));
            // None of ours is a secret: the URLs hold no password.
            ledger.enter(State::Made, *name, Some(&format!("={value}")));
        }
    }
    let path = &places.env_file;
    let access = deployment::env_file_access(service);
    let what = path.display().to_string();
    let text = settings.text();
    if !path.exists() || text != before {
        let state = match path.exists() {
            true => State::Changed,
            false => State::Made,
        };
        if !ledger.dry_run {
            private_file::write_for(access, path, text.as_bytes(), Standing::Replaced)?;
        }
        ledger.enter(state, what, Some("mode 0640"));
    } else if let Some(fault) = private_file::faults(access, path)? {
        if !ledger.dry_run {
            private_file::put_right(access, path)?;
        }
        ledger.enter(State::Changed, what, Some(&format!("it {fault}")));
    } else {
        ledger.enter(State::Kept, what, None);
    }
    Ok(settings)
}

/// The env file as it stands, or the sample that every setting is explained in.
pub(super) fn read(places: &Places) -> Outcome<EnvFile> {
    if let Some(settings) = deployment::read_env_file(&places.env_file)? {
        return Ok(settings);
    }
    EnvFile::parse(&render::environment_file())
        .map_err(|line| Failure::new(format!("The sample env file is broken at line {line}.")))
}
