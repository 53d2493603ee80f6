//! Formats of a record: a JSON object on one line, the same for the journal, or a line for a
//! terminal.
//!
//! Every format escapes what could end a line or control a terminal, so no text can forge a record.

use super::level::Level;
use super::options::Format;
use serde_json::Value;
use std::fmt::Write;

/// A record whose values are already redacted.
pub(super) struct Entry {
    pub(super) time: String,
    pub(super) level: Level,
    pub(super) subsystem: &'static str,
    pub(super) message: Value,
    /// Correlation fields, then the event's own. Keys are unique.
    pub(super) fields: Vec<(String, Value)>,
}

impl Entry {
    /// The record's text, including its final newline.
    pub(super) fn write(&self, format: Format) -> String {
        let mut out = String::with_capacity(512);
        match format {
            Format::Json => self.json(&mut out),
            Format::Journal => {
                // Writing to a String does not fail.
                let _ = write!(out, "<{}>", self.level.priority());
                self.json(&mut out);
            }
            Format::Pretty { colours } => self.pretty(&mut out, colours),
        }
        out.push('\n');
        out
    }

    fn json(&self, out: &mut String) {
        let fixed = [
            ("time", self.time.as_str()),
            ("level", self.level.text()),
            ("severity", self.level.severity()),
            ("subsystem", self.subsystem),
        ];
        for (index, (key, text)) in fixed.into_iter().enumerate() {
            out.push(if index == 0 { '{' } else { ',' });
            json_text(out, key);
            out.push(':');
            json_text(out, text);
        }
        out.push_str(",\"message\":");
        json(out, &self.message);
        for (key, value) in &self.fields {
            out.push(',');
            json_text(out, key);
            out.push(':');
            json(out, value);
        }
        out.push('}');
    }

    fn pretty(&self, out: &mut String, colours: bool) {
        let paint = |on: &'static str| if colours { on } else { "" };
        let (dim, off) = (paint("\x1b[2m"), paint("\x1b[0m"));
        let colour = paint(match self.level {
            Level::Error => "\x1b[31m",
            Level::Warn => "\x1b[33m",
            Level::Info => "\x1b[32m",
            Level::Debug => "\x1b[34m",
            Level::Trace => "\x1b[35m",
        });
        let level = self.level.word();
        // Writing to a String does not fail.
        let _ = write!(
            out,
            "{dim}{}{off} {colour}{level:5}{off} {:<16} ",
            self.time, self.subsystem
        );
        match &self.message {
            Value::String(message) => escaped(out, message),
            other => json(out, other),
        }
        let mut below = Vec::new();
        for (key, value) in &self.fields {
            match value {
                Value::Object(parts) if key == "error" => {
                    for (part, value) in parts {
                        match value {
                            Value::String(stack) if part == "stack" => below.push(stack),
                            Value::Null => {}
                            value => pair(out, &format!("{key}.{part}"), value, (dim, off)),
                        }
                    }
                }
                value => pair(out, key, value, (dim, off)),
            }
        }
        for line in below.into_iter().flat_map(|stack| stack.split('\n')) {
            out.push_str("\n    ");
            escaped(out, line);
        }
    }
}

impl Level {
    /// The level, coloured.
    fn word(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }
}

fn pair(out: &mut String, key: &str, value: &Value, (dim, off): (&str, &str)) {
    out.push_str("  ");
    out.push_str(dim);
    escaped(out, key);
    out.push('=');
    out.push_str(off);
    let plain = |c: char| c.is_alphanumeric() || "-_.:/+@[]*".contains(c);
    match value {
        Value::String(text) if !text.is_empty() && text.chars().all(plain) => out.push_str(text),
        value => json(out, value),
    }
}

/// Whether a character could end a line, control a terminal or reorder the text.
pub(super) fn is_escaped(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        if is_escaped(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
}

fn json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) => json_text(out, text),
        Value::Array(list) => {
            out.push('[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                json(out, value);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (index, (key, value)) in object.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                json_text(out, key);
                out.push(':');
                json(out, value);
            }
            out.push('}');
        }
    }
}

fn json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_escaped(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
