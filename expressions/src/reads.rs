//! What an expression reads, found in its text alone.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::tree::{Part, Pattern, Piece, Step, Term};

/// What an expression may read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// Its input, by `.` or a function.
    pub input: bool,
    /// Its variables with the field that is read. `None`: the whole value, or a field that is computed.
    pub variables: BTreeSet<(String, Option<String>)>,
}

impl Reads {
    pub(crate) fn of(root: &Term, variables: &[String]) -> Self {
        let mut reads = Self::default();
        reads.term(root, variables, true);
        reads
    }

    /// Whether the variable is read.
    pub fn has(&self, variable: &str) -> bool {
        self.variables.iter().any(|(name, _)| name == variable)
    }

    /// Whether this field of the variable may be read.
    pub fn may_read(&self, variable: &str, field: &str) -> bool {
        let mut read = self.variables.iter();
        read.any(|(name, of)| name == variable && of.as_deref().is_none_or(|of| of == field))
    }

    /// `outer`: `.` of the term is the input of the expression.
    fn term(&mut self, term: &Term, given: &[String], outer: bool) {
        match term {
            Term::Constant(_) => {}
            Term::Identity | Term::Format(_) => self.input |= outer,
            Term::Text { pieces, .. } => self.pieces(pieces, given, outer),
            // Those that the expression binds itself come after the given ones.
            Term::Variable(place) => {
                if let Some(name) = given.get(*place) {
                    self.variables.insert((name.clone(), None));
                }
            }
            Term::Array(inner) => {
                if let Some(inner) = inner {
                    self.term(inner, given, outer);
                }
            }
            Term::Object(entries) => {
                for (key, value) in entries {
                    self.term(key, given, outer);
                    self.term(value, given, outer);
                }
            }
            Term::Negate(inner) => self.term(inner, given, outer),
            Term::Pipe(stages) => {
                for (at, stage) in stages.iter().enumerate() {
                    self.term(stage, given, outer && at == 0);
                }
            }
            Term::Comma(terms) | Term::Alternative(terms) => self.terms(terms, given, outer),
            Term::Chain(first, rest) => {
                self.term(first, given, outer);
                for (_, term) in rest {
                    self.term(term, given, outer);
                }
            }
            Term::Access(base, steps) => self.access(base, steps, (given, outer)),
            Term::If {
                branches,
                otherwise,
            } => {
                for (condition, then) in branches {
                    self.term(condition, given, outer);
                    self.term(then, given, outer);
                }
                match otherwise {
                    Some(otherwise) => self.term(otherwise, given, outer),
                    None => self.input |= outer,
                }
            }
            Term::Try { body, catch } => {
                self.term(body, given, outer);
                if let Some(catch) = catch {
                    self.term(catch, given, false);
                }
            }
            Term::Bind {
                source,
                pattern,
                body,
            } => {
                self.term(source, given, outer);
                self.pattern(pattern, given, outer);
                self.term(body, given, outer);
            }
            Term::Call(_, arguments) => {
                self.input |= outer;
                self.terms(arguments, given, outer);
            }
        }
    }

    fn terms(&mut self, terms: &[Term], given: &[String], outer: bool) {
        for term in terms {
            self.term(term, given, outer);
        }
    }

    fn pieces(&mut self, pieces: &[Piece], given: &[String], outer: bool) {
        for piece in pieces {
            if let Piece::Interpolated(term) = piece {
                self.term(term, given, outer);
            }
        }
    }

    fn access(&mut self, base: &Term, steps: &[Step], (given, outer): (&[String], bool)) {
        let variable = match base {
            Term::Variable(place) => given.get(*place),
            _ => None,
        };
        let field = match steps.first().map(|step| &step.part) {
            Some(Part::Index(Term::Constant(Json::String(field)))) => Some(field),
            _ => None,
        };
        match (variable, field) {
            (Some(variable), Some(field)) => {
                let read = (variable.clone(), Some(field.clone()));
                self.variables.insert(read);
            }
            _ => self.term(base, given, outer),
        }
        for step in steps {
            match &step.part {
                Part::Index(term) => self.term(term, given, outer),
                Part::Slice(from, until) => {
                    for bound in [from, until].into_iter().flatten() {
                        self.term(bound, given, outer);
                    }
                }
                Part::Each => {}
            }
        }
    }

    fn pattern(&mut self, pattern: &Pattern, given: &[String], outer: bool) {
        match pattern {
            Pattern::Variable => {}
            Pattern::Array(parts) => {
                for part in parts {
                    self.pattern(part, given, outer);
                }
            }
            Pattern::Object(entries) => {
                for (key, _, part) in entries {
                    self.term(key, given, outer);
                    if let Some(part) = part {
                        self.pattern(part, given, outer);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Expression;

    /// The variables as `name.field` or `name`, and `.` for the input.
    fn reads(source: &str) -> Vec<String> {
        let known = ["error", "task"];
        let reads = Expression::parse(source, &known).unwrap().reads();
        let named = reads.variables.iter().map(|(name, field)| match field {
            Some(field) => format!("{name}.{field}"),
            None => name.clone(),
        });
        reads
            .input
            .then(|| ".".to_owned())
            .into_iter()
            .chain(named)
            .collect()
    }

    #[test]
    fn what_is_read_is_found_wherever_it_stands() {
        for (source, expected) in [
            ("1", vec![]),
            (".status == 503", vec!["."]),
            ("length > 3", vec!["."]),
            ("$error.status == 503", vec!["error.status"]),
            ("$error[\"status\"] | . > 500", vec!["error.status"]),
            ("$error | .status == 503", vec!["error"]),
            ("$error[$task.name]", vec!["error", "task.name"]),
            ("$error as {status: $s} | $s > 500", vec!["error"]),
            ("$error as $error | $error.status", vec!["error"]),
            ("[.a, $error.title]", vec![".", "error.title"]),
            ("{a: $error.title, $task}", vec!["error.title", "task"]),
            (
                "if $error.status == 1 then 1 end",
                vec![".", "error.status"],
            ),
            (
                "if $error.status == 1 then 1 else 2 end",
                vec!["error.status"],
            ),
            ("\"\\($task.name): \\(.x)\"", vec![".", "task.name"]),
            ("try error(\"a\") catch .", vec!["."]),
            ("try $error.a catch .", vec!["error.a"]),
            ("-$error.a // $task.b", vec!["error.a", "task.b"]),
            ("[$error.list[] | select(.a)]", vec!["error.list"]),
            (
                "$error.list[.from:$task.to]",
                vec![".", "error.list", "task.to"],
            ),
        ] {
            assert_eq!(reads(source), expected, "{source}");
        }
        let whole = Expression::parse("$task", &["task"]).unwrap().reads();
        assert!(whole.may_read("task", "input") && whole.has("task"));
        let name = Expression::parse("$task.name", &["task"]).unwrap().reads();
        assert!(name.may_read("task", "name") && !name.may_read("task", "input"));
    }
}
