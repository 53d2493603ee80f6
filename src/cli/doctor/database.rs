//! The runtime's database: whether it answers, what we may there, how much room there is.

use super::code::Code;
use super::files;
use super::finding::{Findings, Level};
use super::secret_uses;
use super::tool_secrets;
use crate::cli::reason;
use crate::config::{Secrets, Settings};
use crate::error::Result;
use crate::ids::Clock;
use crate::store::connect::Manager;
use crate::store::{self, health, migrations, runs};
use crate::uri;
use postgres::Client;
use std::path::Path;
use std::time::{Duration, Instant};
use time::format_description::well_known::Rfc3339;

pub(super) const CODES: &[Code] = &[
    Code::Database,
    Code::DatabaseVersion,
    Code::DatabaseEncoding,
    Code::DatabaseWritable,
    Code::DatabaseRights,
    Code::Schema,
    Code::Tenant,
    Code::Connections,
    Code::Clock,
    Code::DatabaseDisk,
    Code::Permissions,
    Code::ToolSecrets,
    Code::SecretUses,
    Code::Runs,
    Code::Approvals,
    Code::Webhooks,
    Code::PayloadRetention,
];

/// For one question.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections of a server beside its pool: two of the audit, two that keep leases, one that migrates, one that sees whether the
/// database answers.
const BESIDE_POOL: i64 = 6;
/// Those to each host, where several are named: each of a server's two pools asks whether the host is the primary.
const ASKING_HOSTS: i64 = 2;
/// Above this the clocks are doubtful.
const CLOCK_WARNING: time::Duration = time::Duration::seconds(2);
/// Above this they are wrong.
const CLOCK_FAULT: time::Duration = time::Duration::seconds(30);
/// A job that a fault of the service's own put off is due again by then.
const JOB_GRACE: Duration = Duration::from_secs(60);

/// What the checks need.
pub(super) struct Facts {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) replicas: u32,
}

/// A connection for questions to a database.
pub(super) fn connect(options: store::Options) -> Result<Client> {
    Manager::new(&store::Options {
        statement_timeout: STATEMENT_TIMEOUT,
        ..options
    })?
    .client()
}

/// Asks the database, one question after another.
pub(super) fn look(findings: &Findings, facts: &Facts) {
    let connected = connect(store::Options::from_settings(&facts.settings));
    let asked = connected.and_then(|mut client| {
        let server = migrations::server(&mut client)?;
        Ok((client, server))
    });
    let (mut client, server) = match asked {
        Ok(asked) => asked,
        Err(error) => return findings.fault(Code::Database, reason(&error)),
    };
    let who = format!("Database {} answers {}.", server.database, server.role);
    findings.ok(Code::Database, who);
    let version = format!("PostgreSQL {}.", server.version);
    findings.fault_or_ok(Code::DatabaseVersion, server.version_refusal(), version);
    findings.fault_or_ok(Code::DatabaseEncoding, server.encoding_refusal(), "UTF8.");
    findings.fault_or_ok(
        Code::DatabaseWritable,
        server.read_only_refusal(),
        "It takes writes.",
    );
    let client = &mut client;
    asked_of(
        findings,
        Code::DatabaseRights,
        rights(findings, client, &server),
    );
    asked_of(findings, Code::Schema, schema(findings, client, &server));
    asked_of(
        findings,
        Code::Connections,
        connections(findings, client, facts),
    );
    asked_of(findings, Code::Clock, clock(findings, client, &facts.clock));
    let asked = disk(findings, client, &server.role);
    asked_of(findings, Code::DatabaseDisk, asked);
    if !migrations::is_current(client).unwrap_or(false) {
        // There is nothing to count in a schema of another version.
        for code in [
            Code::Tenant,
            Code::Permissions,
            Code::ToolSecrets,
            Code::SecretUses,
            Code::Runs,
            Code::Approvals,
            Code::Webhooks,
            Code::PayloadRetention,
        ] {
            findings.skipped(code, "Not checked: first see schema.");
        }
        return;
    }
    look_at_content(findings, client, facts);
}

/// Asks for what is in the tables.
fn look_at_content(findings: &Findings, client: &mut Client, facts: &Facts) {
    asked_of(findings, Code::Tenant, tenant(findings, client, facts));
    asked_of(
        findings,
        Code::Permissions,
        permissions(findings, client, facts),
    );
    asked_of(
        findings,
        Code::ToolSecrets,
        tool_secrets::look(findings, client, &facts.settings),
    );
    asked_of(
        findings,
        Code::SecretUses,
        secret_uses::look(findings, client, &facts.settings),
    );
    asked_of(findings, Code::Runs, runs_under_way(findings, client));
    let asked = approvals(findings, client, facts);
    asked_of(findings, Code::Approvals, asked);
    asked_of(findings, Code::Webhooks, webhooks(findings, client, facts));
    asked_of(
        findings,
        Code::PayloadRetention,
        payload_retention(findings, client, facts),
    );
}

