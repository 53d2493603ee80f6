//! A bounded subset of jq.
//!
//! [`Expression::parse`] reads a text once and tells all unknown names, each with its place and a hint.
//! [`Expression::evaluate`] runs it on a value under a [`Budget`].
//!
//! Guarantees:
//!
//! - An expression is a pure function of its input and its variables. What reads a clock, the environment
//!   or a file is refused when it is parsed.
//!
//! - Every evaluation ends. Its steps bound its time and its memory, and no program catches a spent budget.
//!
//! - Neither a text nor a program exhausts the stack: levels of nesting have a bound. The input must nest no
//!   deeper than readers of JSON allow, which is 128 levels.
//!
//! Deliberately absent: definitions of functions, `reduce` and `foreach`, labels, assignments, modules,
//! dates, NaN and infinite numbers. README.md lists what is taken.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod budget;
mod evaluate;
mod fault;
mod functions;
mod lexer;
mod number;
#[cfg(test)]
mod page;
mod parser;
mod reads;
mod tree;
mod value;

use serde_json::Value as Json;

pub use budget::{Budget, Error, MAX_DEPTH, MAX_WEIGHT};
pub use fault::Fault;
pub use parser::{MAX_NESTING, MAX_SOURCE_BYTES};
pub use reads::Reads;

use evaluate::{Evaluator, Spent, Stop};
use value::Value;

/// An expression that was parsed. Threads may share it.
#[derive(Debug)]
pub struct Expression {
    root: tree::Term,
    variables: Vec<String>,
    warnings: Vec<Fault>,
}

impl Expression {
    /// Parses an expression that may use these variables. Their names stand without the dollar.
    ///
    /// # Errors
    ///
    /// The first fault of grammar ends the reading; unknown names before it are told together, at most 20.
    pub fn parse(source: &str, variables: &[&str]) -> Result<Self, Vec<Fault>> {
        let (root, warnings) = parser::parse(source, variables)?;
        let variables = variables.iter().map(|&name| name.to_owned()).collect();
        Ok(Self {
            root,
            variables,
            warnings,
        })
    }

    /// What was taken, but may be meant otherwise: at most 20.
    #[must_use]
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }

    /// What the expression may read when it is evaluated.
    pub fn reads(&self) -> Reads {
        Reads::of(&self.root, &self.variables)
    }

    /// What the expression puts out for this input. A variable that is not given is null.
    ///
    /// # Errors
    ///
    /// An error that the expression raised and did not catch, or a spent budget. Nothing that was put out
    /// before it counts.
    pub fn evaluate(
        &self,
        input: &Json,
        variables: &[(&str, &Json)],
        budget: &mut Budget,
    ) -> Result<Vec<Json>, Error> {
        let given = self.variables.iter().map(|name| {
            let mut given = variables.iter();
            let found = given.find(|(other, _)| other == name);
            found.map_or(Value::Null, |(_, value)| Value::from(*value))
        });
        let steps = budget.for_one();
        let mut evaluator = Evaluator::new(given.collect(), steps);
        let mut out = Vec::new();
        let ended = evaluator
            .run(&self.root, &Value::from(input), &mut out)
            .and_then(|()| outputs(&mut evaluator, &out));
        let result = ended.map_err(|stop| match stop {
            Stop::Raised(value) => Error::Raised(message(&value)),
            Stop::Spent(Spent::Steps) => budget.spent(),
            Stop::Spent(Spent::Weight) => Error::Weight,
            Stop::Spent(Spent::Depth) => Error::Depth,
        });
        budget.draw(steps - evaluator.steps_left);
        result
    }
}

/// The outputs for the caller: together they are as bounded as one value.
fn outputs<'a>(evaluator: &mut Evaluator<'a>, out: &[Value<'a>]) -> Result<Vec<Json>, Stop<'a>> {
    let mut weight = 0;
    for value in out {
        let size = evaluator.measured(value)?;
        weight += size.weight;
        if weight > MAX_WEIGHT {
            return Err(Stop::Spent(Spent::Weight));
        }
    }
    Ok(out.iter().map(Value::to_json).collect())
}

/// What an error says that the expression raised.
fn message(raised: &Value<'_>) -> String {
    const MAX_LETTERS: usize = 1_000;
    let text = match raised {
        Value::Text(text) => text.as_str().to_owned(),
        // What is not within the bounds of a value is not written out.
        value if value.size(MAX_DEPTH + 1).depth > MAX_DEPTH => {
            format!("The expression raised {}", value.type_name())
        }
        value => format!("The expression raised {}", value.to_json()),
    };
    match text.char_indices().nth(MAX_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
