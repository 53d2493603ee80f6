//! `setup`: creates what an installed service needs before its first start: role and database,
//! keys, settings.
//!
//! Guarantees: it may run again after any end. It keeps what exists and what the operator wrote,
//! and reports each step. It finds every obstacle before it creates anything. It shows no secret,
//! only the name of its file.
//!
//! Not here: installing packages, and PostgreSQL on another host.

mod arguments;
mod databases;
mod keys;
mod ledger;
mod lost;
mod openfga;
mod paths;
mod settings;
mod tenant;

use super::account::{self, Account};
use super::deployment;
use super::private_file::{self, Access};
use super::terminal::{self, Style, printable};
use super::{Failure, Outcome, World};
use crate::config::{self, EnvFile};
use crate::secret::Secret;
use crate::uri::percent_encoded;
pub use arguments::Arguments;
use databases::{Owned, Request};
use ledger::{Ledger, State};
use lost::Lost;
use openfga::Openfga;
use paths::Paths;
use serde_json::json;
use settings::Wanted;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tenant::Tenant;

impl Openfga {
    /// The account of the service, checked.
    fn settings(&self, arguments: &Arguments, is_other: bool) -> Vec<Wanted> {
        let mut wanted = vec![Wanted::new("SVC_AUTHZ_API_URL", &self.url)];
        // The user must exist, because the service's role has its name.
        if self.is_ours && !is_other {
            let database = database_url(arguments, openfga::DATABASE);
            wanted.push(Wanted::new("SVC_AUTHZ_DATABASE_URL", database));
        }
        wanted
    }
}

/// Sets up.
///
/// # Errors
/// It is not run by root, or finds an obstacle.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    if arguments.as_superuser {
        return databases::as_superuser();
    }
    if !account::is_root() && arguments.root.is_none() {
        return Err(Failure::new(
            "setup writes under /etc and creates roles in PostgreSQL: run it as root (sudo).",
        ));
    }
    let paths = Paths::under(arguments.root.as_deref());
    let service = service(arguments)?;
    let mut ledger = Ledger {
        dry_run: arguments.dry_run,
        ..Ledger::default()
    };
    let openfga = openfga::find(arguments, &paths)?;
    let standing = settings::read(&paths)?;
    let url = database_url(arguments, &arguments.database);
    let given = standing.value("SVC_DATABASE_URL").map(Secret::expose);
    let is_other =
        given != Some(url.as_str()) && keys::is_given(&paths, &standing, "SVC_DATABASE_URL");
    // Obstacles first.
    let license = arguments.license_file.as_deref();
    let license = license
        .map(|from| keys::read_license(from, &paths, &standing, world.clock.now()))
        .transpose()?;
    let request = request(arguments, openfga.as_ref(), is_other);
    let with_secrets = settings::wants_local_secrets(&standing);
    let tenant = match is_other {
        true => Tenant::Unknown,
        false => {
            let lost = Lost::find(&paths, &standing, with_secrets);
            lost.check(&request, &arguments.database, &paths, arguments.new_keys)?
        }
    };
    let mut wanted = settings::wanted(&standing, &world.clock, &url, &tenant)?;
    wanted.extend(
        openfga
            .iter()
            .flat_map(|openfga| openfga.settings(arguments, is_other)),
    );
    make_databases(&mut ledger, &request, openfga.as_ref(), is_other)?;
    directories(&mut ledger, &paths, service.as_ref())?;
    keys::license(
        &mut ledger,
        &paths,
        license.as_ref().map(|key| key.as_str()),
    )?;
    keys::make(&mut ledger, &paths, &standing, with_secrets, &tenant)?;
    let settings = settings::write(&mut ledger, &paths, service.as_ref(), standing, &wanted)?;
    let next = match arguments.start {
        true => start(world, &paths, &settings, openfga.is_some())?,
        false => next(&paths, &settings, openfga.is_some()),
    };
    say(world, arguments, &ledger, &next)
}

fn service(arguments: &Arguments) -> Outcome<Option<Account>> {
    if !account::is_root() {
        return Ok(None);
    }
    let name = &arguments.user;
    let found = Account::find(name)?;
    found.map(Some).ok_or_else(|| {
        Failure::new(format!(
            "There is no user {name} on this host: install the package agent-runtime, which makes it, \
             or run: useradd --system --home-dir {} --shell /usr/sbin/nologin {name}",
            deployment::STATE
        ))
    })
}

/// The URL of a database for the service; PostgreSQL identifies it by its process's user.
fn database_url(arguments: &Arguments, database: &str) -> String {
    let encoded = |text: &str| percent_encoded(text.as_bytes()).to_string();
    format!(
        "postgres://{}@{}:{}/{}",
        encoded(&arguments.user),
        encoded(&arguments.socket.to_string_lossy()),
        arguments.port,
        encoded(database)
    )
}

/// The roles and databases that there should be.
fn request(arguments: &Arguments, openfga: Option<&Openfga>, is_other: bool) -> Request {
    let own = (!is_other).then(|| Owned {
        role: arguments.user.clone(),
        database: arguments.database.clone(),
    });
    let of_openfga = openfga.filter(|openfga| openfga.is_ours).map(|_| Owned {
        role: deployment::OPENFGA_USER.to_owned(),
        database: openfga::DATABASE.to_owned(),
    });
    Request {
        socket: arguments.socket.clone(),
        port: arguments.port,
        superuser: arguments.database_superuser.clone(),
        dry_run: arguments.dry_run,
        informed: own.as_ref().map(|own| own.role.clone()),
        owned: own.iter().chain(&of_openfga).cloned().collect(),
        admitted: of_openfga
            .filter(|_| !is_other)
            .map(|of_openfga| (arguments.user.clone(), of_openfga)),
    }
}