/// A question that was not answered is its check's fault.
pub(super) fn asked_of(findings: &Findings, code: Code, asked: Result<()>) {
    if let Err(error) = asked {
        findings.fault(code, reason(&error));
    }
}

fn rights(findings: &Findings, client: &mut Client, server: &migrations::Server) -> Result<()> {
    let closed = health::tables_without_rights(client)?;
    let refusal = match (server.rights_refusal(), closed.is_empty()) {
        (Some(refusal), _) => Some(refusal),
        (None, true) => None,
        (None, false) => Some(format!(
            "Role {} may not read and write these tables: {}.",
            server.role,
            closed.join(", ")
        )),
    };
    findings.fault_or_ok(
        Code::DatabaseRights,
        refusal,
        "The role may make tables, and use those there are.",
    );
    Ok(())
}

fn schema(findings: &Findings, client: &mut Client, server: &migrations::Server) -> Result<()> {
    let plan = migrations::plan(client)?;
    let of_server = [
        server.version_refusal(),
        server.encoding_refusal(),
        server.read_only_refusal(),
        server.rights_refusal(),
    ];
    // What is said of the server has codes of its own.
    let is_new = |refusal: &&String| !of_server.iter().flatten().any(|said| said == *refusal);
    let refusals: Vec<&String> = plan.refusals.iter().filter(is_new).collect();
    for refusal in &refusals {
        findings.fault(Code::Schema, refusal.as_str());
    }
    if refusals.is_empty() && !plan.pending.is_empty() {
        let sentence = format!(
            "The next start of a server applies {} migrations: {}.",
            plan.pending.len(),
            plan.pending.join(", ")
        );
        let remedy = "To apply them before: agent-runtime migrate.".to_owned();
        findings.remedied(Code::Schema, Level::Warning, sentence, remedy);
    } else if refusals.is_empty() {
        findings.ok(Code::Schema, "It is this version's.");
    }
    Ok(())
}

/// A start creates the tenant of the settings if it is not there.
fn tenant(findings: &Findings, client: &mut Client, facts: &Facts) -> Result<()> {
    let wanted = facts.settings.tenant.id;
    let (oldest, is_there) = health::tenant(client, wanted)?;
    match (wanted, oldest) {
        (None, _) if facts.settings.development => findings.skipped(
            Code::Tenant,
            "SVC_TENANT_ID is not set: in development each start may have a new tenant.",
        ),
        (None, oldest) => {
            let oldest = oldest.map(|id| format!(" The database's oldest tenant is {id}."));
            let sentence = "SVC_TENANT_ID is not set: each start creates a new tenant.";
            findings.warning(
                Code::Tenant,
                sentence.to_owned() + &oldest.unwrap_or_default(),
            );
        }
        (Some(wanted), _) if is_there => {
            findings.ok(Code::Tenant, format!("Tenant {wanted} is in the database."));
        }
        (Some(wanted), None) => {
            let sentence = format!("There is no tenant yet: the first start creates {wanted}.");
            findings.ok(Code::Tenant, sentence);
        }
        (Some(wanted), Some(oldest)) => findings.fault(
            Code::Tenant,
            format!(
                "SVC_TENANT_ID is {wanted}, which is not in the database: the next start creates it, new and empty. The oldest tenant is {oldest}."
            ),
        ),
    }
    Ok(())
}

fn connections(findings: &Findings, client: &mut Client, facts: &Facts) -> Result<()> {
    let found = health::connections(client)?;
    let replicas = i64::from(facts.replicas);
    let hosts = Manager::new(&store::Options::from_settings(&facts.settings))?.hosts_named();
    let asking = if hosts > 1 { ASKING_HOSTS } else { 0 };
    let pool = i64::from(
        facts
            .settings
            .values
            .number::<u32>("SVC_DATABASE_POOL_SIZE"),
    );
    let needed = replicas * (pool + BESIDE_POOL + asking);
    let others = i64::from(found.open - found.ours);
    let room = i64::from(found.max - found.reserved) - others;
    let room = found.role_max.map_or(room, |most| room.min(most.into()));
    let servers = match replicas {
        1 => "1 replica takes",
        _ => &format!("{replicas} replicas take"),
    };
    let sentence = format!(
        "{servers} up to {needed} connections; {room} of {} are there for them.",
        found.max
    );
    match needed {
        _ if needed > room => findings.fault(Code::Connections, sentence),
        _ if needed * 5 > room * 4 => findings.warning(Code::Connections, sentence),
        _ => findings.ok(Code::Connections, sentence),
    }
    Ok(())
}

