//! What expressions read of the variables of the service: what a run has to keep for them, and slips that would read null.

use super::fault::{Code, Fault};
use super::values::Scope;
use super::walk::{Location, Walk, with_nearest};
use expressions::{Expression, Reads};

/// The variables of the language with the fields that they have.
const FIELDS: [(&str, &[&str]); 3] = [
    ("workflow", &["id", "definition", "input", "startedAt"]),
    (
        "task",
        &["name", "reference", "definition", "input", "startedAt"],
    ),
    ("runtime", &["name", "version", "metadata"]),
];
/// The fields of a caught error.
const ERROR: &[&str] = &["type", "status", "title", "detail", "instance", "outcome"];

impl Walk<'_> {
    /// Notes what an expression reads, and warns of fields that do not exist. `errors`: variables of caught errors.
    pub(super) fn note_reads(&mut self, reads: &Reads, location: &Location, errors: &[String]) {
        self.needs.definition |= reads.may_read("workflow", "definition");
        self.needs.task_definition |= reads.may_read("task", "definition");
        self.needs.environment |= reads.may_read("runtime", "metadata");
        self.needs.task_input |= reads.may_read("task", "input");
        for (name, field) in &reads.variables {
            let Some(field) = field else { continue };
            let own = FIELDS.iter().find(|(known, _)| known == name);
            let known = match own {
                Some((_, known)) => *known,
                None if errors.contains(name) => ERROR,
                None => continue,
            };
            if known.contains(&field.as_str()) {
                continue;
            }
            let said = format!("`${name}` has no field `{field}`: this is null.");
            let fault = Fault::new(&location.path, Code::BadExpression, said);
            self.warn(with_nearest(fault, field, known));
        }
    }

    /// Warns of a condition on an error that looks for the error in `.`.
    pub(super) fn check_condition(
        &mut self,
        condition: &Expression,
        location: &Location,
        scope: &Scope,
    ) {
        let reads = condition.reads();
        let Some(error) = scope.error().filter(|error| !reads.has(error)) else {
            return;
        };
        if reads.input {
            let said = "`.` is the input of the `try` here, not the error.";
            let fault = Fault::new(&location.path, Code::BadExpression, said);
            self.warn(fault.hint(format!(
                "The error is `${error}`, such as in `${error}.status == 503`."
            )));
        }
    }
}
