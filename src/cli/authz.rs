//! `authz verify` and `authz repair`: whether the authorization server holds the permissions that
//! the database wants, and making it so. Both may run beside running servers.

use super::{Failure, Outcome, World, database, dev, terminal};
use crate::authz::permissions::{self, Permissions};
use crate::authz::report::{Progress, Report, Tuples};
use crate::config::Settings;
use crate::outbound::Outbound;
use clap::{Args, Subcommand};
use serde_json::json;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime authz verify               compare, change nothing
  agent-runtime authz repair --dry-run     print what a repair would do";

const VERIFY_EXAMPLES: &str = "\
Examples:
  agent-runtime authz verify
  agent-runtime authz verify --tenant 0197f3c2-5d0e-7cc3-b7a5-0d6f2b1f9e11
  agent-runtime authz verify --json | jq '.tenants[] | select(.extra.count > 0)'

The database is that of SVC_DATABASE_URL, the authorization server that of SVC_AUTHZ_API_URL. \
Without the first, both are those of a running `dev --authorization`. Nothing is changed. Exit codes: 0 equal, 2 something differs, 1 it could not be compared.";

const REPAIR_EXAMPLES: &str = "\
Examples:
  agent-runtime authz repair --dry-run     print what would be done, change nothing
  agent-runtime authz repair               do it

Creates a store or model that was lost, adds missing tuples, and removes superfluous ones. Run it \
after the authorization server's database was restored from a backup. Servers may keep running.";

/// The commands on permissions.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Command {
    /// Compare the authorization server with the database
    Verify(Verify),
    /// Make the authorization server equal to the database
    Repair(Repair),
}

/// Arguments of `authz verify`.
#[derive(Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct Verify {
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    dev: dev::Found,
}

/// Arguments of `authz repair`.
#[derive(Args)]
#[command(after_help = REPAIR_EXAMPLES)]
pub struct Repair {
    #[command(flatten)]
    scope: Scope,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
struct Scope {
    /// Only this tenant
    #[arg(long)]
    tenant: Option<Uuid>,
    /// How many tuples of each kind are listed for a tenant; all are counted
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    limit: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What is done to each tenant, and its words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Verify,
    DryRun,
    Repair,
}

/// Tenants read with one query.
const PAGE: u16 = 500;

/// Runs one of the commands.
///
/// # Errors
/// Something differs, or it could not be compared.
pub fn run(world: &World, command: &Command) -> Outcome {
    let (scope, work) = match command {
        Command::Verify(arguments) => (&arguments.scope, Work::Verify),
        Command::Repair(arguments) if arguments.dry_run => (&arguments.scope, Work::DryRun),
        Command::Repair(arguments) => (&arguments.scope, Work::Repair),
    };
    let found;
    let world = match command {
        Command::Verify(arguments) => {
            found = arguments.dev.world(world)?;
            &found
        }
        Command::Repair(_) => world,
    };
    let permissions = open(world, &world.settings()?)?;
    let mut sums = Sums::default();
    let mut reports = Vec::new();
    each_tenant(&permissions, scope.tenant, |tenant_id| {
        let report = one(&permissions, tenant_id, scope, work)?;
        sums.add(&report);
        if scope.json {
            // Tenants without differences are not listed.
            if !report.is_equal() {
                reports.push(as_json(&report));
            }
            return Ok(());
        }
        terminal::write(text(&report, work))
    })?;
    let equal = sums.differing == 0;
    if scope.json {
        terminal::say_json(&json!({
            "equal": equal, "compared": sums.compared, "missing": sums.missing,
            "extra": sums.extra, "repaired": work == Work::Repair, "tenants": reports,
        }))?;
    } else {
        terminal::say(sums.text(work))?;
    }
    match work {
        Work::Verify if !equal => Err(Failure::found()),
        _ => Ok(()),
    }
}

/// Repairs every tenant, without printing anything.
///
/// # Errors
/// The authorization server or the database does not answer.
pub(super) fn repair_all(world: &World, settings: &Settings) -> Outcome<Sums> {
    let permissions = open(world, settings)?;
    let scope = Scope {
        tenant: None,
        limit: 0,
        json: true,
    };
    let mut sums = Sums::default();
    each_tenant(&permissions, None, |tenant_id| {
        sums.add(&one(&permissions, tenant_id, &scope, Work::Repair)?);
        Ok(())
    })?;
    Ok(sums)
}

fn open(world: &World, settings: &Settings) -> Outcome<Permissions> {
    let Some(authorization) = permissions::Options::from_settings(settings) else {
        return Err(Failure::new(
            "Authorization is off: SVC_AUTHZ_API_URL is not set.",
        ));
    };
    let log = super::serve::open_log(&world.vars, settings, &world.clock)?;
    let store = database::open(settings, log.clone())?;
    let outbound = Outbound::from_settings(settings)?;
    let clock = world.clock.clone();
    let log = crate::log::subsystem(&log, crate::log::Subsystem::Authz);
    let made = Permissions::new(&authorization, store, clock, &outbound, None, log);
    Ok(made?)
}

fn each_tenant(
    permissions: &Permissions,
    only: Option<Uuid>,
    mut each: impl FnMut(Uuid) -> Outcome,
) -> Outcome {
    if let Some(tenant_id) = only {
        return each(tenant_id);
    }
    let mut after = Uuid::nil();
    loop {
        let page = permissions.tenants(after, PAGE)?;
        for tenant_id in &page {
            each(*tenant_id)?;
        }
        match page.last() {
            Some(last) if page.len() == usize::from(PAGE) => after = *last,
            _ => return Ok(()),
        }
    }
}

fn one(permissions: &Permissions, tenant_id: Uuid, scope: &Scope, work: Work) -> Outcome<Report> {
    let mut shown = Shown::new();
    let mut progress = |progress| shown.show(tenant_id, progress);
    let limit = usize::try_from(scope.limit).unwrap_or(usize::MAX);
    let report = match work {
        Work::Repair => permissions.repair(tenant_id, limit, &mut progress),
        Work::Verify | Work::DryRun => permissions.verify(tenant_id, limit, &mut progress),
    };
    shown.clear();
    Ok(report?)
}

/// Progress, on a terminal only.
struct Shown {
    is_terminal: bool,
    at: Instant,
    is_shown: bool,
}

impl Shown {
    fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            at: Instant::now(),
            is_shown: false,
        }
    }

    fn show(&mut self, tenant_id: Uuid, progress: Progress) {
        if self.is_terminal && self.at.elapsed() > Duration::from_millis(200) {
            (self.at, self.is_shown) = (Instant::now(), true);
            terminal::note_over(format_args!(
                "tenant {tenant_id}: {} tuples read there, {} here",
                progress.stored, progress.desired
            ));
        }
    }

    fn clear(&self) {
        if self.is_shown {
            terminal::note_over("");
        }
    }
}

