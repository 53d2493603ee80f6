//! Evaluates what a definition holds: expressions, templates, shapes, times.
//!
//! Guarantees: an evaluation ends, within the steps of one expression and of one transition. What fails is an error of the task
//! at the given path.

use super::raised::Raised;
use super::state::bytes_of;
use crate::flows::definition::duration;
use crate::flows::definition::tree::{LONGEST, Shape, Template, Time};
use crate::text::beginning;
use expressions::{Budget, Expression};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::time::Duration;

/// What expressions may name beside the variables of loops and of caught errors, in the order in which they are given.
pub(super) const VARIABLES: [&str; 6] =
    ["context", "input", "output", "task", "workflow", "runtime"];

/// What the expressions of one template may give together, as JSON, in bytes.
const TEMPLATE_BYTES: usize = 4 * 1024 * 1024;

/// Of what a schema says against a value, and of the value's place, how much is kept, in bytes.
const FAULT_BYTES: usize = 300;

/// What expressions of a task may read beside their input.
pub(super) struct Scope<'a> {
    /// In the order of [`VARIABLES`].
    pub(super) known: [&'a Value; VARIABLES.len()],
    /// The variables of loops and caught errors, outermost first.
    pub(super) named: Vec<(&'a str, Cow<'a, Value>)>,
    /// The task's JSON pointer.
    pub(super) path: &'a str,
}

impl Scope<'_> {
    /// What an expression gives first; nothing is null.
    pub(super) fn evaluate(
        &self,
        expression: &Expression,
        input: &Value,
        budget: &mut Budget,
    ) -> Result<Value, Raised> {
        let known = VARIABLES.into_iter().zip(self.known);
        // The first of a name counts, which is the innermost.
        let named = self.named.iter().rev();
        let named = named.map(|(name, value)| (*name, value.as_ref()));
        let variables: Vec<(&str, &Value)> = named.chain(known).collect();
        let outputs = expression
            .evaluate(input, &variables, budget)
            .map_err(|error| Raised::expression(format!("{error} {}", error.hint()), self.path))?;
        Ok(outputs.into_iter().next().unwrap_or_default())
    }

    /// Whether an expression gives something other than false and null.
    pub(super) fn is_true(
        &self,
        expression: &Expression,
        input: &Value,
        budget: &mut Budget,
    ) -> Result<bool, Raised> {
        let value = self.evaluate(expression, input, budget)?;
        Ok(!matches!(value, Value::Null | Value::Bool(false)))
    }

    /// Whether a condition that may be absent allows it: nothing does.
    pub(super) fn allows(
        &self,
        (when, except_when): (Option<&Expression>, Option<&Expression>),
        input: &Value,
        budget: &mut Budget,
    ) -> Result<bool, Raised> {
        if let Some(when) = when
            && !self.is_true(when, input, budget)?
        {
            return Ok(false);
        }
        match except_when {
            Some(except) => Ok(!self.is_true(except, input, budget)?),
            None => Ok(true),
        }
    }

    /// The value of a template.
    pub(super) fn fill(
        &self,
        template: &Template,
        input: &Value,
        budget: &mut Budget,
    ) -> Result<Value, Raised> {
        self.fill_within(&mut { TEMPLATE_BYTES }, template, input, budget)
    }

    fn fill_within(
        &self,
        left: &mut usize,
        template: &Template,
        input: &Value,
        budget: &mut Budget,
    ) -> Result<Value, Raised> {
        Ok(match template {
            Template::Literal(value) => value.clone(),
            Template::Expression(expression) => {
                let value = self.evaluate(expression, input, budget)?;
                *left = left.checked_sub(bytes_of(&value)).ok_or_else(|| {
                    let said =
                        format!("The expressions of the task gave more than {TEMPLATE_BYTES} bytes of JSON together");
                    Raised::too_large(said, self.path)
                })?;
                value
            }
            Template::Array(items) => {
                let items = items.iter();
                let items = items.map(|item| self.fill_within(left, item, input, budget));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Template::Object(fields) => {
                let mut filled = Map::new();
                for (name, field) in fields {
                    let value = self.fill_within(left, field, input, budget)?;
                    filled.insert(name.clone(), value);
                }
                Value::Object(filled)
            }
        })
    }

    /// The value of a template; null without one.
    pub(super) fn fill_some(
        &self,
        template: Option<&Template>,
        input: &Value,
        budget: &mut Budget,
    ) -> Result<Value, Raised> {
        template.map_or(Ok(Value::Null), |template| {
            self.fill(template, input, budget)
        })
    }

    /// How long a time is.
    pub(super) fn time(
        &self,
        time: &Time,
        input: &Value,
        budget: &mut Budget,
    ) -> Result<Duration, Raised> {
        match time {
            Time::Fixed(duration) => Ok(*duration),
            Time::Computed(expression) => {
                let value = self.evaluate(expression, input, budget)?;
                duration::of(&value)
                    .ok()
                    .filter(|duration| *duration <= LONGEST)
                    .ok_or_else(|| {
                        let said = "An expression for a time gave no ISO 8601 duration or object of units of at most 400 days";
                        Raised::validation(said, self.path)
                    })
            }
        }
    }

    /// What a shape's template makes of a value: the value itself without one.
    pub(super) fn shaped(
        &self,
        shape: &Shape,
        value: &Value,
        budget: &mut Budget,
    ) -> Result<Value, Raised> {
        let template = shape.template.as_ref();
        template.map_or_else(
            || Ok(value.clone()),
            |template| self.fill(template, value, budget),
        )
    }

    /// Checks a value against a shape's schema.
    pub(super) fn check(&self, shape: &Shape, value: &Value) -> Result<(), Raised> {
        let validators = shape.schema.iter().map(|schema| &schema.validator);
        let faults = validators.flat_map(|validator| validator.iter_errors(value));
        let faults: Vec<String> = faults
            .take(5)
            .map(|fault| {
                let said = fault.to_string();
                let said = beginning(&said, FAULT_BYTES);
                match fault.instance_path().as_str() {
                    "" => said.to_owned(),
                    pointer => format!("{}: {said}", beginning(pointer, FAULT_BYTES)),
                }
            })
            .collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Raised::validation(faults.join("; "), self.path)),
        }
    }
}
