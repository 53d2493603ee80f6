//! `flow validate`: checks the definition of a flow, without a server. `flow push`: gives it to one.
//!
//! Not here: whether the tools, agents and flows that it names are there, which a server knows.

mod json;
mod push;
mod source;
#[cfg(test)]
mod tests;
mod yaml;

use super::terminal::{self, Style, printable};
use super::{Failure, Outcome, World, input};
use crate::flows::definition::fault::Fault;
use crate::flows::definition::references::ReferenceKind;
use crate::flows::definition::tree::Definition;
use crate::flows::definition::{Report, examine};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use source::Format;
pub(super) use source::Source;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  agent-runtime flow validate refund.yaml
  agent-runtime flow push refund.yaml --project billing";

const VALIDATE_EXAMPLES: &str = "\
Examples:
  agent-runtime flow validate refund.yaml
  agent-runtime flow validate - < refund.json
  agent-runtime flow validate refund.yaml --json | jq -r '.faults[] | \"\\(.line): \\(.message)\"'

Needs no server. Exit codes: 0 valid, 2 faults were found, 1 the file could not be read.";

/// The longest file, in bytes. A definition in YAML may have comments.
const FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The commands on definitions.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Command {
    /// Show every fault of a definition, with its line
    Validate(Validate),
    /// Make a definition a version of a flow of a running server
    Push(push::Push),
}

/// Arguments of `flow validate`.
#[derive(Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    /// The definition, in JSON or YAML; `-` is stdin
    file: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs one of the commands.
///
/// # Errors
/// The definition has faults, or cannot be read.
pub fn run(world: &World, command: &Command) -> Outcome {
    match command {
        Command::Validate(arguments) => validate(world, arguments),
        Command::Push(arguments) => push::run(world, arguments),
    }
}

fn validate(world: &World, arguments: &Validate) -> Outcome {
    let Examined {
        name,
        source,
        report,
    } = Examined::of(&arguments.file)?;
    match arguments.json {
        true => terminal::say_json(&described(&source, &report))?,
        false => show(&name, &source, &report, Style::of_stdout(&world.vars))?,
    }
    match report.definition {
        Some(_) => Ok(()),
        None => Err(Failure::found()),
    }
}

/// A file that was read and checked.
struct Examined {
    /// For a person.
    name: String,
    source: Source,
    /// Its faults in the order of the text.
    report: Report,
}

impl Examined {
    fn of(file: &Path) -> Outcome<Self> {
        let name = match file.to_str() {
            Some("-") => "stdin".to_owned(),
            _ => printable(&file.to_string_lossy()),
        };
        let text = input::read(file, FILE_BYTES)?;
        let (source, unreadable) = Source::read(&text, format_of(file, &text));
        let mut report = match unreadable {
            None => examine(&source.value),
            Some(fault) => Report {
                definition: None,
                faults: vec![fault],
                warnings: Vec::new(),
            },
        };
        let position = |fault: &Fault| {
            let at = source.line_column(fault);
            (at.line, at.column)
        };
        report.faults.sort_by_key(position);
        report.warnings.sort_by_key(position);
        Ok(Self {
            name,
            source,
            report,
        })
    }
}

pub(super) fn format_of(file: &Path, text: &str) -> Format {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Format::Json,
        Some("yaml" | "yml") => Format::Yaml,
        _ if text.trim_start().starts_with('{') => Format::Json,
        _ => Format::Yaml,
    }
}

/// The report for a program.
fn described(source: &Source, report: &Report) -> Value {
    let with_position = |fault: &Fault| {
        let mut described = json!(fault);
        let at = source.line_column(fault);
        if let Some(fields) = described.as_object_mut() {
            fields.insert("line".to_owned(), json!(at.line));
            fields.insert("column".to_owned(), json!(at.column));
        }
        described
    };
    let document = report.definition.as_ref().map(|found| &found.document);
    let references = report.definition.iter().flat_map(Definition::references);
    let references: Vec<Value> = references
        .map(|found| {
            json!({"type": kind_name(found.kind), "name": found.name, "version": found.version, "path": found.path})
        })
        .collect();
    json!({
        "valid": report.definition.is_some(),
        "flowId": document.map(|document| document.flow_id()),
        "version": document.map(|document| &document.version),
        "faults": report.faults.iter().map(with_position).collect::<Vec<_>>(),
        "warnings": report.warnings.iter().map(with_position).collect::<Vec<_>>(),
        "references": references,
    })
}

fn kind_name(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Tool => "tool",
        ReferenceKind::Agent => "agent",
        ReferenceKind::Flow => "flow",
    }
}

/// The report for a person.
fn show(name: &str, source: &Source, report: &Report, style: Style) -> Outcome {
    let faults = report
        .faults
        .iter()
        .map(|fault| (fault, style.red("fault")));
    let warnings = report
        .warnings
        .iter()
        .map(|fault| (fault, style.yellow("warning")));
    for (fault, word) in faults.chain(warnings) {
        terminal::say(shown((name, source), (fault, &word), style))?;
    }
    let Some(definition) = &report.definition else {
        let count = match report.faults.len() {
            1 => "1 fault".to_owned(),
            crate::flows::definition::fault::FAULTS_MOST => {
                format!("{} faults, and there may be more", report.faults.len())
            }
            count => format!("{count} faults"),
        };
        return terminal::say(format_args!("{name}: {count}"));
    };
    let document = &definition.document;
    let (id, version) = (document.flow_id(), &document.version);
    let valid = style.green("valid");
    terminal::say(format_args!("{name}: {valid}, {id} {version}"))?;
    let mut named: Vec<String> = Vec::new();
    for found in definition.references() {
        let one = format!("{} {}", kind_name(found.kind), printable(&found.name));
        if !named.contains(&one) {
            named.push(one);
        }
    }
    match named.is_empty() {
        true => Ok(()),
        false => terminal::say(style.dim(&format!(
            "It names, for the server to find: {}.",
            named.join(", ")
        ))),
    }
}

/// A fault with its line, as a compiler shows it.
fn shown((name, source): (&str, &Source), (fault, word): (&Fault, &str), style: Style) -> String {
    let at = source.line_column(fault);
    let number = at.line.to_string();
    let gutter = " ".repeat(number.len());
    let bar = style.dim("|");
    let lead: String = at
        .text
        .chars()
        .take(at.column - 1)
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let mut lines = vec![
        format!(
            "{name}:{number}:{}: {word}: {} [{}]",
            at.column,
            printable(&fault.message),
            fault.code.name()
        ),
        format!("{gutter} {bar}"),
        format!("{} {bar} {}", style.dim(&number), printable(&at.text)),
        format!(
            "{gutter} {bar} {lead}{}",
            style.red(&"^".repeat(at.width.max(1)))
        ),
    ];
    if let Some(hint) = &fault.hint {
        lines.push(format!("{gutter} {} {}", style.dim("="), printable(hint)));
    }
    lines.push(format!(
        "{gutter} {} {}",
        style.dim("at"),
        style.dim(&printable(&fault.path))
    ));
    lines.join("\n") + "\n"
}