fn clock(findings: &Findings, client: &mut Client, clock: &Clock) -> Result<()> {
    let (before, begun) = (clock.now(), Instant::now());
    let there = health::clock(client)?;
    let taken = begun.elapsed();
    // Somewhere within the question's time.
    let apart = (there - (before + taken / 2)).abs();
    let apart = (apart - taken / 2).max(time::Duration::ZERO);
    let mut sentence = format!(
        "This host's clock and the database's are {} ms apart.",
        apart.whole_milliseconds()
    );
    match apart {
        _ if apart > CLOCK_FAULT => findings.fault(Code::Clock, sentence),
        _ if apart > CLOCK_WARNING => findings.warning(Code::Clock, sentence),
        _ => {
            if health::data(client)?.is_local {
                sentence += " The database seems to be on this host, where there is one clock: `timedatectl` says whether it is kept right.";
            }
            findings.ok(Code::Clock, sentence);
        }
    }
    Ok(())
}

/// The directory is not guessed: the usual one may be on another disk.
fn disk(findings: &Findings, client: &mut Client, role: &str) -> Result<()> {
    let data = health::data(client)?;
    match data.directory.as_deref().map(Path::new) {
        _ if !data.is_local => {
            findings.skipped(Code::DatabaseDisk, "The data is on another host.");
        }
        Some(path) => files::disk(findings, Code::DatabaseDisk, path),
        None => {
            let sentence = format!(
                "PostgreSQL does not tell its directory to {role}, so its disk is not looked at."
            );
            let role = role.replace('"', "\"\"");
            let remedy = format!(
                "As PostgreSQL's superuser: grant pg_read_all_settings to \"{role}\". On an installed host `agent-runtime setup` does so."
            );
            findings.remedied(Code::DatabaseDisk, Level::Warning, sentence, remedy);
        }
    }
    Ok(())
}

fn permissions(findings: &Findings, client: &mut Client, facts: &Facts) -> Result<()> {
    if facts.settings.authorization_url.is_none() {
        findings.skipped(Code::Permissions, "Authorization is off.");
        return Ok(());
    }
    match health::untold(client)? {
        0 => findings.ok(
            Code::Permissions,
            "The authorization server has every change.",
        ),
        count => findings.warning(
            Code::Permissions,
            format!("The authorization server does not have the changes of {count} objects yet."),
        ),
    }
    Ok(())
}

fn runs_under_way(findings: &Findings, client: &mut Client) -> Result<()> {
    if runs::is_held(client)? {
        let sentence = "All runs are held: none goes on until they are released.";
        let remedy = "Check what was restored, then run: agent-runtime runs release".to_owned();
        findings.remedied(Code::Runs, Level::Warning, sentence.to_owned(), remedy);
        return Ok(());
    }
    let stranded = health::stranded_runs(client, JOB_GRACE)?;
    let named: Vec<String> = stranded
        .iter()
        .map(|(tenant_id, run_id)| format!("{run_id} of tenant {tenant_id}"))
        .collect();
    let fault = (!named.is_empty())
        .then(|| format!("Nothing will carry these runs on: {}.", named.join(", ")));
    findings.fault_or_ok(
        Code::Runs,
        fault,
        "Every run under way has a job that carries it on.",
    );
    Ok(())
}

