//! The schema: a baseline, forward-only migrations of its tables, and then the set of functions; checked before anything is
//! applied.
//!
//! Each step is one transaction under an advisory lock, so that replicas that start at once apply each once, and one that
//! fails leaves nothing behind. The schema names the oldest binary that may run on it: an older one refuses to start and
//! says so. How functions are replaced is in [`super::functions`].

use super::connect::Manager;
use super::functions;
use super::row::Columns;
use crate::error::{Code, Error, Result};
use crate::sql;
use postgres::{GenericClient, Row, Transaction};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The oldest version of this program that understands the schema made by [`all`].
const OLDEST_BINARY: &str = "0.2.0";

/// The oldest PostgreSQL that is served, as `server_version_num`.
const OLDEST_SERVER: i32 = 140_000;

/// How long a replica waits for another one's migration.
const LOCK_PATIENCE: Duration = Duration::from_secs(120);

/// Any number, the same for every version of this program.
const LOCK: i64 = 0x6167_656e_745f_7274;

/// A migration waits for no lock for long, may itself take its time, and does not report what
/// stands already.
const SETTINGS: &str = "set local lock_timeout = '5s'; set local statement_timeout = 0; set local client_min_messages = warning";

/// A change of the schema's tables.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its name: never changed once released.
    pub name: &'static str,
    sql: &'static str,
}

/// What stands between a database and this program.
#[derive(Debug, Default)]
pub struct Plan {
    /// What would be applied, in order.
    pub pending: Vec<&'static str>,
    /// Why the database is not served: sentences that say what to do.
    pub refusals: Vec<String>,
    /// One of them is that it is read-only, which may pass.
    read_only: bool,
    /// To be said if something is pending.
    rights: Option<String>,
}

/// What a database says of its schema.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The migrations that were applied, by name.
    pub applied: Vec<String>,
    /// The oldest version of this program that may run on it; none before the first migration.
    pub oldest_binary: Option<String>,
}

/// The name of the baseline, which every database has that a release made.
const BASELINE: &str = "0001_baseline";

/// The name, among what is pending or was applied, of the set of functions.
pub const FUNCTIONS: &str = "functions";

macro_rules! changes {
    ($($name:literal,)*) => {
        &[
            (BASELINE, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/schema/0001_baseline.sql"))),
            $((
                $name,
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/migrations/", $name, ".sql")),
            )),*
        ]
    };
}

/// The migrations of this program, in order: the baseline, then changes of tables.
const OWN: &[(&str, &str)] = changes![
    "0002_context_window",
    "0003_erasure",
    "0004_tool_secrets",
    "0005_run_labels",
    "0006_archived_at",
    "0007_flow_states",
    "0008_no_run_after_erasure",
    "0009_approvals",
    "0010_output_schema",
    "0011_failures_in_webhooks",
    "0012_flows",
    "0013_run_retries",
    "0014_run_hold",
    "0015_tool_approvals",
    "0016_approval_log_positions",
    "0017_flow_errors",
    "0018_agents_and_flows_as_tools",
    "0019_child_runs",
    "0020_start_options",
    "0021_sessions",
    "0022_operator_codes",
    "0023_sign_in",
    "0024_run_lists",
    "0025_token_uses",
    "0026_session_limits",
    "0027_credential_kinds",
    "0028_tool_dry_runs",
    "0029_missing_groups",
    "0030_groups_faults",
    "0031_approval_lists",
    "0032_approval_assignees",
    "0033_approval_forms",
    "0034_run_deaths",
    "0035_failed_runs",
    "0036_failure_summaries",
    "0037_request_ids",
    "0038_model_provider_options",
    "0039_run_roots",
    "0040_usage",
    "0041_commit_parts",
    "0042_overrides",
    "0043_run_reasoning",
    "0044_secret_uses",
    "0045_environment_variables",
    "0046_guardrails",
];

/// What migrating records about itself: run before every step.
const RECORDS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/sql/schema/0000_records.sql"
));

/// Every migration, in order.
pub fn all() -> Vec<Migration> {
    OWN.iter()
        .chain(jobs::MIGRATIONS)
        .map(|(name, sql)| Migration { name, sql })
        .collect()
}

