//! The env file: setup adds missing settings and keeps the operator's.

use super::ledger::{Ledger, State};
use super::tenant::Tenant;
use super::{Paths, keys};
use crate::cli::account::Account;
use crate::cli::deployment;
use crate::cli::private_file::{self, IfExists};
use crate::cli::serve::first_user;
use crate::cli::{Failure, Outcome};
use crate::config::{EnvFile, render};
use crate::ids::Clock;
use crate::secret::Secret;
use uuid::Uuid;

/// A setting that setup adds if it is missing.
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// Where the value comes from, if worth a note.
    pub(super) from: Option<String>,
}

impl Wanted {
    pub(super) fn new(name: &'static str, value: impl ToString) -> Self {
        Self {
            name,
            value: value.to_string(),
            from: None,
        }
    }
}

/// The note on a new id if setup could not ask the database.
const NOT_ASKED: &str = "new: setup could not ask the database of SVC_DATABASE_URL; if it already \
                         holds a tenant, set that tenant's id instead";

/// Whether the secrets backend is, or will be, the one that needs setup's keys.
pub(super) fn wants_local_secrets(settings: &EnvFile) -> bool {
    let is = |name: &str, wanted: &str| {
        let value = settings.value(name).map(Secret::expose).unwrap_or_default();
        value == wanted
    };
    !keys::has(settings, "SVC_SECRETS_BACKEND")
        || is("SVC_SECRETS_BACKEND", "postgres") && is("SVC_SECRETS_BACKEND_KMS", "local")
}

/// The settings that an installed service needs.
pub(super) fn wanted(
    settings: &EnvFile,
    clock: &Clock,
    database: &str,
    tenant: &Tenant,
) -> Outcome<Vec<Wanted>> {
    let standing = settings.value("SVC_TENANT_ID").map(Secret::expose);
    let (tenant_id, from) = match (standing, tenant) {
        (None | Some(""), Tenant::Existing(tenant_id, database)) => {
            let from = format!("the tenant that the database {database} holds");
            (*tenant_id, Some(from))
        }
        (None | Some(""), Tenant::Unknown) => (clock.new_id(), Some(NOT_ASKED.to_owned())),
        (None | Some(""), Tenant::None) => (clock.new_id(), None),
        (Some(text), _) => {
            let tenant_id = Uuid::parse_str(text)
                .map_err(|_| Failure::new("SVC_TENANT_ID in the env file is not a UUID."))?;
            (tenant_id, None)
        }
    };
    let mut wanted = vec![
        Wanted::new("SVC_DATABASE_URL", database),
        Wanted {
            from,
            ..Wanted::new("SVC_TENANT_ID", tenant_id)
        },
        // The default of a server without this setting.
        Wanted::new("SVC_SEED_USER_ID", first_user(tenant_id)),
    ];
    if !keys::has(settings, "SVC_SECRETS_BACKEND") {
        wanted.push(Wanted::new("SVC_SECRETS_BACKEND", "postgres"));
        wanted.push(Wanted::new("SVC_SECRETS_BACKEND_KMS", "local"));
    }
    Ok(wanted)
}

/// Adds missing settings, and corrects owner and mode.
pub(super) fn write(
    ledger: &mut Ledger,
    paths: &Paths,
    service: Option<&Account>,
    mut settings: EnvFile,
    wanted: &[Wanted],
) -> Outcome<EnvFile> {
    let before = settings.text();
    for Wanted { name, value, from } in wanted {
        let standing = settings.value(name).map(Secret::expose);
        if standing == Some(value.as_str()) {
            ledger.enter(State::Kept, *name, None);
        } else if keys::is_given(paths, &settings, name) {
            ledger.enter(State::Kept, *name, Some("the value there is yours"));
        } else {
            settings.set(name, &Secret::new(value.as_str()));
            // None of these values is secret: the URLs hold no password.
            let from = from.as_ref().map(|from| format!(", {from}"));
            let note = format!("={value}{}", from.unwrap_or_default());
            ledger.enter(State::Made, *name, Some(&note));
        }
    }
    let path = &paths.env_file;
    let access = deployment::env_file_access(service);
    let what = path.display().to_string();
    let text = settings.text();
    if !path.exists() || text != before {
        let state = match path.exists() {
            true => State::Changed,
            false => State::Made,
        };
        if !ledger.dry_run {
            private_file::write_for(access, path, text.as_bytes(), IfExists::Replace)?;
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

/// The env file as it is, or the sample, which explains every setting.
pub(super) fn read(paths: &Paths) -> Outcome<EnvFile> {
    if let Some(settings) = deployment::read_env_file(&paths.env_file)? {
        return Ok(settings);
    }
    EnvFile::parse(&render::environment_file())
        .map_err(|line| Failure::new(format!("The sample env file is broken at line {line}.")))
}
