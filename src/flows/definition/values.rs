//! The values of a definition: expressions, templates, times, schemas.
//!
//! A string that is wholly `${ … }` is an expression. Fields that are always expressions take the bare text too. What a
//! run's data contains is never searched for expressions.

use super::duration;
use super::fault::{Code, Fault, Span};
use super::tree::{LONGEST, Schema, Shape, Template, Time};
use super::unsupported::Part;
use super::walk::{Location, Walk, kind_of};
use crate::tools::schema;
use expressions::Expression;
use serde_json::Value;
use std::time::Duration;

/// What an expression sees beside its input.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    /// Variables of loops and of caught errors, outermost first.
    named: Vec<String>,
    /// Those of them that hold a caught error.
    errors: Vec<String>,
}

/// When an expression of a task is evaluated: later ones see more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// `input.from` of the flow.
    Start,
    /// `output.as` of the flow.
    End,
    /// `if` and `input.from` of a task.
    Before,
    /// The task itself, and `output.as`.
    Within,
    /// `export.as`.
    After,
}

/// The names of the variables of the language.
pub(super) const RESERVED: [&str; 8] = [
    "context",
    "input",
    "output",
    "task",
    "workflow",
    "runtime",
    "secrets",
    "authorization",
];

impl Scope {
    pub(super) fn outer() -> Self {
        Self {
            named: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub(super) fn with(&self, names: &[&str]) -> Self {
        let mut scope = self.clone();
        let names = names.iter().map(|name| (*name).to_owned());
        scope.named.extend(names);
        // A variable hides those of the same name around it.
        let own = &scope.named[self.named.len()..];
        scope.errors.retain(|error| !own.contains(error));
        scope
    }

    /// With the variable of a caught error.
    pub(super) fn with_error(&self, name: &str) -> Self {
        let mut scope = self.with(&[name]);
        scope.errors.push(name.to_owned());
        scope
    }

    /// The variable of the innermost caught error.
    pub(super) fn error(&self) -> Option<&str> {
        self.errors.last().map(String::as_str)
    }

    fn variables(&self, moment: Moment) -> Vec<&str> {
        let own: &[&str] = match moment {
            Moment::Start => &["workflow", "runtime"],
            Moment::End => &["context", "workflow", "runtime"],
            Moment::Before => &["context", "task", "workflow", "runtime"],
            Moment::Within => &["context", "input", "task", "workflow", "runtime"],
            Moment::After => &["context", "input", "output", "task", "workflow", "runtime"],
        };
        let named = self.named.iter().map(String::as_str);
        own.iter().copied().chain(named).collect()
    }
}

/// An expression in its braces: where it begins, and its text.
pub(super) fn braced(text: &str) -> Option<(usize, &str)> {
    let start = text.len() - text.trim_start().len();
    let inner = text.trim().strip_prefix("${")?.strip_suffix('}')?;
    Some((start + 2, inner))
}

impl<'a> Walk<'a> {
    /// A field that is always an expression, in braces or bare.
    pub(super) fn expression(
        &mut self,
        value: &Value,
        location: &Location,
        (scope, moment): (&Scope, Moment),
    ) -> Option<Expression> {
        let Some(text) = value.as_str() else {
            let said = format!("An expression is expected, not {}.", kind_of(value));
            let fault = Fault::new(&location.path, Code::BadExpression, said);
            self.fault(fault.hint("Write it as a text: \"${ .amount > 50 }\"."));
            return None;
        };
        let (offset, source) = braced(text).unwrap_or((0, text));
        self.parse(text, (offset, source), location, (scope, moment))
    }

    fn parse(
        &mut self,
        text: &str,
        (offset, source): (usize, &str),
        location: &Location,
        (scope, moment): (&Scope, Moment),
    ) -> Option<Expression> {
        let parsed = Expression::parse(source, &scope.variables(moment));
        let found = match &parsed {
            Ok(expression) => expression.warnings(),
            Err(faults) => faults,
        };
        let is_doubled = parsed.is_err() && source.starts_with('{') && source.ends_with('}');
        for found in found {
            let characters = |byte: usize| {
                let before = text.get(..byte + offset).unwrap_or(text);
                before.chars().count()
            };
            let doubled = || "Write `${ … }` with one brace on each side.".to_owned();
            let fault = Fault {
                path: location.path.clone(),
                code: Code::BadExpression,
                message: found.message.clone(),
                span: Some(Span {
                    start: characters(found.span.start),
                    end: characters(found.span.end),
                }),
                hint: is_doubled.then(doubled).or_else(|| found.hint.clone()),
            };
            match &parsed {
                Ok(_) => self.warn(fault),
                Err(_) => self.fault(fault),
            }
        }
        let expression = parsed.ok()?;
        self.note_reads(&expression.reads(), location, &scope.errors);
        Some(expression)
    }

    /// JSON in which strings may be expressions.
    pub(super) fn template(
        &mut self,
        value: &Value,
        location: &Location,
        at: (&Scope, Moment),
    ) -> Option<Template> {
        match value {
            Value::String(text) => self.text_template(text, location, at),
            Value::Array(items) => {
                let items: Vec<Option<Template>> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.template(item, &location.index(index), at))
                    .collect();
                let items: Vec<Template> = items.into_iter().collect::<Option<_>>()?;
                let is_literal = |item: &Template| matches!(item, Template::Literal(_));
                Some(match items.iter().all(is_literal) {
                    true => Template::Literal(value.clone()),
                    false => Template::Array(items),
                })
            }
            Value::Object(fields) => {
                let fields: Vec<Option<(String, Template)>> = fields
                    .iter()
                    .map(|(key, field)| {
                        let field = self.template(field, &location.key(key), at)?;
                        Some((key.clone(), field))
                    })
                    .collect();
                let fields: Vec<(String, Template)> = fields.into_iter().collect::<Option<_>>()?;
                let is_literal = |(_, field): &(_, Template)| matches!(field, Template::Literal(_));
                Some(match fields.iter().all(is_literal) {
                    true => Template::Literal(value.clone()),
                    false => Template::Object(fields),
                })
            }
            other => Some(Template::Literal(other.clone())),
        }
    }

    fn text_template(
        &mut self,
        text: &str,
        location: &Location,
        (scope, moment): (&Scope, Moment),
    ) -> Option<Template> {
        if let Some(braced) = braced(text) {
            let expression = self.parse(text, braced, location, (scope, moment));
            return expression.map(Template::Expression);
        }
        if let Some(at) = text.find("${") {
            let start = text.get(..at).map_or(0, |before| before.chars().count());
            self.fault(Fault {
                span: Some(Span {
                    start,
                    end: start + 2,
                }),
                ..Fault::new(
                    &location.path,
                    Code::BadExpression,
                    "`${ }` must enclose the whole text.",
                )
                .hint("Put the text into the expression: \"${ \\\"Hello \\\\(.name)\\\" }\".")
            });
            return None;
        }
        if text.contains("{{") && text.contains("}}") {
            let said = "This text is taken as it is: `{{ }}` is no expression.";
            let fault = Fault::new(&location.path, Code::BadExpression, said);
            self.warn(fault.hint("If an expression is meant, write the whole text as `${ … }`."));
        }
        Some(Template::Literal(Value::from(text)))
    }

    /// `from` or `as`: a bare text is an expression.
    pub(super) fn shaping(
        &mut self,
        value: &Value,
        location: &Location,
        at: (&Scope, Moment),
    ) -> Option<Template> {
        match value {
            Value::String(_) => self
                .expression(value, location, at)
                .map(Template::Expression),
            Value::Object(_) | Value::Array(_) => self.template(value, location, at),
            other => {
                let said = format!(
                    "An expression or an object with expressions is expected, not {}.",
                    kind_of(other)
                );
                self.tell(location, Code::BadValue, said);
                None
            }
        }
    }

    /// `input`, `output` or `export`.
    pub(super) fn shape(
        &mut self,
        found: Option<(&Value, Location)>,
        field: &'static str,
        at: (&Scope, Moment),
    ) -> Option<Shape> {
        let Some((value, location)) = found else {
            return Some(Shape::default());
        };
        let mut fields = self.object(value, &location)?;
        let schema = match fields.take("schema") {
            Some((value, location)) => self.schema(value, &location).map(Some),
            None => Some(None),
        };
        let template = match fields.take(field) {
            Some((value, location)) => self.shaping(value, &location, at).map(Some),
            None => Some(None),
        };
        fields.close(self, Part::Other);
        Some(Shape {
            schema: schema?,
            template: template?,
        })
    }

    fn schema(&mut self, value: &Value, location: &Location) -> Option<Schema> {
        let mut fields = self.object(value, location)?;
        let format = fields.take("format");
        let format = format.is_none_or(|(format, location)| match format.as_str() {
            Some("json") => true,
            _ => {
                let said = "The format of a schema has to be json.";
                self.tell(&location, Code::BadSchema, said);
                false
            }
        });
        let document = match fields.has("resource") {
            // It is refused by its name below.
            true => fields.take("document"),
            false => fields.need(self, "document"),
        };
        if fields.has("type") || fields.has("properties") {
            let fault = Fault::new(
                &location.path,
                Code::BadSchema,
                "The JSON Schema belongs under `document`.",
            );
            self.fault(fault.hint("Write it below `document`: {\"document\": {\"type\": …}}."));
            return None;
        }
        fields.close(self, Part::Schema);
        let (document, location) = document?;
        match schema::compile_any(document) {
            Ok(validator) => format.then(|| Schema {
                document: document.clone(),
                validator,
            }),
            Err(fault) => {
                let path = format!("{}{}", location.path, fault.path);
                let said = format!("Expected {}.", fault.expected);
                self.fault(Fault::new(&path, Code::BadSchema, said));
                None
            }
        }
    }

    /// A time that passes, written or computed.
    pub(super) fn time(
        &mut self,
        value: &Value,
        location: &Location,
        (at, longest): ((&Scope, Moment), Duration),
    ) -> Option<Time> {
        match value.as_str() {
            Some(text) if text.trim_start().starts_with("${") => {
                self.expression(value, location, at).map(Time::Computed)
            }
            _ => self.duration(value, location, longest).map(Time::Fixed),
        }
    }

    /// A duration that is written out.
    pub(super) fn duration(
        &mut self,
        value: &Value,
        location: &Location,
        longest: Duration,
    ) -> Option<Duration> {
        let said = match duration::of(value) {
            Ok(found) if found <= longest => return Some(found),
            Ok(_) => {
                let said = match longest.as_secs() / 86_400 {
                    1 => "At most one day is taken.".to_owned(),
                    days => format!("At most {days} days are taken."),
                };
                self.tell(location, Code::TooLarge, said);
                return None;
            }
            Err(said) => said,
        };
        self.tell(location, Code::BadValue, said);
        None
    }

    /// A time longer than nothing.
    pub(super) fn some_time(
        &mut self,
        value: &Value,
        location: &Location,
        of: ((&Scope, Moment), Duration),
    ) -> Option<Time> {
        let time = self.time(value, location, of)?;
        if matches!(time, Time::Fixed(time) if time.is_zero()) {
            self.tell(
                location,
                Code::BadValue,
                "This time must be greater than zero.",
            );
            return None;
        }
        Some(time)
    }

    /// `timeout`: `{after}`, or the name of one that `use.timeouts` declares.
    pub(super) fn timeout(
        &mut self,
        found: Option<(&'a Value, Location)>,
        at: (&Scope, Moment),
    ) -> Option<Option<Time>> {
        let Some((value, location)) = found else {
            return Some(None);
        };
        let (value, location) = match value.as_str() {
            Some(name) => self.find_declared("timeouts", name, &location)?,
            None => (value, location),
        };
        let mut fields = self.object(value, &location)?;
        let after = fields.need(self, "after");
        fields.close(self, Part::Other);
        let (after, location) = after?;
        self.some_time(after, &location, (at, LONGEST)).map(Some)
    }
}
