//! `audit verify` checks that the record of access decisions is complete. `audit export` prints the
//! decisions, for keeping them elsewhere. Both read the database. `audit show` asks a server for one decision,
//! or for those of one request.

use super::client::Which;
use super::terminal::Style;
use super::{Failure, Outcome, World, dev, names, table, terminal};
use crate::audit::Record;
use crate::audit::verify::{self, Fault, Kind, Report};
use crate::error::Error;
use crate::ids::rfc3339;
use crate::store;
use crate::store::audit::snapshot;
use crate::store::connect::Manager;
use clap::{Args, Subcommand, ValueEnum};
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::pkcs8::DecodePublicKey;
use serde::Serialize;
use serde_json::Value;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime audit verify
  agent-runtime audit export --from 2027-01-01T00:00:00Z > decisions.jsonl
  agent-runtime audit show 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime audit show --request req-01993c5e-7c1f-7d2a-9c55-0242ac120002";

const VERIFY_EXAMPLES: &str = "\
Examples:
  agent-runtime audit verify
  agent-runtime audit verify --public-key audit.pub --json

The database is that of SVC_DATABASE_URL, else the private one of a running `dev`.

The public key is the one of SVC_AUDIT_SIGNING_KEY_PATH in PEM, as made by: openssl pkey -pubout. \
Without it the key of the setting is used. Without both, each anchor is checked with the key that \
it names itself, which proves little, and one that is not signed is counted.

Exits 0 if the record is complete, 2 if something was changed, removed or inserted, 1 if it could \
not be verified.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  agent-runtime audit export --from 2027-01-01T00:00:00Z --to 2027-02-01T00:00:00Z > january.jsonl
  agent-runtime audit export --tenant 018f0000-0000-7000-8000-000000000000 | jq .resource

Decisions are written oldest first, one JSON object a line, as the audit stood when the command \
began. The database is that of SVC_DATABASE_URL, else the private one of a running `dev`.";

const SHOW_EXAMPLES: &str = "\
Examples:
  agent-runtime audit show 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime audit show 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq .check
  agent-runtime audit show --request req-01993c5e-7c1f-7d2a-9c55-0242ac120002

Takes a tenant admin's token. Ids are in the list of decisions, GET /v1/audit/authz. The id of a request is in each error, \
and in the header x-request-id of each answer. With it, the decisions of that request are shown, and the run that it started.";

/// Decisions of one request that are shown at most. A request has few.
const DECISIONS_OF_REQUEST: usize = 200;

/// The longest public key file, in bytes.
const KEY_MAX_BYTES: u64 = 64 * 1024;

/// The commands on the record of access decisions.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Command {
    /// Find what was changed, removed or inserted
    Verify(Verify),
    /// Write the decisions to standard output
    Export(Export),
    /// Show a decision: who asked for what, and why it was allowed or denied
    Show(Show),
}

/// Arguments of `audit verify`.
#[derive(Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct Verify {
    /// The public key that anchors must be signed with, in PEM; may be repeated
    #[arg(long = "public-key", value_name = "FILE")]
    public_keys: Vec<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dev: dev::Found,
}

/// Arguments of `audit export`.
#[derive(Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct Export {
    /// How each decision is written
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Decided then or later (RFC 3339); from the beginning if left out
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<OffsetDateTime>,
    /// Decided before then (RFC 3339); to the end if left out
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<OffsetDateTime>,
    /// Only decisions of this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<Uuid>,
    #[command(flatten)]
    dev: dev::Found,
}

/// Arguments of `audit show`.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct Show {
    /// The decision's id
    #[arg(value_parser = names::id, required_unless_present = "request", conflicts_with = "request")]
    decision: Option<Uuid>,
    /// The decisions of this request, and the run that it started
    #[arg(long, value_name = "ID", value_parser = names::request)]
    request: Option<Uuid>,
    /// Print each decision as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One JSON object a line
    Jsonl,
}

fn time(text: &str) -> Result<OffsetDateTime, String> {
    rfc3339::parse(text)
        .filter(|at| (1970..=9999).contains(&at.year()))
        .ok_or_else(|| "a time such as 2027-12-31T00:00:00Z is needed".to_owned())
}

/// Runs one of the commands.
///
/// # Errors
/// The database cannot be read, or the record was tampered with; the server cannot be asked, or has no such decision.
pub fn run(world: &World, command: &Command) -> Outcome {
    match command {
        Command::Verify(arguments) => verify(world, arguments),
        Command::Export(arguments) => export(world, arguments),
        Command::Show(arguments) => show(world, arguments),
    }
}

fn verify(world: &World, arguments: &Verify) -> Outcome {
    let world = &arguments.dev.world(world)?;
    let settings = world.settings()?;
    let mut keys = arguments
        .public_keys
        .iter()
        .map(|path| public_key(path))
        .collect::<Outcome<Vec<_>>>()?;
    if keys.is_empty() {
        let key = settings.audit_signing_key.as_ref();
        keys.extend(key.map(|key| key.verifying_key()));
    }
    let manager = Manager::new(&store::Options::from_settings(&settings))?;
    let shows_progress = std::io::stderr().is_terminal();
    let report = verify::verify(&manager, &keys, |decisions| {
        if shows_progress {
            terminal::progress(format_args!("{decisions} decisions"));
        }
    })?;
    if shows_progress {
        terminal::progress("");
    }
    if arguments.json {
        terminal::say_json(&report)?;
    } else {
        print_report(&report, keys.is_empty())?;
    }
    match report.faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::found()),
    }
}

