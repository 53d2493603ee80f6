//! The secrets that tools name: whether each is there under the environment that the server serves. None is opened.

use super::code::Code;
use super::finding::{Findings, Level};
use crate::config::Settings;
use crate::error::Result;
use crate::secrets::{self, DotenvOptions, SecretRef};
use crate::store::tools::{NamedSecret, named_secrets};
use postgres::Client;
use uuid::Uuid;

/// Names looked at, those of the newest tools first.
pub(super) const NAMES_MOST: i64 = 1000;

/// Of each list, so many are shown.
const SHOWN_MOST: usize = 10;

/// Looks at the names, in a database of this program's schema.
pub(super) fn look(findings: &Findings, client: &mut Client, settings: &Settings) -> Result<()> {
    let environment = settings.environment.as_deref();
    let named = named_secrets(client, environment, NAMES_MOST)?;
    if named.is_empty() {
        findings.ok(Code::ToolSecrets, "No tool names a secret.");
        return Ok(());
    }
    let Some(environment) = environment else {
        let sentence = "Tools name secrets, and SVC_ENVIRONMENT is not set: their calls fail.";
        let remedy = "Set SVC_ENVIRONMENT to the environment under which the secrets are stored.";
        let (sentence, remedy) = (sentence.to_owned(), remedy.to_owned());
        findings.remedied(Code::ToolSecrets, Level::Warning, sentence, remedy);
        return Ok(());
    };
    let missing = missing(settings, environment, &named)?;
    if missing.is_empty() {
        let sentence = format!("{} names of secrets in tools were found.", named.len());
        findings.ok(Code::ToolSecrets, sentence);
    } else {
        findings.warning(Code::ToolSecrets, sentence(environment, &missing));
    }
    Ok(())
}

/// Those that are not there.
fn missing<'a>(
    settings: &Settings,
    environment: &str,
    named: &'a [NamedSecret],
) -> Result<Vec<&'a NamedSecret>> {
    let stored = Stored::of(settings)?;
    let mut missing = Vec::new();
    for one in named {
        if !stored.has(environment, one.tenant_id, &one.secret, one.is_stored)? {
            missing.push(one);
        }
    }
    Ok(missing)
}

/// Where values of secrets are kept.
pub(super) enum Stored {
    Database,
    Files(DotenvOptions),
    Nowhere,
}

impl Stored {
    pub(super) fn of(settings: &Settings) -> Result<Self> {
        let tenant_id = settings.tenant.id.unwrap_or_default();
        Ok(
            match secrets::Options::from_settings(settings, tenant_id)? {
                secrets::Options::Postgres(_) => Self::Database,
                secrets::Options::Dotenv(files) => Self::Files(files),
                secrets::Options::Off => Self::Nowhere,
            },
        )
    }

    /// Whether the secret is there. `is_stored`: in the database.
    pub(super) fn has(
        &self,
        environment: &str,
        tenant_id: Uuid,
        name: &str,
        is_stored: bool,
    ) -> Result<bool> {
        match self {
            Self::Database => Ok(is_stored),
            Self::Nowhere => Ok(false),
            Self::Files(files) => {
                let at = SecretRef {
                    environment: environment.to_owned(),
                    name: name.to_owned(),
                };
                secrets::is_in_files(files, tenant_id, &at)
            }
        }
    }
}

fn sentence(environment: &str, missing: &[&NamedSecret]) -> String {
    let of = |one: &&NamedSecret| {
        let (secret, tool, project) = (&one.secret, &one.tool, &one.project);
        format!("{secret} (tool {tool}, project {project})")
    };
    let all = listed(missing, of).unwrap_or_default();
    format!("The environment {environment} has no secret {all}.")
}

/// The first of them, and how many more there are. None: there are none.
pub(super) fn listed<T>(all: &[T], of: impl Fn(&T) -> String) -> Option<String> {
    let shown: Vec<String> = all.iter().take(SHOWN_MOST).map(of).collect();
    let more = match all.len().saturating_sub(SHOWN_MOST) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!all.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}