fn make_databases(
    ledger: &mut Ledger,
    request: &Request,
    openfga: Option<&Openfga>,
    is_other: bool,
) -> Outcome {
    if is_other {
        let note = "SVC_DATABASE_URL names a database of yours";
        ledger.enter(State::Kept, "role and database", Some(note));
    }
    if openfga.is_some_and(|openfga| !openfga.is_ours) {
        let note = "OPENFGA_DATASTORE_URI names a database of yours";
        ledger.enter(State::Kept, "role and database of OpenFGA", Some(note));
    }
    match request.owned.is_empty() {
        true => Ok(()),
        false => databases::make(ledger, request),
    }
}

/// Anyone may list such a directory; its files have their own modes.
fn make_passable(path: &Path) -> Outcome {
    let mut builder = fs::DirBuilder::new();
    Ok(builder.recursive(true).mode(0o755).create(path)?)
}

/// The directories of settings, credentials and state.
fn directories(ledger: &mut Ledger, paths: &Paths, service: Option<&Account>) -> Outcome {
    if let Some(parent) = paths.env_file.parent().filter(|_| !ledger.dry_run) {
        make_passable(parent)?;
    }
    directory(ledger, &paths.credentials, deployment::credentials_access())?;
    directory(ledger, &paths.state, deployment::state_access(service))
}

fn directory(ledger: &mut Ledger, path: &Path, access: Access) -> Outcome {
    let what = path.display().to_string();
    let stands = path.exists();
    let fault = match stands {
        true => private_file::faults(access, path)?,
        false => None,
    };
    if !ledger.dry_run && (!stands || fault.is_some()) {
        if !stands {
            path.parent().map(make_passable).transpose()?;
            fs::DirBuilder::new().mode(0o700).create(path)?;
        }
        private_file::put_right(access, path)?;
    }
    match (stands, fault) {
        (true, None) => ledger.enter(State::Kept, what, None),
        (true, Some(fault)) => ledger.enter(State::Changed, what, Some(&format!("it {fault}"))),
        (false, _) => ledger.enter(State::Made, what, Some("mode 0700")),
    }
    Ok(())
}

fn units(with_openfga: bool) -> &'static [&'static str] {
    match with_openfga {
        true => &["agent-runtime-openfga", "agent-runtime"],
        false => &["agent-runtime"],
    }
}

/// The next steps for the operator.
fn next(paths: &Paths, settings: &EnvFile, with_openfga: bool) -> Vec<String> {
    let mut next = Vec::new();
    if !keys::is_given(paths, settings, "SVC_LICENSE_KEY") {
        next.push("Install the license key: agent-runtime setup --license-file FILE".into());
    }
    let units = units(with_openfga).join(" ");
    next.push(format!(
        "Start, now and at boot: systemctl enable --now {units}"
    ));
    next.push("See that all is well: agent-runtime doctor".into());
    next.push(token(paths));
    next
}

fn token(paths: &Paths) -> String {
    let path = paths.credentials.join("SVC_SEED_TOKEN");
    match path.exists() {
        true => format!("The first admin's token is in {}", path.display()),
        false => "The first admin's token is the one that you gave".to_owned(),
    }
}

/// Starts the service, unless the settings have a fault.
fn start(
    world: &World,
    paths: &Paths,
    settings: &EnvFile,
    with_openfga: bool,
) -> Outcome<Vec<String>> {
    let vars = deployment::vars(settings, Some(&paths.credentials));
    let report = config::check(&vars, &world.clock);
    if !report.ok {
        let mut lines = vec!["Setup is done, but the server would not start:".to_owned()];
        lines.extend(report.faults.iter().map(|fault| format!("  {fault}")));
        return Err(Failure::new(lines.join("\n")));
    }
    for unit in units(with_openfga) {
        let status = Command::new("systemctl")
            .args(["enable", "--now", unit])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(Failure::new(format!(
                "Setup is done, but {unit} did not start. See: systemctl status {unit}"
            )));
        }
    }
    Ok(vec![
        "See that all is well: agent-runtime doctor".to_owned(),
        token(paths),
    ])
}

fn say(world: &World, arguments: &Arguments, ledger: &Ledger, next: &[String]) -> Outcome {
    if arguments.json {
        return terminal::say_json(&json!({
            "dryRun": ledger.dry_run, "steps": ledger.steps, "next": next,
        }));
    }
    let style = Style::of_stdout(&world.vars);
    for step in &ledger.steps {
        let state = match (step.state, ledger.dry_run) {
            (State::Kept, _) => style.dim("kept     "),
            (State::Made, false) => style.green("made     "),
            (State::Changed, false) => style.yellow("changed  "),
            (State::Made, true) => style.green("to make  "),
            (State::Changed, true) => style.yellow("to change"),
        };
        let note = match &step.note {
            Some(note) => style.dim(&format!("  ({})", printable(note))),
            None => String::new(),
        };
        terminal::say(format_args!("{state}  {}{note}", printable(&step.what)))?;
    }
    if ledger.dry_run {
        return terminal::say("Nothing was changed (--dry-run).");
    }
    terminal::say("")?;
    for line in next {
        terminal::say(format_args!("  {}", printable(line)))?;
    }
    Ok(())
}
