//! What all parts of the check share: the location in the text, the fields of an object, and what was found.
//!
//! A reader of a part tells what is wrong and answers `None`; the other parts are read all the same. So an author sees
//! all faults at once.

use super::error_types::Types;
use super::fault::{Code, FAULTS_MOST, Fault, key_path};
use super::references::Reference;
use super::tree::Needs;
use super::unsupported;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Where something stands in a definition.
#[derive(Debug, Clone)]
pub(super) struct Location {
    /// As a JSON path, for people.
    pub(super) path: String,
    /// As a JSON pointer, for programs.
    pub(super) pointer: String,
}

impl Location {
    pub(super) fn root() -> Self {
        Self {
            path: "$".to_owned(),
            pointer: String::new(),
        }
    }

    pub(super) fn key(&self, key: &str) -> Self {
        Self {
            path: key_path(&self.path, key),
            pointer: format!(
                "{}/{}",
                self.pointer,
                key.replace('~', "~0").replace('/', "~1")
            ),
        }
    }

    pub(super) fn index(&self, index: usize) -> Self {
        Self {
            path: format!("{}[{index}]", self.path),
            pointer: format!("{}/{index}", self.pointer),
        }
    }
}

/// The check under way.
#[derive(Debug, Default)]
pub(super) struct Walk<'a> {
    pub(super) faults: Vec<Fault>,
    pub(super) warnings: Vec<Fault>,
    pub(super) references: Vec<Reference>,
    /// Tasks read so far.
    pub(super) tasks: usize,
    /// What `use` declares, by kind, and where each kind stands.
    pub(super) declared: BTreeMap<&'static str, (&'a Map<String, Value>, Location)>,
    /// The declarations that something uses: kind and name.
    pub(super) used: BTreeSet<(&'static str, &'a str)>,
    /// What its expressions read that a run does not keep otherwise.
    pub(super) needs: Needs,
    /// The types of errors that it catches and raises.
    pub(super) types: Types,
}

/// What `use` declares is read wherever it is used, so everything that is found there is kept once.
fn push_once<T: PartialEq>(all: &mut Vec<T>, one: T, most: usize) {
    if all.len() < most && !all.contains(&one) {
        all.push(one);
    }
}

impl Walk<'_> {
    pub(super) fn fault(&mut self, fault: Fault) {
        push_once(&mut self.faults, fault, FAULTS_MOST);
    }

    pub(super) fn tell(&mut self, location: &Location, code: Code, message: impl Into<String>) {
        self.fault(Fault::new(&location.path, code, message));
    }

    pub(super) fn warn(&mut self, fault: Fault) {
        push_once(&mut self.warnings, fault, FAULTS_MOST);
    }

    pub(super) fn refer(&mut self, reference: Reference) {
        push_once(&mut self.references, reference, usize::MAX);
    }

    /// An object's fields.
    pub(super) fn object<'a>(
        &mut self,
        value: &'a Value,
        location: &Location,
    ) -> Option<Fields<'a>> {
        let Some(map) = value.as_object() else {
            let said = format!("An object is expected, not {}.", kind_of(value));
            self.tell(location, Code::BadValue, said);
            return None;
        };
        Some(Fields {
            map,
            location: location.clone(),
            known: Vec::new(),
        })
    }

    pub(super) fn text<'a>(&mut self, value: &'a Value, location: &Location) -> Option<&'a str> {
        let text = value.as_str();
        if text.is_none() {
            let said = format!("A text is expected, not {}.", kind_of(value));
            self.tell(location, Code::BadValue, said);
        }
        text
    }

    /// A text of these many characters, without control characters.
    pub(super) fn short_text(
        &mut self,
        value: &Value,
        location: &Location,
        most: usize,
    ) -> Option<String> {
        let text = self.text(value, location)?;
        let length = text.chars().count();
        if !(1..=most).contains(&length) || text.chars().any(char::is_control) {
            let said =
                format!("A text of 1 to {most} characters without control characters is expected.");
            self.tell(location, Code::BadValue, said);
            return None;
        }
        Some(text.to_owned())
    }

    /// A text that is taken as it is: a name that is looked up when the definition is made, or what events carry.
    pub(super) fn literal(
        &mut self,
        value: &Value,
        location: &Location,
        most: usize,
    ) -> Option<String> {
        let text = self.short_text(value, location, most)?;
        if text.contains("${") {
            let fault = Fault::new(
                &location.path,
                Code::BadValue,
                "This text cannot be computed: it has to be known when the definition is made.",
            );
            self.fault(fault.hint("Write it out. Use `switch` to choose between several tasks."));
            return None;
        }
        Some(text)
    }

    pub(super) fn boolean(&mut self, value: &Value, location: &Location) -> Option<bool> {
        let found = value.as_bool();
        if found.is_none() {
            let said = format!("true or false is expected, not {}.", kind_of(value));
            self.tell(location, Code::BadValue, said);
        }
        found
    }

    pub(super) fn whole(
        &mut self,
        value: &Value,
        location: &Location,
        (least, most): (u32, u32),
    ) -> Option<u32> {
        let found = value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| (least..=most).contains(number));
        if found.is_none() {
            let said = format!("A whole number from {least} to {most} is expected.");
            self.tell(location, Code::BadValue, said);
        }
        found
    }

    /// One of these texts.
    pub(super) fn choice<T: Copy>(
        &mut self,
        value: &Value,
        location: &Location,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(value, location)?;
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let said = format!("`{text}` is not one of the choices.");
            let fault = Fault::new(&location.path, Code::BadValue, said);
            self.fault(with_nearest(fault, text, &names));
        }
        found.map(|(_, choice)| *choice)
    }
}

