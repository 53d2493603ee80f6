//! Creates roles and databases over the local socket, as PostgreSQL's superuser.
//!
//! PostgreSQL identifies who connects over its socket by the process's user (peer authentication).
//! So this program runs itself again as that user, reads the result from it, and needs no password.
//! It finds every obstacle before it creates anything.

use super::ledger::{Ledger, State, Step};
use crate::cli::account::{self, Account};
use crate::cli::{Failure, Outcome, deployment, reason, terminal};
use crate::store::provision;
use postgres::Client;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use uuid::Uuid;

/// The oldest PostgreSQL supported, as `server_version_num`.
const OLDEST_SERVER: i32 = 140_000;
/// The longest request, in bytes.
const REQUEST_MAX_BYTES: u64 = 64 * 1024;

/// A role and the database that it owns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Owned {
    pub(super) role: String,
    pub(super) database: String,
}

/// The roles and databases that there should be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) socket: PathBuf,
    pub(super) port: u16,
    pub(super) superuser: String,
    pub(super) dry_run: bool,
    pub(super) owned: Vec<Owned>,
    /// A role that may read all of PostgreSQL's settings.
    pub(super) informed: Option<String>,
    /// A role that gets the privileges of another in that one's database.
    pub(super) admitted: Option<(String, Owned)>,
}

impl Request {
    /// Advice if PostgreSQL is not on this host.
    fn elsewhere(&self) -> String {
        let of_openfga = |owned: &Owned| owned.role == deployment::OPENFGA_USER;
        match self.owned.iter().all(of_openfga) {
            true => format!(
                "It is needed only for OpenFGA's database: set OPENFGA_DATASTORE_URI in {} to where \
                 that is, or skip OpenFGA with --no-openfga.",
                deployment::OPENFGA_ENV_FILE
            ),
            false => {
                "Or create role and database where it is, and set SVC_DATABASE_URL.".to_owned()
            }
        }
    }
}

/// Content of a database that belongs together with files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Holds {
    /// Sealed values, which only their keys open.
    pub(super) sealed: u64,
    pub(super) tenants: u64,
    /// The first tenants.
    pub(super) tenant_ids: Vec<Uuid>,
}

/// PostgreSQL's own role for this.
const SETTINGS_READERS: &str = "pg_read_all_settings";

/// Tenants that are listed, at most.
const NAMED: usize = 10;

#[derive(Debug, Serialize, Deserialize)]
enum Task {
    Make(Request),
    /// What a database of the request holds; nothing of the request is created.
    LookInto(Request, String),
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Done(Vec<Step>),
    Holds(Holds),
    Refused(String),
}

/// Creates what is missing, in a process of the superuser.
///
/// # Errors
/// PostgreSQL cannot be used as its superuser, or something that exists is an obstacle.
pub(super) fn make(ledger: &mut Ledger, request: &Request) -> Outcome {
    match ask(request, &Task::Make(request.clone()))? {
        Answer::Done(steps) => ledger.steps.extend(steps),
        answer => return Err(answer.failure()),
    }
    Ok(())
}

/// What a database of the request holds, if it exists.
///
/// # Errors
/// As for [`make`].
pub(super) fn look_into(request: &Request, database: &str) -> Outcome<Holds> {
    let task = Task::LookInto(request.clone(), database.to_owned());
    match ask(request, &task)? {
        Answer::Holds(holds) => Ok(holds),
        answer => Err(answer.failure()),
    }
}

impl Answer {
    fn failure(self) -> Failure {
        match self {
            Self::Refused(why) => Failure::new(why),
            Self::Done(_) | Self::Holds(_) => Failure::new(
                "The part of setup that runs as the superuser gave a malformed answer.",
            ),
        }
    }
}

