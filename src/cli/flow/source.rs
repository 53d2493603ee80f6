//! The text of a definition: its value, and where each part of it stands.

use super::parts::{Form, Part, Parts};
use super::{json, yaml};
use crate::flows::definition::fault::{Code, Fault, Span};
use serde_json::Value;
use std::ops::Range;

/// How a definition is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Format {
    Json,
    Yaml,
}

/// A definition's text, read.
pub(in crate::cli) struct Source {
    pub(in crate::cli) value: Value,
    characters: Vec<char>,
    parts: Parts,
}

/// Where a fault stands, for people: line and column from 1, the line, and how many characters of it are meant.
pub(in crate::cli) struct LineColumn {
    pub(in crate::cli) line: usize,
    pub(in crate::cli) column: usize,
    pub(in crate::cli) text: String,
    pub(in crate::cli) width: usize,
}

impl Source {
    /// Reads a text, and says what is wrong if it cannot be read. Its value is null then.
    pub(in crate::cli) fn read(text: &str, format: Format) -> (Self, Option<Fault>) {
        let read = match format {
            Format::Json => json::read(text),
            Format::Yaml => yaml::read(text),
        };
        let characters = text.chars().collect();
        let syntax = match read {
            Ok((value, parts)) => {
                let source = Self {
                    value,
                    characters,
                    parts,
                };
                return (source, None);
            }
            Err(syntax) => syntax,
        };
        let whole = Part {
            key: None,
            value: syntax.at..syntax.at + 1,
            form: Form::Word,
        };
        let source = Self {
            value: Value::Null,
            characters,
            parts: Parts::from([("$".to_owned(), whole)]),
        };
        let fault = Fault {
            path: "$".to_owned(),
            code: Code::BadSyntax,
            message: syntax.message,
            span: None,
            hint: syntax.hint.map(str::to_owned),
        };
        (source, Some(fault))
    }

    /// Where a fault stands.
    pub(in crate::cli) fn line_column(&self, fault: &Fault) -> LineColumn {
        let range = self.range(fault);
        let last = self.characters.len();
        let start = range.start.min(last);
        let before = self.characters.get(..start).unwrap_or_default();
        let line_start = start - self.column(start);
        let rest = self.characters.get(line_start..).unwrap_or_default();
        let is_end = |c: &&char| **c != '\n' && **c != '\r';
        let text: String = rest.iter().take_while(is_end).collect();
        let line_end = line_start + text.chars().count();
        LineColumn {
            line: before.iter().filter(|c| **c == '\n').count() + 1,
            column: start - line_start + 1,
            width: range.end.min(line_end).saturating_sub(start),
            text,
        }
    }

    /// How many characters stand before one on its line.
    fn column(&self, at: usize) -> usize {
        let before = self.characters.get(..at).unwrap_or_default();
        let line = before.iter().rposition(|c| *c == '\n');
        at - line.map_or(0, |line| line + 1)
    }

    fn range(&self, fault: &Fault) -> Range<usize> {
        let Some((is_whole, part)) = self.part(&fault.path) else {
            return 0..1;
        };
        if is_whole
            && let Some(span) = fault.span
            && let Some(range) = self.inside(part, span)
        {
            return range;
        }
        let is_of_field = matches!(fault.code, Code::UnknownField | Code::Unreachable);
        match &part.key {
            Some(key) if is_of_field || part.form == Form::Container => key.clone(),
            _ if part.form == Form::Container => part.value.start..part.value.start + 1,
            _ => part.value.clone(),
        }
    }

    /// The part with this path, or the innermost one around it.
    fn part(&self, path: &str) -> Option<(bool, &Part)> {
        let mut end = path.len();
        loop {
            let found = path.get(..end).and_then(|path| self.parts.get(path));
            if let Some(part) = found {
                return Some((end == path.len(), part));
            }
            end = path.get(..end)?.rfind(['.', '['])?;
        }
    }

    /// Where some characters of a text value stand.
    fn inside(&self, part: &Part, span: Span) -> Option<Range<usize>> {
        let raw = self.characters.get(part.value.clone())?;
        let offsets = match part.form {
            Form::Bare => (0..=raw.len()).collect(),
            Form::Double => escaped(raw),
            Form::Single => doubled(raw),
            Form::Block => block(raw, self.column(part.value.start)),
            Form::Word | Form::Folded | Form::Container => return None,
        };
        let at = |index: usize| offsets.get(index).map(|offset| part.value.start + offset);
        let start = at(span.start)?;
        // What is missing at the end is shown behind the last character.
        Some(start..at(span.end)?.max(start + 1))
    }
}

/// Where each character of a text in double quotes begins, and where it ends.
fn escaped(raw: &[char]) -> Vec<usize> {
    let mut offsets = Vec::new();
    let mut at = 1;
    while let Some(c) = raw.get(at).filter(|c| **c != '"') {
        offsets.push(at);
        let is_pair = |at: usize| {
            let digits: String = raw.iter().skip(at + 2).take(2).collect();
            let is_high = matches!(digits.to_lowercase().as_str(), "d8" | "d9" | "da" | "db");
            is_high && raw.get(at + 6) == Some(&'\\')
        };
        at += match (c, raw.get(at + 1)) {
            ('\\', Some('u')) if is_pair(at) => 12,
            ('\\', Some('u')) => 6,
            ('\\', Some('x')) => 4,
            ('\\', Some('U')) => 10,
            ('\\', Some(_)) => 2,
            _ => 1,
        };
    }
    offsets.push(at);
    offsets
}

fn doubled(raw: &[char]) -> Vec<usize> {
    let mut offsets = Vec::new();
    let mut at = 1;
    while at + 1 < raw.len() {
        offsets.push(at);
        at += match (raw.get(at), raw.get(at + 1)) {
            (Some('\''), Some('\'')) if at + 2 < raw.len() => 2,
            _ => 1,
        };
    }
    offsets.push(at);
    offsets
}

/// The first line, and the lines after it without the indentation that it has.
fn block(raw: &[char], indentation: usize) -> Vec<usize> {
    let mut offsets = Vec::new();
    let mut at = 0;
    for line in raw.split_inclusive(|c| *c == '\n') {
        let blanks = line.iter().take_while(|c| **c == ' ').count();
        let skipped = if at == 0 { 0 } else { blanks.min(indentation) };
        offsets.extend(at + skipped..at + line.len());
        at += line.len();
    }
    offsets.push(raw.len());
    offsets
}
