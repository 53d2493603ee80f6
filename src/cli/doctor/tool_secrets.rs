//! The secrets that tools name: whether each is there under the environment that the server serves. None is opened.

use super::code::Code;
use super::finding::{Findings, Level};
use crate::config::Settings;
use crate::error::Result;
use crate::secrets::{self, SecretRef};
use crate::store::tools::{NamedSecret, named_secrets};
use postgres::Client;

/// Names looked at, those of the newest tools first.
const NAMES_MOST: i64 = 1000;

/// Missing secrets that the report shows.
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
    let tenant_id = settings.tenant.id.unwrap_or_default();
    let files = match secrets::Options::from_settings(settings, tenant_id)? {
        secrets::Options::Postgres(_) => None,
        secrets::Options::Dotenv(files) => Some(files),
        secrets::Options::Off => return Ok(named.iter().collect()),
    };
    let mut missing = Vec::new();
    for one in named {
        let at = SecretRef {
            environment: environment.to_owned(),
            name: one.secret.clone(),
        };
        let is_there = match &files {
            Some(files) => secrets::is_in_files(files, one.tenant_id, &at)?,
            None => one.is_stored,
        };
        if !is_there {
            missing.push(one);
        }
    }
    Ok(missing)
}

fn sentence(environment: &str, missing: &[&NamedSecret]) -> String {
    let shown: Vec<String> = missing
        .iter()
        .take(SHOWN_MOST)
        .map(|one| {
            format!(
                "{} (tool {}, project {})",
                one.secret, one.tool, one.project
            )
        })
        .collect();
    let more = match missing.len().saturating_sub(SHOWN_MOST) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!(
        "The environment {environment} has no secret {}{more}.",
        shown.join(", ")
    )
}
