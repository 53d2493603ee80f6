//! `approvals`, `approve` and `reject`: lists what waits for a person, shows one, decides it, or hands it on.
//!
//! A decision is bound to the subject that the command has just read: if the subject has changed, the server refuses. The
//! subject is shown whole, and characters that a terminal would not show are escaped.

use super::client::{Client, Which};
use super::display::shortened;
use super::input::{self, STDIN};
use super::terminal::{self, Style, say, say_json, say_line};
use super::{Failure, Outcome, World, approval_form, names, table};
use crate::outbound::Method;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The longest arguments or answer that are read, in bytes; the server may accept less.
const MAX_JSON_BYTES: u64 = 1024 * 1024;

const EXAMPLES: &str = "\
Examples:
  agent-runtime approvals
  agent-runtime approvals --assigned-to me
  agent-runtime approvals --role finance --json | jq -r .id
  agent-runtime approvals show 01993c5e-7c1f-7d2a-9c55-0242ac120002

The list has what waits for the roles that you hold, the oldest first. Times are in UTC.";

const SHOW_EXAMPLES: &str = "\
Examples:
  agent-runtime approvals show 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime approvals show 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq .subject";

const ASSIGN_EXAMPLES: &str = "\
Examples:
  agent-runtime approvals assign 01993c5e-7c1f-7d2a-9c55-0242ac120002 --to me
  agent-runtime approvals assign 01993c5e-7c1f-7d2a-9c55-0242ac120002 --to ada@example.com
  agent-runtime approvals assign 01993c5e-7c1f-7d2a-9c55-0242ac120002 --to nobody

Says who should look at it. Everybody with the role can still decide.";

const ESCALATE_EXAMPLES: &str = "\
Examples:
  agent-runtime approvals escalate 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime approvals escalate 01993c5e-7c1f-7d2a-9c55-0242ac120002 --role board --comment \"Over my limit.\"

Closes the approval, and opens another one for the role, with the same deadline. There is one level:
an escalated approval can only be decided or assigned.";

const APPROVE_EXAMPLES: &str = "\
Examples:
  agent-runtime approve 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime approve 01993c5e-7c1f-7d2a-9c55-0242ac120002 --comment \"The photo is clear.\"

To approve a tool call with other arguments, save the requested ones and edit them:
  agent-runtime approvals show ID --json | jq .subject.arguments > arguments.json
  agent-runtime approve ID --arguments arguments.json

They must fit the tool's schema; otherwise every fault is shown and nothing is decided.

To approve with an answer, such as an approval with a form takes:
  echo '{\"amount\": 180}' | agent-runtime approve ID --answer -

It must fit the form. Read an approval first: agent-runtime approvals show ID. The same decision
again changes nothing.";

const REJECT_EXAMPLES: &str = "\
Examples:
  agent-runtime reject 01993c5e-7c1f-7d2a-9c55-0242ac120002 --comment \"Ask for the receipt.\"

Read it first: agent-runtime approvals show ID. The same decision again changes nothing.";

/// Arguments of `approvals`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one approval.
#[derive(Subcommand)]
enum Command {
    /// Show an approval: what it is about, and who did what to it
    Show(Show),
    /// Assign an approval to a reviewer, or to nobody
    Assign(Assign),
    /// Close an approval, and ask another role instead
    Escalate(Escalate),
}

