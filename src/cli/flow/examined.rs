//! A definition that was examined, and how its faults are shown.

use super::source::{Format, Source};
use crate::cli::terminal::{self, Style, printable};
use crate::cli::{Outcome, input};
use crate::flows::definition::fault::Fault;
use crate::flows::definition::references::ReferenceKind;
use crate::flows::definition::tree::Definition;
use crate::flows::definition::{Report, examine};
use serde_json::{Value, json};
use std::path::Path;

/// A file that was read and checked.
pub(super) struct Examined {
    /// For a person.
    pub(super) name: String,
    pub(super) source: Source,
    /// Its faults in the order of the text.
    pub(super) report: Report,
}

impl Examined {
    pub(super) fn of(file: &Path) -> Outcome<Self> {
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

/// The report for a program.
pub(super) fn described(source: &Source, report: &Report) -> Value {
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

pub(super) fn kind_name(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Tool => "tool",
        ReferenceKind::Agent => "agent",
        ReferenceKind::Flow => "flow",
    }
}

/// The report for a person.
pub(super) fn show(name: &str, source: &Source, report: &Report, style: Style) -> Outcome {
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
pub(super) fn shown(
    (name, source): (&str, &Source),
    (fault, word): (&Fault, &str),
    style: Style,
) -> String {
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

/// The longest file, in bytes. A definition in YAML may have comments.
pub(super) const FILE_BYTES: u64 = 4 * 1024 * 1024;

pub(in crate::cli) fn format_of(file: &Path, text: &str) -> Format {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Format::Json,
        Some("yaml" | "yml") => Format::Yaml,
        _ if text.trim_start().starts_with('{') => Format::Json,
        _ => Format::Yaml,
    }
}