fn ask(request: &Request, task: &Task) -> Outcome<Answer> {
    let mut child = superuser(request)?
        .args(["setup", "--as-superuser"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let text = serde_json::to_vec(task).map_err(|error| Failure::new(error.to_string()))?;
    // Closes the pipe at the end of this statement, which ends the request.
    let asked = child.stdin.take().map(|mut stdin| stdin.write_all(&text));
    let output = child.wait_with_output()?;
    asked.transpose()?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        Failure::new(format!(
            "The part of setup that runs as {} gave no answer ({}).",
            request.superuser, output.status
        ))
    })
}

fn superuser(request: &Request) -> Outcome<std::process::Command> {
    let name = &request.superuser;
    if !account::is_root() {
        return Ok(account::this_program());
    }
    match Account::find(name)? {
        Some(account) => Ok(account.this_program()),
        None => Err(Failure::new(format!(
            "There is no user {name} on this host: install PostgreSQL here (apt-get install \
             postgresql), or name its superuser with --database-superuser. {}",
            request.elsewhere()
        ))),
    }
}

/// The same in this process, with the request from standard input.
///
/// # Errors
/// stdin or stdout fails.
pub(super) fn as_superuser() -> Outcome {
    let mut text = Vec::new();
    std::io::stdin()
        .take(REQUEST_MAX_BYTES)
        .read_to_end(&mut text)?;
    let task = serde_json::from_slice(&text)
        .map_err(|_| Failure::usage("--as-superuser is for setup itself."))?;
    let answer = match task {
        Task::Make(request) => fulfil(&request).map(Answer::Done),
        Task::LookInto(request, database) => holds(&request, &database).map(Answer::Holds),
    };
    terminal::say_json(&answer.unwrap_or_else(|failure| Answer::Refused(failure.message)))
}

fn connect(request: &Request, database: &str) -> Outcome<Client> {
    let client = provision::connect(&request.socket, request.port, &request.superuser, database);
    client.map_err(|error| Failure::new(format!("{} {}", error.message(), request.elsewhere())))
}

/// The database that every cluster has.
const MAINTENANCE: &str = "postgres";

fn holds(request: &Request, database: &str) -> Outcome<Holds> {
    let refused = |error| Failure::new(format!("The database {database}: {}", reason(&error)));
    let mut client = connect(request, MAINTENANCE)?;
    refuse(&mut client, request)?;
    if provision::database(&mut client, database)?.is_none() {
        return Ok(Holds::default());
    }
    let mut client = connect(request, database)?;
    let sealed = provision::column(&mut client, "secret_versions", "version", 0);
    let tenants = provision::column(&mut client, "tenants", "tenant_id", NAMED);
    let tenants = tenants.map_err(refused)?;
    let ids = tenants.first.iter().map(|id| Uuid::parse_str(id));
    Ok(Holds {
        sealed: sealed.map_err(refused)?.rows,
        tenants: tenants.rows,
        tenant_ids: ids.filter_map(Result::ok).collect(),
    })
}

fn fulfil(request: &Request) -> Outcome<Vec<Step>> {
    let refused = |error| Failure::new(reason(&error));
    let client = &mut connect(request, MAINTENANCE)?;
    refuse(client, request)?;
    let mut ledger = Ledger {
        dry_run: request.dry_run,
        ..Ledger::default()
    };
    for owned in &request.owned {
        make_role(client, &mut ledger, &owned.role).map_err(refused)?;
        make_database(client, &mut ledger, owned).map_err(refused)?;
    }
    if let Some(role) = &request.informed {
        inform(client, &mut ledger, role, &request.superuser).map_err(refused)?;
    }
    if let Some((role, owned)) = &request.admitted {
        admit(client, &mut ledger, role, owned).map_err(refused)?;
    }
    Ok(ledger.steps)
}