fn approvals(findings: &Findings, client: &mut Client, facts: &Facts) -> Result<()> {
    let overdue = health::overdue_approvals(client, JOB_GRACE)?;
    if !overdue.is_empty() {
        let named = overdue.iter();
        let named: Vec<String> = named
            .map(|(tenant_id, id)| format!("{id} of tenant {tenant_id}"))
            .collect();
        let sentence = format!(
            "The time of these approvals is over, and nothing will close them: {}.",
            named.join(", ")
        );
        findings.fault(Code::Approvals, sentence);
        return Ok(());
    }
    let undecidable = match facts.settings.authorization_url {
        // With authorization off whoever holds a token decides.
        None => Vec::new(),
        Some(_) => health::undecidable_approvals(client)?,
    };
    if !undecidable.is_empty() {
        let each = undecidable.iter();
        let each: Vec<String> = each
            .map(|(tenant_id, role, count)| format!("{count} for {role} in tenant {tenant_id}"))
            .collect();
        let sentence = format!(
            "Approvals wait for roles that nobody has who may decide: {}.",
            each.join(", ")
        );
        let remedy = "Register a reviewer who did not start the run: POST /v1/reviewers.";
        findings.remedied(Code::Approvals, Level::Warning, sentence, remedy.to_owned());
        return Ok(());
    }
    let figures = store::approvals::figures(client)?;
    let sentence = match figures.standard + figures.other {
        0 => "No approval waits.".to_owned(),
        count => {
            let oldest = Duration::from_secs_f64(figures.oldest_seconds.max(0.0));
            let hours = oldest.as_secs() / 3600;
            format!("{count} approvals wait, the oldest for {hours} h.")
        }
    };
    findings.ok(Code::Approvals, sentence);
    Ok(())
}

/// What is to be erased may be a day late: a server that was away takes some rounds.
fn payload_retention(findings: &Findings, client: &mut Client, facts: &Facts) -> Result<()> {
    let late = facts.clock.now() - time::Duration::DAY;
    let days = facts
        .settings
        .values
        .maybe_number::<u32>("SVC_PAYLOAD_RETENTION_DAYS");
    let before = days.map(|days| late - time::Duration::days(days.into()));
    let keeps_runs = match before {
        Some(before) => health::has_unerased_run(client, before)?,
        None => false,
    };
    let fault = if health::has_unerased_conversation(client, late)? {
        Some("A conversation that was to be erased more than a day ago is still there.")
    } else {
        keeps_runs.then_some(
            "Runs are kept with what they said more than a day longer than SVC_PAYLOAD_RETENTION_DAYS says.",
        )
    };
    let well = match days {
        Some(days) => format!("What runs said is erased {days} days after their end."),
        None => "What runs said is kept for ever (SVC_PAYLOAD_RETENTION_DAYS).".to_owned(),
    };
    findings.fault_or_ok(Code::PayloadRetention, fault.map(str::to_owned), well);
    Ok(())
}

fn webhooks(findings: &Findings, client: &mut Client, facts: &Facts) -> Result<()> {
    let count = health::webhook_endpoints(client)?;
    match (&facts.settings.secrets, count) {
        (Secrets::Off, 0) => findings.skipped(
            Code::Webhooks,
            "Webhooks need a secrets backend (SVC_SECRETS_BACKEND); there is none.",
        ),
        (Secrets::Off, _) => findings.fault(
            Code::Webhooks,
            format!("{count} endpoints are registered, and no secrets backend signs for them."),
        ),
        (_, _) => {
            let failing = health::failing_webhook_endpoints(client)?;
            if !failing.is_empty() {
                let named: Vec<String> = failing.iter().map(failing_endpoint).collect();
                let sentence = format!(
                    "The newest attempt at these of {count} endpoints failed: {}.",
                    named.join("; ")
                );
                let remedy = "Repair the receivers: `agent-runtime webhooks` shows the newest failure of each, `agent-runtime webhooks deliveries ID` its deliveries.";
                findings.remedied(Code::Webhooks, Level::Warning, sentence, remedy.to_owned());
                return Ok(());
            }
            let settings = &facts.settings;
            let private = match (
                settings.development,
                settings.values.is_given("SVC_WEBHOOK_PRIVATE_NETWORKS"),
            ) {
                (true, _) => "in development they may",
                (false, true) => "they may",
                (false, false) => "they may not",
            };
            findings.ok(
                Code::Webhooks,
                format!("{count} endpoints are registered; {private} be on private networks."),
            );
        }
    }
    Ok(())
}

/// The host alone: the rest of a receiver's URL may contain a secret.
fn failing_endpoint(endpoint: &health::FailingEndpoint) -> String {
    let why = endpoint.last_error.as_deref().unwrap_or("failed");
    let status = endpoint.last_status;
    let status = status.map_or_else(String::new, |status| format!(" {status}"));
    let last = match endpoint.last_delivered_at {
        Some(at) => {
            let at = at.format(&Rfc3339).unwrap_or_default();
            format!("last success at {at}")
        }
        None => "no success yet".to_owned(),
    };
    format!(
        "{} ({}) of tenant {}: {why}{status}, {last}",
        endpoint.endpoint_id,
        uri::host(&endpoint.url),
        endpoint.tenant_id
    )
}
