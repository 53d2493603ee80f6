//! `doctor`: checks everything that a server needs, and says what to do about each fault.
//!
//! Guarantees: it changes nothing and shows no secret. Every check has a deadline, and one that
//! hangs stops no other. Codes stay the same. On an installed host, root sees what the service
//! sees: the checks run as the service's user, with the settings and credentials of its unit.
//!
//! Not here: the checks themselves (the modules below), and repairs (`setup`, `migrate`, `authz
//! repair`).

mod authorization;
mod code;
mod collector;
mod database;
mod files;
mod finding;
mod identity_providers;
mod primary;
mod report;
mod secret_uses;
mod service;
mod settings;
mod tool_secrets;

use super::account::{self, Account};
use super::deployment::{self, Copies};
use super::{Failure, Outcome, World, dev};
use crate::config::{self, EnvFile, Settings, Vars};
use crate::ids::Clock;
use crate::outbound::Outbound;
use crate::secrets;
use crate::store;
use crate::store::migrations;
use crate::store::secrets::newest;
use clap::Args;
use code::Code;
use files::Files;
use finding::{Finding, Findings, Group};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime doctor                       the installed service, as root
  agent-runtime doctor --replicas 3          do three replicas fit into PostgreSQL's connections?
  agent-runtime doctor --json | jq '.checks[] | select(.level == \"fault\")'
  SVC_DEV=1 agent-runtime doctor             the settings of the environment
  agent-runtime doctor --data-dir ./dev      the server of: agent-runtime dev --data-dir ./dev

The settings are those of the environment if it has any that begin with SVC_, else those of \
/etc/agent-runtime/agent-runtime.env, else those of a running `dev`; with --env-file those of that \
file, and no credentials but those of --credentials. Nothing is changed. docs/doctor.md says what each check means.

Exit codes: 0 no fault (warnings may be), 1 at least one fault, 2 wrong command line.";

/// Deadline of all checks.
const PATIENCE: Duration = Duration::from_secs(20);
/// Deadline of the checks in another process.
const PATIENCE_FOR_CHILD: Duration = Duration::from_secs(30);

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Take the settings from this env file
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    env_file: Option<PathBuf>,
    /// Read secrets from the files of this directory, as systemd passes them
    #[arg(long, value_name = "DIR")]
    credentials: Option<PathBuf>,
    /// The user that the service runs as
    #[arg(long, value_name = "NAME", default_value = deployment::USER)]
    user: String,
    /// How many servers share the database
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    replicas: u32,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Print what each check examines and what to do, and check nothing
    #[arg(long)]
    list: bool,
    /// Print raw findings, for the doctor that started this one
    #[arg(long, hide = true)]
    as_service: bool,
    #[command(flatten)]
    dev: dev::Found,
}

/// Runs the checks and prints the report.
///
/// # Errors
/// There is a fault, or the settings cannot be found.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    if arguments.list {
        return report::list(world);
    }
    let found = match &installed(world, arguments)? {
        Some(installed) => of_installed(world, arguments, installed)?,
        None if arguments.as_service => here(world, arguments),
        None => here(&arguments.dev.world(world)?, arguments),
    };
    if arguments.as_service {
        return super::terminal::say_json(&found);
    }
    report::say(world, &found, arguments.json)
}

/// Checks everything with the settings of the environment, or with those of `dev`.
fn here(world: &World, arguments: &Arguments) -> Vec<Finding> {
    let groups = groups(&world.vars, &world.clock, arguments.replicas);
    finding::look(groups, PATIENCE)
}

/// A service whose settings are in an env file.
struct Installed {
    files: Files,
    settings: EnvFile,
}