/// Finds obstacles.
fn refuse(client: &mut Client, request: &Request) -> Outcome {
    let server = provision::server(client)?;
    let refused = |why: String| Err(Failure::new(why));
    if server.number < OLDEST_SERVER {
        return refused(format!(
            "PostgreSQL {} is too old: version 14 or later is needed.",
            server.version
        ));
    }
    if !server.may_make {
        return refused(format!(
            "The role {} may not create roles and databases: name PostgreSQL's superuser with \
             --database-superuser.",
            request.superuser
        ));
    }
    for Owned { role, database } in &request.owned {
        let Some(standing) = provision::database(client, database)? else {
            continue;
        };
        if standing.owner != *role {
            return refused(format!(
                "The database {database} belongs to the role {} and not to {role}: take another \
                 name with --database, or give it over with: alter database \"{database}\" owner \
                 to \"{role}\".",
                standing.owner
            ));
        }
        if standing.encoding != "UTF8" {
            return refused(format!(
                "The database {database} has the encoding {} and not UTF8: take another name with \
                 --database.",
                standing.encoding
            ));
        }
    }
    Ok(())
}

fn make_role(client: &mut Client, ledger: &mut Ledger, name: &str) -> crate::error::Result<()> {
    let what = format!("role {name}");
    match provision::role(client, name)? {
        Some(role) if role.can_login => ledger.enter(State::Kept, what, None),
        Some(_) => {
            if !ledger.dry_run {
                provision::allow_login(client, name)?;
            }
            ledger.enter(State::Changed, what, Some("it may log in"));
        }
        None => {
            if !ledger.dry_run {
                provision::create_role(client, name)?;
            }
            ledger.enter(State::Made, what, Some("without a password"));
        }
    }
    Ok(())
}

fn make_database(
    client: &mut Client,
    ledger: &mut Ledger,
    owned: &Owned,
) -> crate::error::Result<()> {
    let what = format!("database {}", owned.database);
    if provision::database(client, &owned.database)?.is_some() {
        ledger.enter(State::Kept, what, None);
        return Ok(());
    }
    if !ledger.dry_run {
        provision::create_database(client, &owned.database, &owned.role)?;
    }
    let note = format!("UTF8, only for the role {}", owned.role);
    ledger.enter(State::Made, what, Some(&note));
    Ok(())
}

/// PostgreSQL tells the directory of its data only to a member of this role. Setup also works as a role that creates
/// roles and cannot grant this one: then the doctor warns.
fn inform(
    client: &mut Client,
    ledger: &mut Ledger,
    role: &str,
    superuser: &str,
) -> crate::error::Result<()> {
    let what = format!("rights of {SETTINGS_READERS} for {role}");
    // In a dry run the role may not exist yet.
    let stands = provision::role(client, role)?.is_some();
    if stands && provision::is_member(client, role, SETTINGS_READERS)? {
        ledger.enter(State::Kept, what, None);
        return Ok(());
    }
    if !provision::role(client, superuser)?.is_some_and(|role| role.is_superuser) {
        let note = "not granted: only a superuser can";
        ledger.enter(State::Kept, what, Some(note));
        return Ok(());
    }
    if !ledger.dry_run {
        provision::make_member(client, role, SETTINGS_READERS)?;
    }
    let note = "for the doctor, which looks at the database's disk";
    ledger.enter(State::Made, what, Some(note));
    Ok(())
}

fn admit(
    client: &mut Client,
    ledger: &mut Ledger,
    role: &str,
    of: &Owned,
) -> crate::error::Result<()> {
    let what = format!("rights of {} for {role}", of.role);
    // In a dry run neither may exist yet.
    let stand =
        provision::role(client, role)?.is_some() && provision::role(client, &of.role)?.is_some();
    if stand && provision::is_admitted(client, role, &of.database, &of.role)? {
        ledger.enter(State::Kept, what, None);
        return Ok(());
    }
    if !ledger.dry_run {
        provision::admit(client, role, &of.database, &of.role)?;
    }
    let note = format!("in {}, for backups and the doctor", of.database);
    ledger.enter(State::Made, what, Some(&note));
    Ok(())
}