/// Looks at the database and says what [`migrate`] would do, changing nothing.
pub fn plan(client: &mut impl GenericClient) -> Result<Plan> {
    let mut plan = look(client)?;
    if is_in_restore(client)? {
        plan.refusals.push(
            "A restore of this database was begun and has not ended. If none is under way, run it again: agent-runtime restore DIR --replace."
                .to_owned(),
        );
    }
    Ok(plan)
}

/// Whether a restore was begun and has not ended.
pub fn is_in_restore(client: &mut impl GenericClient) -> Result<bool> {
    client.query_one(sql!("schema/is_in_restore"), &[])?.only()
}

/// As [`plan`], of a database that may be in the middle of its restore.
fn look(client: &mut impl GenericClient) -> Result<Plan> {
    let mut plan = Plan::default();
    refuse_server(client, &mut plan)?;
    // Asked first: another replica that migrates just now records before it makes these.
    let occupied: bool = client.query_one(sql!("schema/is_occupied"), &[])?.only()?;
    let applied = applied(client)?;
    if occupied && applied.is_none() {
        plan.refusals.push(
            "The database has tables of these names that no release of this program made. Use an empty database; in development, `agent-runtime dev` makes one if its data directory is removed."
                .to_owned(),
        );
    }
    if applied.is_some() {
        refuse_old_binary(client, &mut plan)?;
    }
    let applied = applied.unwrap_or_default();
    if let Some(reason) = reason_to_refuse_older(applied.keys()) {
        plan.refusals.push(format!("The database {reason}"));
        return Ok(plan);
    }
    for migration in all() {
        match applied.get(migration.name) {
            None => plan.pending.push(migration.name),
            Some(digest) if *digest == digest_of(&migration) => {}
            Some(_) => plan.refusals.push(format!(
                "Migration {} was applied from another text than this program's. Use the program that made this database, or restore a backup.",
                migration.name
            )),
        }
    }
    if applied.is_empty() || functions::is_pending(client)? {
        plan.pending.push(FUNCTIONS);
    }
    if !plan.pending.is_empty() {
        plan.refusals.extend(plan.rights.take());
    }
    Ok(plan)
}

/// Why the schema is not upgraded that these migrations made, if it is one from before the first release.
pub fn reason_to_refuse_older<'a>(
    applied: impl IntoIterator<Item = &'a String>,
) -> Option<&'static str> {
    let mut applied = applied.into_iter().peekable();
    let is_older = applied.peek().is_some() && applied.all(|name| name != BASELINE);
    is_older.then_some(
        "was made by a build from before the first release, whose schema no release upgrades. Use an empty database; in development, `agent-runtime dev` makes one if its data directory is removed.",
    )
}

/// The digest of each migration that was applied, by name; none where nothing is recorded.
fn applied(client: &mut impl GenericClient) -> Result<Option<BTreeMap<String, Vec<u8>>>> {
    let recorded: bool = client.query_one(sql!("schema/is_recorded"), &[])?.only()?;
    if !recorded {
        return Ok(None);
    }
    let rows = client.query(sql!("schema/applied"), &[])?;
    let pair = |row: &Row| Ok((row.column("name")?, row.column("digest")?));
    rows.iter()
        .map(pair)
        .collect::<Result<BTreeMap<_, _>>>()
        .map(Some)
}

/// What the database says of its schema, whichever program made it.
pub fn recorded(client: &mut impl GenericClient) -> Result<Recorded> {
    let Some(applied) = applied(client)? else {
        return Ok(Recorded::default());
    };
    Ok(Recorded {
        applied: applied.into_keys().collect(),
        oldest_binary: oldest_binary(client)?,
    })
}

fn oldest_binary(client: &mut impl GenericClient) -> Result<Option<String>> {
    let row = client.query_opt(sql!("schema/oldest_binary"), &[])?;
    row.as_ref().map(Columns::only).transpose()
}

/// The server and the database, as our role finds them.
#[derive(Debug)]
pub struct Server {
    number: i32,
    /// The server's version, for people.
    pub version: String,
    is_read_only: bool,
    encoding: String,
    may_create: bool,
    /// Who we are there.
    pub role: String,
    /// The database's name.
    pub database: String,
}

impl Server {
    /// Why its version is not served.
    pub fn version_refusal(&self) -> Option<String> {
        refusal_of_server(self.number, &self.version)
    }