/// The installed service, if the settings are to come from an env file.
fn installed(world: &World, arguments: &Arguments) -> Outcome<Option<Installed>> {
    let usual = Path::new(deployment::ENV_FILE);
    let path = match &arguments.env_file {
        Some(path) => path.as_path(),
        None if arguments.as_service || arguments.dev.is_named() => return Ok(None),
        None if world.vars.has_settings() => return Ok(None),
        None if usual.exists() => usual,
        None => return Ok(None),
    };
    let settings = deployment::read_env_file(path).map_err(|failure| match account::is_root() {
        true => failure,
        false => Failure::new(format!("{} Run this as root (sudo).", failure.message)),
    })?;
    let settings =
        settings.ok_or_else(|| Failure::new(format!("There is no {}.", path.display())))?;
    let credentials = arguments.credentials.clone().or_else(|| {
        let usual = PathBuf::from(deployment::CREDENTIALS);
        (arguments.env_file.is_none() && usual.is_dir()).then_some(usual)
    });
    let state = settings.value("SVC_STATE_DIR").map(|path| path.expose());
    let state = PathBuf::from(state.unwrap_or(deployment::STATE));
    Ok(Some(Installed {
        files: Files {
            env_file: path.to_owned(),
            credentials,
            state,
            service: Account::find(&arguments.user)?,
        },
        settings,
    }))
}

/// Checks files as the calling user, and everything else as the service's user if possible.
fn of_installed(world: &World, arguments: &Arguments, from: &Installed) -> Outcome<Vec<Finding>> {
    let files = from.files.clone();
    let of_files = Group {
        name: "files",
        codes: files::CODES.to_vec(),
        look: Box::new(move |findings| files::look(findings, &files)),
    };
    let Some(service) = from.files.service.as_ref().filter(|_| account::is_root()) else {
        let vars = deployment::vars(&from.settings, from.files.credentials.as_deref());
        let mut groups = groups(&vars, &world.clock, arguments.replicas);
        groups.push(of_files);
        return Ok(finding::look(groups, PATIENCE));
    };
    let copies = from.files.credentials.as_deref();
    let copies = copies
        .map(|from| Copies::of(from, service, &world.clock))
        .transpose()?;
    let vars = deployment::vars(&from.settings, copies.as_ref().map(Copies::path));
    let as_service = as_service(service, &vars, arguments.replicas);
    Ok(finding::look(
        vec![of_files, as_service],
        PATIENCE_FOR_CHILD,
    ))
}

/// All checks except those of files, in a process of the service's user.
fn as_service(service: &Account, vars: &Vars, replicas: u32) -> Group {
    let mut command = service.this_program();
    command
        .args([
            "doctor",
            "--as-service",
            "--replicas",
            &replicas.to_string(),
        ])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .envs(vars.pairs())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let all = code::ALL.iter().map(|about| about.code);
    let all_but_files = all.filter(|code| !files::CODES.contains(code));
    Group {
        name: "as-service",
        codes: all_but_files.collect(),
        look: Box::new(move |findings| {
            let output = command.output();
            let printed = output.map(|output| output.stdout).unwrap_or_default();
            let found: Vec<Finding> = serde_json::from_slice(&printed).unwrap_or_default();
            found
                .into_iter()
                .for_each(|finding| findings.pass_on(finding));
        }),
    }
}

/// All checks except those of files.
fn groups(vars: &Vars, clock: &Clock, replicas: u32) -> Vec<Group> {
    let report = super::settings::report(vars, clock);
    let now = clock.now();
    let usable = config::load_for_upkeep(vars, clock).ok();
    let usable = usable.map(|(settings, _)| settings);
    let faulty = report
        .faults
        .iter()
        .any(|fault| fault.setting.starts_with("SVC_SECRETS_"));
    let database = usable.clone().map(|settings| database::Facts {
        settings,
        clock: clock.clone(),
        replicas,
    });
    let group = |name, codes: &[Code], look: Box<dyn FnOnce(&Findings) + Send>| Group {
        name,
        codes: codes.to_vec(),
        look,
    };
    let of_database = move |findings: &Findings| match &database {
        Some(facts) => database::look(findings, facts),
        None => without_settings(findings, database::CODES),
    };
    let clock = clock.clone();
    let sound = usable.clone().filter(|_| !faulty);
    let of_secrets = move |findings: &Findings| match &sound {
        Some(settings) => secrets(findings, settings, &clock),
        None => without_settings(findings, &[Code::Secrets]),
    };
    let given = vars.clone();
    let of_service = move |findings: &Findings| service::look(findings, &given);
    let of_settings = move |findings: &Findings| settings::look(findings, &report, now);
    let mut groups = vec![
        group("settings", settings::CODES, Box::new(of_settings)),
        group("database", database::CODES, Box::new(of_database)),
        group("secrets", &[Code::Secrets], Box::new(of_secrets)),
        group("service", &[Code::Service], Box::new(of_service)),
    ];
    for (name, codes, look) in BY_SETTINGS {
        let usable = usable.clone();
        let run = move |findings: &Findings| match &usable {
            Some(settings) => look(findings, settings),
            None => without_settings(findings, codes),
        };
        groups.push(group(name, codes, Box::new(run)));
    }
    groups
}

