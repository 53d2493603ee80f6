//! The authorization server, the tenants' stores there, and its own database.

use super::code::Code;
use super::database::{asked_of, connect};
use super::finding::{Findings, Level};
use crate::authz::fga::{self, Client};
use crate::authz::health::{self, State};
use crate::authz::permissions::{self, Model};
use crate::cli::reason;
use crate::config::Settings;
use crate::error::Result;
use crate::outbound::Outbound;
use crate::store;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(super) const CODES: &[Code] = &[Code::Openfga, Code::AuthorizationStore];

/// What its own database and its package tell.
pub(super) const OF_DATABASE: &[Code] = &[
    Code::OpenfgaVersion,
    Code::OpenfgaSchema,
    Code::OpenfgaIndexes,
];

/// For all questions to the authorization server.
const PATIENCE: Duration = Duration::from_secs(12);
/// The companion package's program.
const COMPANION: &str = "/usr/lib/agent-runtime-openfga/openfga";
/// The version that section 1.2 of the specification names.
const WANTED: semver::Version = semver::Version::new(1, 22, 0);
/// The schema of that version, and the oldest one that it serves with.
const REVISION: i64 = 6;
const OLDEST_REVISION: i64 = 4;
/// What the migration to that schema is for. It makes it once, whatever became of it later.
const USER_INDEX: &str = "idx_user_lookup";

/// Asks the authorization server.
pub(super) fn look(findings: &Findings, settings: &Settings) {
    let Some(options) = permissions::Options::from_settings(settings) else {
        return off(findings, settings.development);
    };
    let options = fga::Options {
        url: options.url,
        timeout: options.timeout,
        connections: 1,
    };
    let made =
        Outbound::from_settings(settings).and_then(|outbound| Client::new(&outbound, &options));
    let client = match made {
        Ok(client) => client.until(Instant::now() + PATIENCE),
        Err(error) => return findings.fault(Code::Openfga, reason(&error)),
    };
    let url = &options.url;
    match client.is_serving() {
        Ok(true) => findings.ok(Code::Openfga, format!("{url} serves.")),
        Ok(false) => {
            let sentence = format!(
                "{url} does not serve: its database is unreachable or not \
                                    migrated."
            );
            return findings.fault(Code::Openfga, sentence);
        }
        Err(failure) => {
            return findings.fault(Code::Openfga, format!("{url} does not answer: {failure}"));
        }
    }
    asked_of(
        findings,
        Code::AuthorizationStore,
        stores(findings, settings, &client),
    );
}

fn off(findings: &Findings, development: bool) {
    let sentence = "Authorization is off: whoever holds a token may do anything in its tenant.";
    match development {
        true => findings.skipped(Code::Openfga, sentence),
        false => findings.warning(Code::Openfga, sentence),
    }
    findings.skipped(Code::AuthorizationStore, "Authorization is off.");
}

fn stores(findings: &Findings, settings: &Settings, client: &Client) -> Result<()> {
    let mut database = connect(store::Options::from_settings(settings))?;
    if !store::migrations::is_current(&mut database)? {
        findings.skipped(Code::AuthorizationStore, "Not checked: first see schema.");
        return Ok(());
    }
    let tenant_stores = store::health::tenant_stores(&mut database)?;
    let storeless = store::health::storeless(&mut database)?;
    if storeless > 0 {
        let sentence = format!("{storeless} tenants have no store; a server makes them.");
        findings.warning(Code::AuthorizationStore, sentence);
    }
    let model = Model::own();
    let mut right = 0;
    for (tenant_id, tenant_store) in &tenant_stores {
        let state = match health::store(client, &model, *tenant_id, tenant_store) {
            Ok(state) => state,
            Err(failure) => {
                findings.fault(Code::AuthorizationStore, failure.to_string());
                return Ok(());
            }
        };
        let of = format!("The store of tenant {tenant_id}");
        match state {
            State::Right => right += 1,
            State::Older(version) => findings.warning(
                Code::AuthorizationStore,
                format!("{of} has version {version} of the model; the next start upgrades it."),
            ),
            State::Newer(version) => findings.warning(
                Code::AuthorizationStore,
                format!(
                    "{of} has version {version} of the model, which is newer than this program."
                ),
            ),
            state => findings.fault(Code::AuthorizationStore, format!("{of} {}.", ill(&state))),
        }
    }
    if right == tenant_stores.len() && storeless == 0 {
        let version = model.version;
        let sentence = format!("{right} stores are there, with version {version} of the model.");
        findings.ok(Code::AuthorizationStore, sentence);
    }
    Ok(())
}

fn ill(state: &State) -> String {
    match state {
        State::NoStore => "is not there".to_owned(),
        State::NoModel => "has lost its model".to_owned(),
        State::Altered => "has another model of this program's version".to_owned(),
        State::Several(count) => format!("is there {count} times"),
        State::Right | State::Older(_) | State::Newer(_) => "is there".to_owned(),
    }
}

