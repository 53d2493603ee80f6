//! `use`: what a definition declares once and uses by name.
//!
//! A declaration is read wherever it is used, and its faults are told once. One that nothing uses is read at the end.

use super::around::Around;
use super::fault::{Code, Fault};
use super::unsupported::{self, Part};
use super::values::{Moment, Scope};
use super::walk::{Location, Walk, with_nearest};
use serde_json::Value;

/// What can be declared.
const KINDS: [&str; 4] = ["errors", "functions", "retries", "timeouts"];

impl<'a> Walk<'a> {
    /// Finds what `use` declares.
    pub(super) fn declarations(&mut self, found: Option<(&'a Value, Location)>) {
        let Some((value, location)) = found else {
            return;
        };
        let Some(mut fields) = self.object(value, &location) else {
            return;
        };
        for kind in KINDS {
            let Some((value, location)) = fields.take(kind) else {
                continue;
            };
            match value.as_object() {
                Some(map) => drop(self.declared.insert(kind, (map, location))),
                None => drop(self.object(value, &location)),
            }
        }
        if let Some((_, location)) = fields.take("secrets") {
            let said = unsupported::other("use.secrets");
            self.warn(Fault::new(&location.path, Code::Unsupported, said));
        }
        fields.close(self, Part::Use);
    }

    /// Reads the declarations that nothing uses, for their faults.
    pub(super) fn unused_declarations(&mut self) {
        let scope = Scope::outer();
        let caught = scope.with_error("error");
        for (kind, (map, location)) in self.declared.clone() {
            for (name, value) in map {
                if !self.used.insert((kind, name)) {
                    continue;
                }
                let location = location.key(name);
                match kind {
                    "errors" => drop(self.error(value, &location, &scope)),
                    "retries" => drop(self.retry(value, &location, (&caught, &scope))),
                    "timeouts" => {
                        let fields = self.object(value, &location);
                        let found = fields.is_some().then_some((value, location));
                        drop(self.timeout(found, (&scope, Moment::Before)));
                    }
                    _ => drop(self.function((name, value), &location, &Around::outer())),
                }
            }
        }
    }

    /// The names of a kind.
    pub(super) fn declared_names(&self, kind: &str) -> Vec<&'a str> {
        let found = self.declared.get(kind);
        let names = found.map(|(map, _)| map.keys().map(String::as_str).collect());
        names.unwrap_or_default()
    }

    /// A declaration by its name, and where it stands.
    pub(super) fn find_declared(
        &mut self,
        kind: &'static str,
        name: &'a str,
        location: &Location,
    ) -> Option<(&'a Value, Location)> {
        let found = self.declared.get(kind);
        let value = found.and_then(|(map, at)| Some((map.get(name)?, at.key(name))));
        if value.is_some() {
            self.used.insert((kind, name));
            return value;
        }
        let said = format!("`use.{kind}` has no `{name}`.");
        let fault = Fault::new(&location.path, Code::UnknownReference, said);
        let fault = match kind {
            "timeouts" => fault.hint("A timeout is written {\"after\": \"PT30S\"}."),
            _ => with_nearest(fault, name, &self.declared_names(kind)),
        };
        self.fault(fault);
        None
    }
}