/// The result over all tenants.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) compared: u64,
    differing: u64,
    /// Tuples that were missing.
    pub(super) missing: u64,
    /// Tuples that were superfluous.
    pub(super) extra: u64,
}

impl Sums {
    fn add(&mut self, report: &Report) {
        self.compared += 1;
        self.differing += u64::from(!report.is_equal());
        self.missing += report.missing.count;
        self.extra += report.extra.count;
    }

    fn text(&self, work: Work) -> String {
        let (missing, extra) = match work {
            Work::Repair => ("added", "removed"),
            Work::Verify | Work::DryRun => ("missing", "extra"),
        };
        match self.differing {
            0 => format!("Tenants compared: {}. All are equal.", self.compared),
            differing => format!(
                "Tenants compared: {}. They differed: {differing}; tuples {missing}: {}, {extra}: {}.",
                self.compared, self.missing, self.extra
            ),
        }
    }
}

fn as_json(report: &Report) -> serde_json::Value {
    json!({
        "tenantId": report.tenant_id, "storeId": report.store_id,
        "modelVersion": report.model_version, "missing": report.missing, "extra": report.extra,
        "more": report.more,
    })
}

fn text(report: &Report, work: Work) -> String {
    let mut text = String::new();
    if report.is_equal() {
        return text;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "tenant {}:", report.tenant_id);
    if report.store_id.is_none() {
        text.push_str("  no store\n");
    } else if report.model_version.is_none() {
        text.push_str("  no model\n");
    }
    let (missing, extra) = match work {
        Work::Verify => ("missing", "extra"),
        Work::DryRun => ("to add", "to remove"),
        Work::Repair => ("added", "removed"),
    };
    list(&mut text, missing, &report.missing);
    list(&mut text, extra, &report.extra);
    if report.more {
        text.push_str("  and more: there are too many to compare each\n");
    }
    text
}

fn list(text: &mut String, word: &str, tuples: &Tuples) {
    for tuple in &tuples.first {
        let line = format!("{} {} {}", tuple.user, tuple.relation, tuple.object);
        // Anybody may have written what the authorization server holds.
        let _ = writeln!(text, "  {word}: {}", terminal::printable(&line));
    }
    let rest = tuples.count.saturating_sub(tuples.first.len() as u64);
    if rest > 0 {
        let _ = writeln!(text, "  {word}: {rest} more");
    }
}