/// Asks its own database, and its package.
pub(super) fn of_database(findings: &Findings, settings: &Settings) {
    if settings.authorization_url.is_none() {
        for code in OF_DATABASE {
            findings.skipped(*code, "Authorization is off.");
        }
        return;
    }
    version(findings);
    let Some(url) = settings.authorization_database.clone() else {
        let sentence = "SVC_AUTHZ_DATABASE_URL is not set, so OpenFGA's database cannot be asked.";
        findings.skipped(Code::OpenfgaSchema, sentence);
        findings.skipped(Code::OpenfgaIndexes, sentence);
        return;
    };
    let own = store::Options::from_settings(settings);
    let mut client = match connect(store::Options { url, ..own }) {
        Ok(client) => client,
        Err(error) => {
            let why = reason(&error).replace("SVC_DATABASE_URL", "SVC_AUTHZ_DATABASE_URL");
            return findings.fault(Code::OpenfgaSchema, format!("OpenFGA's database: {why}"));
        }
    };
    asked_of(findings, Code::OpenfgaSchema, schema(findings, &mut client));
    asked_of(
        findings,
        Code::OpenfgaIndexes,
        indexes(findings, &mut client),
    );
}

fn version(findings: &Findings) {
    let companion = Path::new(COMPANION);
    let asked = companion.exists().then(|| {
        Command::new(companion)
            .arg("version")
            .stdin(Stdio::null())
            .output()
    });
    let said = match asked {
        Some(Ok(output)) => [output.stdout, output.stderr].concat(),
        _ => Vec::new(),
    };
    match said_version(&String::from_utf8_lossy(&said)) {
        Some(version) if version < WANTED => findings.warning(
            Code::OpenfgaVersion,
            format!("The companion package's OpenFGA is {version}."),
        ),
        Some(version) => findings.ok(
            Code::OpenfgaVersion,
            format!("The companion package's OpenFGA is {version}."),
        ),
        None => findings.skipped(
            Code::OpenfgaVersion,
            "OpenFGA tells its version to no client; see openfga-schema.",
        ),
    }
}

/// The version in what `openfga version` prints, if the build has one.
fn said_version(text: &str) -> Option<semver::Version> {
    let quoted = text.split('`').nth(1)?;
    semver::Version::parse(quoted.trim_start_matches('v')).ok()
}

fn schema(findings: &Findings, client: &mut postgres::Client) -> Result<()> {
    let revision = store::backups::openfga_version(client)?.unwrap_or(0);
    let sentence = format!("OpenFGA's database has revision {revision}");
    match revision {
        REVISION.. => findings.ok(
            Code::OpenfgaSchema,
            format!("{sentence}, as 1.22 wants it."),
        ),
        OLDEST_REVISION.. => findings.warning(
            Code::OpenfgaSchema,
            format!("{sentence}; the migration of 1.22 ({REVISION}) was not run."),
        ),
        _ => findings.fault(
            Code::OpenfgaSchema,
            format!("{sentence}, and OpenFGA needs {OLDEST_REVISION} to serve."),
        ),
    }
    Ok(())
}

fn indexes(findings: &Findings, client: &mut postgres::Client) -> Result<()> {
    let invalid = store::health::invalid_indexes(client)?;
    for index in &invalid {
        let sentence = format!("The index {index} in OpenFGA's database is invalid.");
        let remedy = format!("As its owner: reindex index concurrently {index};");
        findings.remedied(Code::OpenfgaIndexes, Level::Fault, sentence, remedy);
    }
    let revision = store::backups::openfga_version(client)?.unwrap_or(0);
    let is_missing = revision >= REVISION && !store::health::has_index(client, USER_INDEX)?;
    if is_missing {
        let sentence = format!("The index {USER_INDEX} in OpenFGA's database is missing.");
        let remedy = "As its owner, make it as docs/openfga.md says.".to_owned();
        findings.remedied(Code::OpenfgaIndexes, Level::Fault, sentence, remedy);
    }
    if invalid.is_empty() && !is_missing {
        findings.ok(Code::OpenfgaIndexes, "Every index is there and valid.");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_where_the_build_was_told_one() {
        let line = |version: &str| {
            format!(
                "2026/11/21 17:31:54 OpenFGA version `{version}` build from `none` on `unknown`"
            )
        };
        assert_eq!(
            said_version(&line("1.22.1")),
            Some(semver::Version::new(1, 22, 1))
        );
        assert_eq!(
            said_version(&line("v1.9.0")),
            Some(semver::Version::new(1, 9, 0))
        );
        assert_eq!(said_version(&line("dev")), None);
        assert_eq!(said_version(""), None);
    }
}
