//! The output of `check-config`: every setting, the source of its value, and what is wrong.

use super::read::{Origination, Reading, Row};
use super::table::State;
use super::{Fault, license};
use serde::Serialize;
use std::fmt::Write;

/// The report on an environment. It holds no secret.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether the server would start.
    pub ok: bool,
    /// Whether it would be in development mode; none if `SVC_DEV` itself is wrong.
    pub development: Option<bool>,
    /// Every setting, in the table's order.
    pub settings: Vec<ReportRow>,
    /// The license, if a valid one was given.
    pub license: Option<license::Claims>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// The warnings that the server would log at the start.
    pub warnings: Vec<String>,
}

/// One setting.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportRow {
    /// The variable.
    pub name: &'static str,
    /// Its value; `[redacted]` for a secret, none if it has none or it is wrong.
    pub value: Option<String>,
    /// `environment`, `file PATH`, `credential PATH`, `default` or `not set`.
    pub source: String,
    /// The default.
    pub default: &'static str,
    /// The feature of this setting, if this version does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_built: Option<&'static str>,
}

/// The report of a reading.
pub(super) fn of(reading: Reading) -> Report {
    Report {
        ok: reading.faults.is_empty(),
        development: reading.development,
        settings: reading.rows.iter().map(row).collect(),
        license: reading.license,
        faults: reading.faults,
        warnings: reading.warnings,
    }
}

fn row(row: &Row) -> ReportRow {
    ReportRow {
        name: row.setting.name,
        value: row.shown.clone(),
        source: match &row.from {
            Origination::Environment => "environment".to_owned(),
            Origination::File(path) => format!("file {}", path.display()),
            Origination::Credential(path) => format!("credential {}", path.display()),
            Origination::Default => "default".to_owned(),
            Origination::Unset => "not set".to_owned(),
        },
        default: row.setting.absent.text(),
        not_built: match row.setting.state {
            State::NotBuilt(feature) => Some(feature),
            State::Built | State::Reserved => None,
        },
    }
}

impl Report {
    /// For people: one line a setting, then the faults.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mode = match self.development {
            Some(true) => "development",
            Some(false) => "production",
            None => "unknown",
        };
        line(&mut text, format_args!("mode: {mode}"));
        let built = self.settings.iter().filter(|row| row.not_built.is_none());
        for row in built {
            let value = match &row.value {
                Some(value) => format!("{}={}", row.name, printable(value)),
                None => row.name.to_owned(),
            };
            let source = match row.source.as_str() {
                "not set" if row.default != "not set" => format!("not set: {}", row.default),
                "not set" => "not set".to_owned(),
                source if row.value.is_none() => format!("{source}, refused: see below"),
                source => source.to_owned(),
            };
            line(&mut text, format_args!("{value}  ({})", printable(&source)));
        }
        if let Some(license) = &self.license {
            line(
                &mut text,
                format_args!(
                    "license: {} for {}, until {}",
                    printable(&license.id),
                    printable(&license.licensee),
                    crate::ids::rfc3339::text(license.expires_at)
                ),
            );
        }
        for warning in &self.warnings {
            line(&mut text, format_args!("warning: {warning}"));
        }
        for fault in &self.faults {
            line(&mut text, format_args!("fault: {fault}"));
        }
        match self.faults.len() {
            0 => line(&mut text, format_args!("The settings are right.")),
            1 => line(
                &mut text,
                format_args!("1 fault: the server would not start."),
            ),
            n => line(
                &mut text,
                format_args!("{n} faults: the server would not start."),
            ),
        }
        text
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let written = writeln!(text, "{arguments}");
    debug_assert!(written.is_ok(), "a String takes everything");
}

/// A foreign value made safe for a terminal.
fn printable(value: &str) -> String {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    value.chars().map(plain).collect()
}