    /// Why nothing can be written.
    pub fn read_only_refusal(&self) -> Option<String> {
        let refusal = "The database is read-only. Connect to the primary server.";
        self.is_read_only.then(|| refusal.to_owned())
    }

    /// Why its encoding is not served.
    pub fn encoding_refusal(&self) -> Option<String> {
        (self.encoding != "UTF8").then(|| {
            format!(
                "The database's encoding is {}. Create it with encoding UTF8.",
                self.encoding
            )
        })
    }

    /// Why our role cannot bring the schema up to date.
    pub fn rights_refusal(&self) -> Option<String> {
        (!self.may_create).then(|| {
            format!(
                "Role {0} may not create tables in database {1}. As its owner run: grant create on schema public to {0};",
                self.role, self.database
            )
        })
    }
}

/// Asks the server what it is.
pub fn server(client: &mut impl GenericClient) -> Result<Server> {
    let row = client.query_one(sql!("schema/server"), &[])?;
    Ok(Server {
        number: row.column("number")?,
        version: row.column("version")?,
        is_read_only: row.column("is_read_only")?,
        encoding: row.column("encoding")?,
        may_create: row.column::<Option<bool>>("may_create")? == Some(true),
        role: row.column("role")?,
        database: row.column("database")?,
    })
}

fn refuse_server(client: &mut impl GenericClient, plan: &mut Plan) -> Result<()> {
    let server = server(client)?;
    let refusals = [
        server.version_refusal(),
        server.read_only_refusal(),
        server.encoding_refusal(),
    ];
    plan.refusals.extend(refusals.into_iter().flatten());
    plan.read_only = server.is_read_only;
    plan.rights = server.rights_refusal();
    Ok(())
}

fn refusal_of_server(number: i32, version: &str) -> Option<String> {
    (number < OLDEST_SERVER)
        .then(|| format!("PostgreSQL {version} is too old: version 14 or later is needed."))
}

fn refuse_old_binary(client: &mut impl GenericClient, plan: &mut Plan) -> Result<()> {
    let Some(oldest) = oldest_binary(client)? else {
        return Ok(());
    };
    if let Some(refusal) = refusal_of_older(&oldest)? {
        plan.refusals.push(refusal);
    }
    Ok(())
}

/// Why a schema that serves this version and later ones is not for this program, if it is not.
///
/// # Errors
/// It is no version.
pub fn refusal_of_older(oldest: &str) -> Result<Option<String>> {
    let parsed = |text: &str| semver::Version::parse(text).map_err(Error::internal);
    let own = env!("CARGO_PKG_VERSION");
    let is_older = parsed(own)? < parsed(oldest)?;
    Ok(is_older.then(|| {
        format!("The database was upgraded for version {oldest} or later; this is {own}. Install {oldest} or later.")
    }))
}

/// Whether the schema is exactly this program's.
pub fn is_current(client: &mut impl GenericClient) -> Result<bool> {
    Ok(plan(client)?.pending.is_empty())
}

/// Applies what is pending and returns the names of what this call applied.
///
/// # Errors
/// `conflict` with every sentence of what [`plan`] refuses; `database-unavailable` when the database
/// cannot be reached or is read-only, or another program holds the lock for longer than two minutes.
pub fn migrate(manager: &Manager, log: &slog::Logger) -> Result<Vec<&'static str>> {
    migrate_unless(manager, log, || false)
}

/// As [`migrate`], but waits for another program only until it is given up.
///
/// # Errors
/// Those of [`migrate`]; `shutting-down`.
pub fn migrate_unless(
    manager: &Manager,
    log: &slog::Logger,
    given_up: impl Fn() -> bool,
) -> Result<Vec<&'static str>> {
    let mut client = manager.client()?;
    let first = plan(&mut client)?;
    apply_all(&mut client, &first, log, given_up)
}

/// As [`migrate`], in the middle of a restore.
///
/// # Errors
/// Those of [`migrate`].
pub fn migrate_restored(manager: &Manager, log: &slog::Logger) -> Result<Vec<&'static str>> {
    let mut client = manager.client()?;
    let first = look(&mut client)?;
    apply_all(&mut client, &first, log, || false)
}