fn print_report(report: &Report, no_key: bool) -> Outcome {
    for fault in &report.faults {
        terminal::say(line(fault))?;
    }
    let verdict = match report.faults.is_empty() {
        true => "The record is complete",
        false => "The record is NOT complete",
    };
    terminal::say(format_args!(
        "{verdict}: {} decisions in {} batches, {} chains.",
        report.decisions, report.batches, report.chains
    ))?;
    if report.anchors > report.unsigned_anchors && no_key {
        terminal::say(
            "Purges are only as trustworthy as the keys that their anchors name: give --public-key.",
        )?;
    }
    if report.unsigned_anchors > 0 && no_key {
        terminal::say(format_args!(
            "{} of {} purged chains have an anchor that is not signed. It cannot prove that a purge removed their beginning: whoever may write the tables can do the same. SVC_AUDIT_SIGNING_KEY_PATH has the next purges sign.",
            report.unsigned_anchors, report.anchors
        ))?;
    }
    Ok(())
}

fn line(fault: &Fault) -> String {
    let kind = match fault.kind {
        Kind::Changed => "changed",
        Kind::Removed => "removed",
        Kind::Inserted => "inserted",
        Kind::AnchorNotSigned => "anchor not signed",
    };
    format!(
        "{kind}: slot {}, {}, positions {} to {}, {} to {}: {}",
        fault.slot,
        fault.outcome.text(),
        fault.first_position,
        fault.last_position,
        rfc3339::text(fault.from),
        rfc3339::text(fault.to),
        fault.finding
    )
}

fn public_key(path: &Path) -> Outcome<VerifyingKey> {
    let no_use = |why: String| Failure::new(format!("{}: {why}.", path.display()));
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(KEY_MAX_BYTES).read_to_string(&mut text))
        .map_err(|error| no_use(error.to_string()))?;
    VerifyingKey::from_public_key_pem(text.trim())
        .map_err(|_| no_use("this is not an Ed25519 public key in PEM".to_owned()))
}

/// A decision with its position in the chain.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    tenant_id: Uuid,
    slot: i32,
    position: i64,
    #[serde(flatten)]
    record: Record,
}

fn export(world: &World, arguments: &Export) -> Outcome {
    let world = &arguments.dev.world(world)?;
    let settings = world.settings()?;
    let manager = Manager::new(&store::Options::from_settings(&settings))?;
    let Format::Jsonl = arguments.format;
    let from = arguments.from.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let to = arguments
        .to
        .or_else(|| rfc3339::parse("9999-12-31T23:59:59Z"));
    let to = to.unwrap_or(from);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    // A closed pipe is not a failure of the database.
    let mut written: Outcome = Ok(());
    snapshot::read(&manager, |snapshot| {
        let mut rows = snapshot.between(from, to, arguments.tenant)?;
        while let Some(row) = rows.next(snapshot)? {
            let line = Line {
                tenant_id: row.tenant_id,
                slot: row.slot,
                position: row.position,
                record: row.into(),
            };
            let mut text = serde_json::to_string(&line).map_err(Error::internal)?;
            text.push('\n');
            written = out.write_all(text.as_bytes()).map_err(terminal::unwritable);
            if written.is_err() {
                return Ok(());
            }
        }
        Ok(())
    })?;
    written?;
    out.flush().map_err(terminal::unwritable)
}

fn show(world: &World, arguments: &Show) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let style = Style::of_stdout(&world.vars);
    if let Some(decision) = arguments.decision {
        let decision = client.get(&format!("/v1/audit/authz/{decision}"))?;
        return match arguments.json {
            true => terminal::say_json(&decision),
            false => show_decision(style, &decision),
        };
    }
    let request = arguments.request.unwrap_or_default();
    let of_request = format!("requestId=req-{request}");
    let found = client.first(
        &format!("/v1/audit/authz?{of_request}"),
        DECISIONS_OF_REQUEST,
    )?;
    if arguments.json {
        return found.rows.iter().try_for_each(terminal::say_json);
    }
    for decision in &found.rows {
        show_decision(style, decision)?;
        terminal::say("")?;
    }
    let runs = client.first(&format!("/v1/runs?{of_request}"), 1)?;
    match runs.rows.first() {
        Some(run) => terminal::say(format_args!(
            "The request started the run {}.",
            terminal::printable(run["id"].as_str().unwrap_or("-"))
        )),
        None if found.rows.is_empty() => Err(Failure::new(format!(
            "There is no decision of the request req-{request} here, and it started no run. The server's log has its records."
        ))),
        None => Ok(()),
    }
}

fn show_decision(style: Style, decision: &Value) -> Outcome {
    let text = |value: &Value| terminal::printable(value.as_str().unwrap_or("-"));
    let head = format!(
        "{} {} on {}",
        text(&decision["outcome"]),
        text(&decision["action"]),
        text(&decision["resource"])
    );
    terminal::say(style.bold(&head))?;
    let line = |name: &str, value: &str| terminal::say_line(style, name, value);
    line("id", &text(&decision["id"]))?;
    line("at", &table::time(&decision["timestamp"]))?;
    line("actor", &text(&decision["actorSubject"]))?;
    line("reason", &text(&decision["reason"]))?;
    line("decided by", &text(&decision["stage"]))?;
    line("took", &format!("{} ms", decision["durationMs"]))?;
    let check = &decision["check"];
    if check.is_object() {
        let asked = ["user", "relation", "object"].map(|field| text(&check[field]));
        line("asked", &asked.join(" "))?;
    }
    for (name, field) in [
        ("refused", "failingPart"),
        ("request", "requestId"),
        ("trace", "traceId"),
        ("key", "keyId"),
        ("route", "route"),
        ("run", "runId"),
        ("address", "clientAddress"),
    ] {
        if decision[field].is_string() {
            line(name, &text(&decision[field]))?;
        }
    }
    Ok(())
}