/// Which approvals are listed.
#[derive(Args)]
struct List {
    /// Only approvals that this role decides
    #[arg(long)]
    role: Option<String>,
    /// Only approvals of this project, by id or name
    #[arg(long)]
    project: Option<String>,
    /// Only approvals of this run
    #[arg(long, value_name = "ID", value_parser = names::id)]
    run: Option<Uuid>,
    /// Only approvals assigned to you (`me`), to nobody (`none`), or to the person with this id
    #[arg(long, value_name = "WHO", value_parser = assignee)]
    assigned_to: Option<String>,
    /// Approvals in this state, instead of those that wait
    #[arg(long, value_parser = ["waiting", "approved", "rejected", "escalated", "expired", "voided"])]
    status: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each approval as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `approvals show`.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// The approval's id
    #[arg(value_parser = names::id)]
    approval: Uuid,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `approvals assign`.
#[derive(Args)]
#[command(after_help = ASSIGN_EXAMPLES)]
struct Assign {
    /// The approval's id
    #[arg(value_parser = names::id)]
    approval: Uuid,
    /// You (`me`), `nobody`, or a reviewer by email or id
    #[arg(long, value_name = "WHO", value_parser = person)]
    to: String,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `approvals escalate`.
#[derive(Args)]
#[command(after_help = ESCALATE_EXAMPLES)]
struct Escalate {
    /// The approval's id
    #[arg(value_parser = names::id)]
    approval: Uuid,
    /// The reviewer role that is asked [default: the one that the approval names]
    #[arg(long)]
    role: Option<String>,
    /// Whom the new approval is assigned to: you (`me`), or a reviewer by email or id
    #[arg(long, value_name = "WHO", value_parser = person)]
    to: Option<String>,
    /// Why
    #[arg(long)]
    comment: Option<String>,
    /// Print the new approval as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `approve`.
#[derive(Args)]
#[command(after_help = APPROVE_EXAMPLES)]
pub struct Approve {
    /// The file with other arguments for the tool, as JSON; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    arguments: Option<PathBuf>,
    #[command(flatten)]
    decide: Decide,
}

/// Arguments of `reject`.
#[derive(Args)]
#[command(after_help = REJECT_EXAMPLES)]
pub struct Reject {
    #[command(flatten)]
    decide: Decide,
}

/// What a decision is about.
#[derive(Args)]
struct Decide {
    /// The approval's id
    #[arg(value_parser = names::id)]
    approval: Uuid,
    /// Why: for those who read the approval later, and for the run
    #[arg(long)]
    comment: Option<String>,
    /// The file with a value for the run beside the decision, as JSON; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    answer: Option<PathBuf>,
    /// Print the approval as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists approvals, shows one, or hands one on.
///
/// # Errors
/// The server cannot be asked, or there is no such approval.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Show(show)) => self::show(world, show),
        Some(Command::Assign(assign)) => self::assign(world, assign),
        Some(Command::Escalate(escalate)) => self::escalate(world, escalate),
    }
}

/// Approves what an approval is about.
///
/// # Errors
/// The server cannot be asked, or does not take the decision.
pub fn approve(world: &World, arguments: &Approve) -> Outcome {
    decide(
        world,
        &arguments.decide,
        ("approve", arguments.arguments.as_deref()),
    )
}

/// Rejects what an approval is about.
///
/// # Errors
/// The server cannot be asked, or does not take the decision.
pub fn reject(world: &World, arguments: &Reject) -> Outcome {
    decide(world, &arguments.decide, ("reject", None))
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let status = arguments.status.as_deref().unwrap_or("waiting");
    let mut path = format!("/v1/approvals?status={status}");
    if let Some(role) = &arguments.role {
        path += &format!("&role={role}");
    }
    if let Some(project) = &arguments.project {
        path += &format!("&projectId={}", names::project(&mut client, project)?);
    }
    if let Some(run_id) = arguments.run {
        path += &format!("&runId={run_id}");
    }
    if let Some(who) = &arguments.assigned_to {
        path += &format!("&assignedTo={who}");
    }
    let found = client.first(&path, arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows: Vec<[String; 5]> = found
        .rows
        .iter()
        .map(|approval| {
            [
                text(&approval["id"]),
                text(&approval["status"]),
                text(&approval["requiredRole"]),
                table::time(&approval["expiresAt"]),
                text(&approval["title"]),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["ID", "STATUS", "ROLE", "EXPIRES", "TITLE"];
    table::print(style, head, &rows, |_, cell| style.bold(cell))?;
    found.say_what_is_left("approvals", "--role, --project, --run or --assigned-to");
    Ok(())
}

/// Whom an approval is assigned to, as the server reads it.
fn assignee(text: &str) -> Result<String, String> {
    match matches!(text, "me" | "none") || names::is_id(text) {
        true => Ok(text.to_owned()),
        false => Err("expected me, none or a person's id".to_owned()),
    }
}

fn show(world: &World, arguments: &Show) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let approval = read(&mut client, arguments.approval)?;
    if arguments.json {
        return say_json(&approval);
    }
    let style = Style::of_stdout(&world.vars);
    let text = |value: &Value| shortened(value.as_str().unwrap_or("-"));
    let line = |name: &str, value: &str| say_line(style, name, value);
    say(style.bold(&text(&approval["title"])))?;
    line("id", &text(&approval["id"]))?;
    line("status", &text(&approval["status"]))?;
    line("role", &text(&approval["requiredRole"]))?;
    if approval["mayNotBecause"] == "approval-own-request" {
        line(
            "not yours",
            "you started the run, so another reviewer decides",
        )?;
    }
    // By its id: a reviewer may not be allowed to read the project, and asking would be a refusal on record.
    line("project", &text(&approval["projectId"]))?;
    line("run", &text(&approval["runId"]))?;
    if approval["rootRunId"] != approval["runId"] {
        line("begun by run", &text(&approval["rootRunId"]))?;
    }
    line("asked by", &text(&approval["requestedBy"]))?;
    line("assigned to", &text(&approval["assignedTo"]))?;
    for (name, field) in [
        ("created", "createdAt"),
        ("escalates", "escalatesAt"),
        ("expires", "expiresAt"),
        ("closed", "closedAt"),
    ] {
        if approval[field].is_string() {
            line(name, &table::time(&approval[field]))?;
        }
    }
    for (name, field) in [
        ("in place of", "escalatedFrom"),
        ("replaced by", "escalatedTo"),
        ("decided by", "decidedBy"),
    ] {
        if approval[field].is_string() {
            line(name, &text(&approval[field]))?;
        }
    }
    if let Some(comment) = approval["comment"].as_str() {
        line("comment", &terminal::printable(comment))?;
    }
    show_subject(style, &approval["subject"])?;
    let log = approval["log"].as_array().map(Vec::as_slice);
    for entry in log.unwrap_or_default() {
        let said = format!("{} {}", table::time(&entry["at"]), text(&entry["kind"]));
        match entry["userId"].as_str() {
            Some(user_id) => line("log", &format!("{said} by {}", shortened(user_id)))?,
            None => line("log", &said)?,
        }
    }
    Ok(())
}

/// What the approval is about, whole.
fn show_subject(style: Style, subject: &Value) -> Outcome {
    if let Some(tool) = subject["tool"].as_str() {
        say_line(style, "tool", &shortened(tool))?;
    }
    if let Some(earlier) = subject["earlierCall"].as_object() {
        let by = match earlier["approvalId"].as_str() {
            Some(approval) => format!(", which the approval {approval} allowed,"),
            None => String::new(),
        };
        let edited = match earlier["isEdited"] == true {
            true => " Its reviewer had changed the arguments.",
            false => "",
        };
        let said = format!(
            "An earlier call with this content{by} may have been made: nobody got its answer.{edited} Look there before you \
             approve another one."
        );
        say_line(style, "made before", &terminal::printable(&said))?;
    }
    for (name, field) in [
        ("arguments", "arguments"),
        ("edited", "editedArguments"),
        ("context", "context"),
        ("form", "form"),
        ("answer", "answer"),
    ] {
        if !subject[field].is_null() {
            say(style.dim(name))?;
            say(whole(&subject[field]))?;
        }
    }
    Ok(())
}

/// A value as indented JSON, with an escape for each character that a terminal does not show, or that moves others.
fn whole(value: &Value) -> String {
    let text = format!("{value:#}");
    let mut shown = String::with_capacity(text.len() + 2);
    for (at, line) in text.lines().enumerate() {
        shown.push_str(if at == 0 { "  " } else { "\n  " });
        for c in line.chars() {
            match c {
                '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}' => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
                c if c.is_control() => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => shown.push(c),
            }
        }
    }
    shown
}

const NOBODY: &str = "nobody";

/// A person, as commands name one.
fn person(text: &str) -> Result<String, String> {
    match matches!(text, "me" | NOBODY) || text.contains('@') || names::is_id(text) {
        true => Ok(text.to_owned()),
        false => Err("expected me, nobody, an email address or an id".to_owned()),
    }
}

/// The fields of a body that name a person.
fn named(client: &mut Client, who: &str) -> Outcome<Value> {
    Ok(match who {
        NOBODY => json!({}),
        "me" => json!({"userId": client.get("/v1/identity/me/permissions")?["userId"]}),
        _ if who.contains('@') => json!({"email": who}),
        _ => json!({"userId": who}),
    })
}

fn assign(world: &World, arguments: &Assign) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let body = named(&mut client, &arguments.to)?;
    let path = format!("/v1/approvals/{}/assign", arguments.approval);
    let approval = client.post(&path, &body)?;
    if arguments.json {
        return say_json(&approval);
    }
    let title = shortened(approval["title"].as_str().unwrap_or("-"));
    terminal::note(format_args!(
        "{title}: assigned to {}.",
        terminal::printable(&arguments.to)
    ));
    Ok(())
}

fn escalate(world: &World, arguments: &Escalate) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let mut body = named(&mut client, arguments.to.as_deref().unwrap_or(NOBODY))?;
    for (field, value) in [
        ("requiredRole", &arguments.role),
        ("comment", &arguments.comment),
    ] {
        if let Some(value) = value {
            body[field] = json!(value);
        }
    }
    let path = format!("/v1/approvals/{}/escalate", arguments.approval);
    let approval = client.post(&path, &body)?;
    if arguments.json {
        return say_json(&approval);
    }
    let text = |field: &str| shortened(approval[field].as_str().unwrap_or("-"));
    terminal::note(format_args!(
        "{}: {} is asked now, in approval {}.",
        text("title"),
        text("requiredRole"),
        text("id")
    ));
    Ok(())
}

fn decide(world: &World, arguments: &Decide, (decision, edited): (&str, Option<&Path>)) -> Outcome {
    let is_stdin = |file: &&Path| file.as_os_str() == STDIN;
    let answer = arguments.answer.as_deref();
    if edited.is_some_and(|file| is_stdin(&file)) && answer.is_some_and(|file| is_stdin(&file)) {
        return Err(Failure::usage(
            "The arguments and the answer cannot both come from standard input.",
        ));
    }
    let json_of = |file| read_json(&arguments.which, file);
    let edited = edited.map(json_of).transpose()?;
    let answer = answer.map(json_of).transpose()?;
    let mut client = arguments.which.server(world)?.client();
    let read = read(&mut client, arguments.approval)?;
    let mut body = json!({"decision": decision, "expectedDigest": read["subject"]["digest"]});
    let comment = arguments.comment.as_ref().map(|comment| json!(comment));
    for (field, value) in [
        ("comment", comment),
        ("arguments", edited),
        ("answer", answer),
    ] {
        if let Some(value) = value {
            body[field] = value;
        }
    }
    let path = format!("/v1/approvals/{}/decide", arguments.approval);
    let decided = client.send(Method::POST, &path, Some(&body), &[]);
    let approval = decided.map_err(|failure| {
        match approval_form::wanted(&read["subject"]["form"], &body) {
            Some(wanted) => failure.with(&wanted),
            None => failure,
        }
    })?;
    if arguments.json {
        return say_json(&approval);
    }
    let subject = &approval["subject"];
    if !subject["editedArguments"].is_null() {
        terminal::note("asked for");
        terminal::note(whole(&subject["arguments"]));
        terminal::note("called with");
        terminal::note(whole(&subject["editedArguments"]));
    }
    let title = shortened(approval["title"].as_str().unwrap_or("-"));
    let status = shortened(approval["status"].as_str().unwrap_or("-"));
    terminal::note(format_args!("{title}: {status}."));
    Ok(())
}

fn read_json(which: &Which, file: &Path) -> Outcome<Value> {
    let text = input::read_beside(which, file, MAX_JSON_BYTES)?;
    input::json(&text, &input::name(file))
}

fn read(client: &mut Client, approval: Uuid) -> Outcome<Value> {
    client.get(&format!("/v1/approvals/{approval}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reviewer_reads_hides_nothing() {
        let to = "a\u{202e}b\u{200b}c\u{9b}d\u{2028}e\u{e9}";
        let long = "x".repeat(5_000);
        let shown = whole(&json!({"to": to, "long": long}));
        let to = r"a\u202eb\u200bc\u009bd\u2028eé";
        assert_eq!(
            shown,
            format!("  {{\n    \"to\": \"{to}\",\n    \"long\": \"{long}\"\n  }}")
        );
        let read: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read["long"], json!(long), "it is JSON still");
    }
}