/// The fields of an object. Those that nobody asked for are told at its end.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    pub(super) location: Location,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// A field, if it is there.
    pub(super) fn take(&mut self, name: &'static str) -> Option<(&'a Value, Location)> {
        self.known.push(name);
        let value = self.map.get(name)?;
        Some((value, self.location.key(name)))
    }

    /// A field that has to be there.
    pub(super) fn need(
        &mut self,
        walk: &mut Walk<'_>,
        name: &'static str,
    ) -> Option<(&'a Value, Location)> {
        let found = self.take(name);
        if found.is_none() {
            let said = format!("`{name}` is missing.");
            walk.fault(Fault::new(&self.location.path, Code::MissingField, said));
        }
        found
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Whether a field is here that nobody asked for.
    pub(super) fn has_unknown(&self) -> bool {
        let mut names = self.map.keys();
        names.any(|name| !self.known.contains(&name.as_str()))
    }

    /// Tells the fields that are not known here.
    pub(super) fn close(self, walk: &mut Walk<'_>, part: unsupported::Part) {
        for name in self.map.keys() {
            if self.known.contains(&name.as_str()) {
                continue;
            }
            let location = self.location.key(name);
            if let Some(sentence) = unsupported::field(part, name) {
                walk.tell(&location, Code::Unsupported, sentence);
                continue;
            }
            let said = format!("There is no field `{name}` here.");
            let fault = Fault::new(&location.path, Code::UnknownField, said);
            let fault =
                match unsupported::slip(name).filter(|(_, meant)| self.known.contains(meant)) {
                    Some((_, meant)) => fault.hint(format!("Did you mean `{meant}`?")),
                    None => with_nearest(fault, name, &self.known),
                };
            walk.fault(fault);
        }
    }
}

/// The fault with the name that may be meant, or all that there are.
pub(super) fn with_nearest(fault: Fault, name: &str, known: &[&str]) -> Fault {
    if let Some(nearest) = nearest(name, known) {
        return fault.hint(format!("Did you mean `{nearest}`?"));
    }
    let mut said = String::new();
    for name in known.iter().take(20) {
        let joint = if said.is_empty() { "" } else { ", " };
        let _ = write!(said, "{joint}{name}");
    }
    match said.is_empty() {
        true => fault,
        false => fault.hint(format!("Known here: {said}.")),
    }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let measured = known.iter().map(|known| (distance(name, known), *known));
    let (changes, nearest) = measured.min_by_key(|(changes, _)| *changes)?;
    (changes <= 2 && changes * 2 < name.chars().count().max(3)).then_some(nearest)
}

/// Single-character changes between two names, cut to 100 characters; two letters that changed places are one.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().take(100).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(100).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut cell = (rows[i][j] + usize::from(from != to))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                cell = cell.min(rows[i - 1][j - 1] + 1);
            }
            row.push(cell);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