/// A group of checks that needs usable settings and nothing else.
type BySettings = (&'static str, &'static [Code], fn(&Findings, &Settings));

const BY_SETTINGS: [BySettings; 6] = [
    ("primary", primary::CODES, primary::look),
    ("openfga", authorization::CODES, authorization::look),
    (
        "openfga-database",
        authorization::OF_DATABASE,
        authorization::of_database,
    ),
    ("collector", collector::CODES, collector::look),
    (
        "identity-providers",
        identity_providers::CODES,
        identity_providers::look,
    ),
    ("host", HOST, host),
];

const HOST: &[Code] = &[Code::Disk, Code::TlsRoots, Code::Descriptors];

fn host(findings: &Findings, settings: &Settings) {
    files::state(findings, &settings.state_directory);
    service::tls_roots(findings, settings.outbound.extra_certificates.len());
    service::descriptors(findings, settings);
}

fn without_settings(findings: &Findings, codes: &[Code]) {
    for code in codes {
        findings.skipped(*code, "Not checked: first see settings.");
    }
}

fn secrets(findings: &Findings, settings: &Settings, clock: &Clock) {
    let tenant_id = settings.tenant.id.unwrap_or(Uuid::nil());
    let probed = secrets::Options::from_settings(settings, tenant_id)
        .and_then(|secrets| Ok((secrets, Outbound::from_settings(settings)?)))
        .map_err(|error| super::reason(&error))
        .and_then(|(secrets, outbound)| secrets::probe(secrets, &outbound, clock));
    match probed {
        Ok(true) => {
            findings.ok(Code::Secrets, "A value was sealed and opened again.");
            stored_secret(findings, settings, clock);
        }
        Ok(false) => findings.skipped(Code::Secrets, "There is no backend (SVC_SECRETS_BACKEND)."),
        Err(sentence) => findings.fault(Code::Secrets, sentence),
    }
}

/// Tries the keys on a stored secret: keys of another deployment would pass a self-test, too.
fn stored_secret(findings: &Findings, settings: &Settings, clock: &Clock) {
    let Ok(secrets::Options::Postgres(keys)) =
        secrets::Options::from_settings(settings, Uuid::nil())
    else {
        return;
    };
    let newest =
        database::connect(store::Options::from_settings(settings)).and_then(|mut client| {
            let is_current = migrations::is_current(&mut client)?;
            is_current.then(|| newest(&mut client)).transpose()
        });
    let first_see = |what: &str| {
        let sentence = format!("Stored secrets were not checked: first see {what}.");
        findings.skipped(Code::Secrets, sentence);
    };
    let newest = match newest {
        Ok(Some(Some(newest))) => newest,
        Ok(Some(None)) => return findings.ok(Code::Secrets, "No secret is stored."),
        Ok(None) => return first_see("schema"),
        Err(_) => return first_see("database"),
    };
    let opened = Outbound::from_settings(settings)
        .map_err(|error| super::reason(&error))
        .and_then(|outbound| secrets::probe_stored(*keys, &outbound, clock, &newest));
    let well = "The newest stored secret was opened.";
    findings.fault_or_ok(Code::Secrets, opened.err(), well);
}