fn apply_all(
    client: &mut postgres::Client,
    first: &Plan,
    log: &slog::Logger,
    given_up: impl Fn() -> bool,
) -> Result<Vec<&'static str>> {
    refuse(first)?;
    if first.pending.is_empty() {
        return Ok(Vec::new());
    }
    let mut applied = Vec::new();
    let deadline = Instant::now() + LOCK_PATIENCE;
    let steps = all().into_iter().map(Step::Migration);
    for step in steps.chain([Step::Functions]) {
        if !first.pending.contains(&step.name()) {
            continue;
        }
        while !apply(client, &step, &mut applied)? {
            if given_up() {
                return Err(Error::new(Code::ShuttingDown, "The server is stopping."));
            }
            if Instant::now() > deadline {
                return Err(Error::database_unavailable(
                    "another program has been migrating this database for two minutes",
                ));
            }
            slog::info!(log, "Waiting for another replica's migration"; "migration" => step.name());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    for name in &applied {
        slog::info!(log, "Migration applied"; "migration" => name);
    }
    Ok(applied)
}

fn refuse(plan: &Plan) -> Result<()> {
    if plan.refusals.is_empty() {
        return Ok(());
    }
    let code = match plan.read_only {
        true => Code::DatabaseUnavailable,
        false => Code::Conflict,
    };
    Err(Error::new(code, plan.refusals.join(" ")))
}

/// What is applied in one transaction.
enum Step {
    Migration(Migration),
    Functions,
}

impl Step {
    fn name(&self) -> &'static str {
        match self {
            Self::Migration(migration) => migration.name,
            Self::Functions => FUNCTIONS,
        }
    }

    /// False: another replica was first.
    fn run(&self, tx: &mut Transaction) -> Result<bool> {
        match self {
            Self::Migration(migration) => {
                if tx
                    .query_opt(sql!("schema/is_applied"), &[&migration.name])?
                    .is_some()
                {
                    return Ok(false);
                }
                tx.batch_execute(migration.sql)?;
                let digest = digest_of(migration);
                tx.execute(sql!("schema/record"), &[&migration.name, &digest])?;
                tx.execute(sql!("schema/require_binary"), &[&OLDEST_BINARY])?;
            }
            Self::Functions => {
                if !functions::is_pending(tx)? {
                    return Ok(false);
                }
                functions::replace(tx)?;
                // Rows of this month may come before a server's first look after its partitions.
                tx.execute(sql!("schema/attach_partitions"), &[])?;
            }
        }
        Ok(true)
    }
}

/// False while another replica holds the lock.
fn apply(
    client: &mut postgres::Client,
    step: &Step,
    applied: &mut Vec<&'static str>,
) -> Result<bool> {
    let mut tx = client.transaction()?;
    let locked: bool = tx.query_one(sql!("schema/lock"), &[&LOCK])?.only()?;
    if !locked {
        return Ok(false);
    }
    tx.batch_execute(SETTINGS)?;
    tx.batch_execute(RECORDS)?;
    if step.run(&mut tx)? {
        applied.push(step.name());
    }
    tx.commit()?;
    Ok(true)
}

fn digest_of(migration: &Migration) -> Vec<u8> {
    Sha256::digest(migration.sql.as_bytes()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_before_14_is_refused_by_its_version() {
        let said = refusal_of_server(130_022, "13.22 (Debian 13.22-1)");
        assert_eq!(
            said.as_deref(),
            Some("PostgreSQL 13.22 (Debian 13.22-1) is too old: version 14 or later is needed.")
        );
        assert_eq!(refusal_of_server(140_000, "14.0"), None);
    }

    #[test]
    fn a_schema_says_which_program_is_too_old_for_it() {
        let own = env!("CARGO_PKG_VERSION");
        assert_eq!(refusal_of_older(own).unwrap(), None);
        assert_eq!(refusal_of_older("0.0.1").unwrap(), None);
        let said = refusal_of_older("99.1.0").unwrap().unwrap();
        assert!(said.ends_with("Install 99.1.0 or later."), "{said}");
        assert!(refusal_of_older("new").is_err());
    }

    #[test]
    fn a_schema_without_the_baseline_is_older_than_any_release() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            reason_to_refuse_older(&names).is_some()
        };
        assert!(of(&["0001_tenants", "0002_agents"]));
        assert!(!of(&[]));
        assert!(!of(&[BASELINE, "0002_of_a_later_version"]));
    }
}
