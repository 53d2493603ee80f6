//! What `agents push`, `tools push` and `policies put` send: an object in a file, in JSON or YAML.
//!
//! Guarantees: a fault of the file, found here or by the server, is told with its line and column. A name that the server does
//! not know is such a fault. Nothing is sent if there is one.

use super::client::{Client, Which, refused};
use super::flow::{Source, format_of};
use super::terminal::printable;
use super::{Failure, Outcome, input};
use crate::flows::definition::fault::{Code, Fault, key_path};
use crate::outbound::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::Path;

/// The longest file, in bytes: that of the largest body that is made of it.
const FILE_BYTES: u64 = 2 * 1024 * 1024;

/// A file that was read.
pub(super) struct Pushed {
    name: String,
    source: Source,
    /// The fields of its object.
    pub(super) fields: Map<String, Value>,
}

/// Where a field of a request's body stands in the file: its path there, and the one here.
pub(super) type Renamed<'r> = (&'r str, &'r str);

impl Pushed {
    /// Reads a file whose object has these fields and no others.
    ///
    /// # Errors
    /// It cannot be read, is no object, or has another field.
    pub(super) fn read(which: &Which, file: &Path, fields: &[&str]) -> Outcome<Self> {
        let text = input::read_beside(which, file, FILE_BYTES)?;
        let (source, unreadable) = Source::read(&text, format_of(file, &text));
        let mut pushed = Self {
            name: input::name(file),
            source,
            fields: Map::new(),
        };
        if let Some(fault) = unreadable {
            return Err(pushed.wrong(&[fault]));
        }
        let Value::Object(found) = &pushed.source.value else {
            return Err(pushed.fault("$", "This is no object with fields."));
        };
        let unknown: Vec<Fault> = found
            .keys()
            .filter(|name| !fields.contains(&name.as_str()))
            .map(|name| Fault {
                code: Code::UnknownField,
                ..fault_at(
                    &key_path("$", name),
                    format!(
                        "No field has this name here. There are: {}.",
                        fields.join(", ")
                    ),
                )
            })
            .collect();
        if !unknown.is_empty() {
            return Err(pushed.wrong(&unknown));
        }
        pushed.fields = found.clone();
        Ok(pushed)
    }

    /// A field that has to be a text.
    ///
    /// # Errors
    /// It is missing, or no text.
    pub(super) fn text(&self, field: &str) -> Outcome<&str> {
        match self.fields.get(field) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(self.fault(&key_path("$", field), "Expected a text.")),
            None => Err(self.fault("$", &format!("The field {field} is missing."))),
        }
    }

    /// The project: the one that the command names, else the one that the file does.
    ///
    /// # Errors
    /// Neither names one.
    pub(super) fn project<'p>(&'p self, named: Option<&'p str>) -> Outcome<&'p str> {
        match named {
            Some(named) => Ok(named),
            None if self.fields.contains_key("project") => self.text("project"),
            None => Err(Failure::usage(
                "Name the project: with --project, or with the field project of the file.",
            )),
        }
    }

    /// What is wrong at a path of the file.
    pub(super) fn fault(&self, path: &str, message: &str) -> Failure {
        self.wrong(&[fault_at(path, message)])
    }

    /// What is wrong in the file, found without sending it.
    fn wrong(&self, faults: &[Fault]) -> Failure {
        let lines: Vec<String> = faults.iter().map(|fault| self.line(fault)).collect();
        Failure::usage(lines.join("\n"))
    }

    fn line(&self, fault: &Fault) -> String {
        let at = self.source.line_column(fault);
        let line = format!(
            "{}:{}:{}: {}: {}",
            self.name,
            at.line,
            at.column,
            printable(&fault.path),
            printable(&fault.message)
        );
        match &fault.hint {
            Some(hint) => format!("{line} {hint}"),
            None => line,
        }
    }

    /// Sends a body that was made of the file. `renamed`: the fields that have another name there.
    ///
    /// # Errors
    /// The server does not take it, with the line of each of its faults.
    pub(super) fn post(
        &self,
        client: &mut Client,
        path: &str,
        body: &Value,
        renamed: &[Renamed<'_>],
    ) -> Outcome<Value> {
        let sent = client.exchange(Method::POST, path, Some(body), &[])?;
        self.answered(client, sent, renamed)
    }

    /// As [`Self::post`], to put what the file says.
    ///
    /// # Errors
    /// The server does not take it, with the line of each of its faults.
    pub(super) fn put(&self, client: &mut Client, path: &str, body: &Value) -> Outcome<Value> {
        let sent = client.exchange(Method::PUT, path, Some(body), &[])?;
        self.answered(client, sent, &[])
    }

    fn answered(
        &self,
        client: &Client,
        (status, answer): (u16, Value),
        renamed: &[Renamed<'_>],
    ) -> Outcome<Value> {
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let refusal = refused(client.url(), status, &answer);
        let faults = self.faults_of(&answer["error"], renamed);
        if faults.is_empty() {
            return Err(refusal);
        }
        let lines: Vec<String> = faults.iter().map(|fault| self.line(fault)).collect();
        Err(refusal.with(&lines.join("\n")))
    }

    /// The faults of a body that an error names by their paths, at their places in the file.
    fn faults_of(&self, error: &Value, renamed: &[Renamed<'_>]) -> Vec<Fault> {
        let details = &error["details"];
        let listed = details["faults"].as_array().map(Vec::as_slice);
        let all = listed.unwrap_or(std::slice::from_ref(details));
        let faults = all.iter().filter_map(|fault| {
            let path = fault["path"].as_str()?;
            let message = fault["message"].as_str().or(error["message"].as_str())?;
            Some(fault_at(&in_file(path, renamed), message))
        });
        faults.collect()
    }
}

fn fault_at(path: &str, message: impl Into<String>) -> Fault {
    Fault {
        path: path.to_owned(),
        code: Code::BadValue,
        message: message.into(),
        span: None,
        hint: None,
    }
}

/// The path in the file of a path in the body.
fn in_file(path: &str, renamed: &[Renamed<'_>]) -> String {
    let found = renamed.iter().find_map(|(own, there)| {
        let rest = path.strip_prefix(own)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then(|| format!("{there}{rest}"))
    });
    found.unwrap_or_else(|| path.to_owned())
}

/// A value as the server keeps it: what is left out has its default. None: it is not of this type, which the server says.
pub(super) fn kept<T: Serialize + DeserializeOwned>(value: &Value) -> Option<Value> {
    let value: T = serde_json::from_value(value.clone()).ok()?;
    serde_json::to_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_body_is_one_of_the_file() {
        let renamed = [("$.toolIds", "$.tools"), ("$.agent.id", "$.agent")];
        for (path, expected) in [
            ("$.toolIds", "$.tools"),
            ("$.toolIds[2]", "$.tools[2]"),
            ("$.toolIdsOther", "$.toolIdsOther"),
            ("$.agent.id", "$.agent"),
            ("$.name", "$.name"),
        ] {
            assert_eq!(in_file(path, &renamed), expected);
        }
    }
}
