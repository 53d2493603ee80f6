//! The evaluator: it walks the tree and pushes the outputs of each term.
//!
//! Guarantees:
//!
//! - Every call of [`Evaluator::run`], and every value that is made or copied, costs steps. The stack is
//!   bounded by the levels of the tree and of the data.
//!
//! - What a term put out before it failed stays put out, as in jq.
//!
//! A generator runs to its end even if only its first output is wanted: `first(range(1000000))` costs as
//! much as `last(range(1000000))`.

mod access;
mod calls;
mod collections;
mod combinations;
mod generators;
mod operators;
mod paths;
mod regexes;
mod strings;

use crate::budget::{MAX_DEPTH, MAX_WEIGHT};
use crate::tree::{Operator, Part, Pattern, Term};
use crate::value::{Array, ENTRY, Fields, Measured, Object, SCALAR, Size, Text, Value};

/// How many levels of data are walked through at once, over all functions that walk.
const MAX_WALKED: usize = 2 * MAX_DEPTH;

/// Why a term ended early.
#[derive(Debug)]
pub(crate) enum Stop<'a> {
    /// An error, which `try` catches.
    Raised(Value<'a>),
    /// A spent budget, which nothing catches.
    Spent(Spent),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Spent {
    Steps,
    Weight,
    Depth,
}

type Done<'a, T = ()> = Result<T, Stop<'a>>;

/// The values of a pattern's variables, in their order.
type Way<'a> = Vec<Value<'a>>;

pub(crate) struct Evaluator<'a> {
    /// What the terms in scope bound.
    pub(crate) variables: Vec<Value<'a>>,
    pub(crate) steps_left: u64,
    walked: usize,
    regexes: regexes::Cache,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(variables: Vec<Value<'a>>, steps: u64) -> Self {
        Self {
            variables,
            steps_left: steps,
            walked: 0,
            regexes: regexes::Cache::default(),
        }
    }

    /// Pushes what a term puts out.
    pub(crate) fn run(
        &mut self,
        term: &'a Term,
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        self.charge(2)?;
        match term {
            Term::Identity => out.push(input.clone()),
            Term::Constant(json) => out.push(Value::from(json)),
            Term::Variable(place) => out.push(self.variables[*place].clone()),
            Term::Access(base, steps) => return self.access(base, steps, input, out),
            Term::Pipe(stages) => return self.pipe(stages, input, out),
            Term::Chain(first, rest) => return self.chain(first, rest, input, out),
            Term::Call(function, arguments) => return self.call(*function, arguments, input, out),
            Term::Object(entries) => return self.object(entries, input, out),
            Term::Array(inner) => return self.collect(inner.as_deref(), input, out),
            Term::Comma(parts) => {
                for part in parts {
                    self.run(part, input, out)?;
                }
            }
            Term::If {
                branches,
                otherwise,
            } => {
                return self.branch(branches, otherwise.as_deref(), input, out);
            }
            Term::Alternative(parts) => return self.alternative(parts, input, out),
            Term::Try { body, catch } => return self.attempt(body, catch.as_deref(), input, out),
            Term::Bind {
                source,
                pattern,
                body,
            } => {
                return self.bind(source, pattern, body, input, out);
            }
            Term::Negate(term) => return self.negate(term, input, out),
            Term::Text { format, pieces } => return self.interpolate(*format, pieces, input, out),
            Term::Format(format) => out.push(self.formatted(*format, input)?),
        }
        Ok(())
    }

    /// All that a term puts out, if it does not fail.
    fn all(&mut self, term: &'a Term, input: &Value<'a>) -> Done<'a, Vec<Value<'a>>> {
        let mut out = Vec::new();
        self.run(term, input, &mut out)?;
        Ok(out)
    }

    fn charge(&mut self, steps: u64) -> Done<'a> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => {
                self.steps_left = 0;
                Err(Stop::Spent(Spent::Steps))
            }
        }
    }

    /// One step for each 16 bytes that are made or moved.
    fn charge_bytes(&mut self, bytes: usize) -> Done<'a> {
        self.charge(bytes as u64 / 16)
    }

    fn raise<T>(&mut self, message: String) -> Done<'a, T> {
        Err(Stop::Raised(Value::text(message)))
    }

    /// The size of a value; to know that of borrowed data costs a step for each value in it.
    fn size(&mut self, value: &Value<'a>) -> Done<'a, Size> {
        let size = value.size(MAX_DEPTH + 1);
        self.charge(size.seen as u64 / 4)?;
        Ok(size)
    }

    /// The size of a value that is within the bounds; knowing it and copying it out is charged.
    pub(crate) fn measured(&mut self, value: &Value<'a>) -> Done<'a, Size> {
        let size = self.size(value)?;
        self.within_bounds(size)?;
        self.charge_bytes(size.weight)?;
        Ok(size)
    }

    fn within_bounds(&self, size: Size) -> Done<'a> {
        if size.weight > MAX_WEIGHT {
            return Err(Stop::Spent(Spent::Weight));
        }
        if size.depth > MAX_DEPTH {
            return Err(Stop::Spent(Spent::Depth));
        }
        Ok(())
    }

    fn text(&mut self, text: String) -> Done<'a, Value<'a>> {
        self.charge_bytes(text.len())?;
        if text.len() > MAX_WEIGHT {
            return Err(Stop::Spent(Spent::Weight));
        }
        Ok(Value::text(text))
    }

    fn array(&mut self, items: Vec<Value<'a>>) -> Done<'a, Value<'a>> {
        self.charge(2 * items.len() as u64)?;
        let mut size = Size {
            weight: SCALAR,
            depth: 1,
            seen: 1,
        };
        for item in &items {
            size.add(self.size(item)?);
        }
        self.within_bounds(size)?;
        Ok(Value::Array(Array::Made(
            Measured { inner: items, size }.into(),
        )))
    }

    fn fields(&mut self, fields: Fields<'a>) -> Done<'a, Value<'a>> {
        self.charge(8 + 8 * fields.len() as u64)?;
        self.charge_bytes(fields.keys().map(|key| key.as_str().len()).sum())?;
        let mut size = Size {
            weight: SCALAR,
            depth: 1,
            seen: 1,
        };
        for (key, value) in &fields {
            size.add(self.size(value)?);
            size.weight += ENTRY + key.as_str().len();
        }
        self.within_bounds(size)?;
        Ok(Value::Object(Object::Made(
            Measured {
                inner: fields,
                size,
            }
            .into(),
        )))
    }

    /// An object's entries, to be changed.
    fn copied(&mut self, object: &Object<'a>) -> Done<'a, Fields<'a>> {
        let mut fields = Fields::with_capacity(object.len());
        self.extend(&mut fields, object)?;
        Ok(fields)
    }

    /// Adds an object's entries. Each key is hashed, so its letters cost.
    fn extend(&mut self, fields: &mut Fields<'a>, object: &Object<'a>) -> Done<'a> {
        self.charge(8 * object.len() as u64)?;
        self.charge_bytes(object.key_bytes())?;
        fields.extend(object.iter());
        Ok(())
    }

    /// Sets one entry of an object that is being made, whose key may have come before.
    fn insert(&mut self, fields: &mut Fields<'a>, key: Text<'a>, value: Value<'a>) -> Done<'a> {
        self.charge_bytes(key.as_str().len())?;
        fields.insert(key, value);
        Ok(())
    }

    /// Stage by stage. What a stage put out before it failed goes through the later ones, and an error
    /// there comes first.
    fn pipe(
        &mut self,
        stages: &'a [Term],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let Some((last, before)) = stages.split_last() else {
            return Ok(());
        };
        let mut ended = Ok(());
        let mut current = vec![input.clone()];
        for stage in before {
            let mut next = Vec::new();
            for value in &current {
                match self.run(stage, value, &mut next) {
                    Ok(()) => {}
                    Err(Stop::Spent(spent)) => return Err(Stop::Spent(spent)),
                    raised => {
                        ended = raised;
                        break;
                    }
                }
            }
            current = next;
        }
        for value in &current {
            self.run(last, value, out)?;
        }
        ended
    }

    fn collect(
        &mut self,
        inner: Option<&'a Term>,
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let items = match inner {
            Some(inner) => self.all(inner, input)?,
            None => Vec::new(),
        };
        out.push(self.array(items)?);
        Ok(())
    }

    fn branch(
        &mut self,
        branches: &'a [(Term, Term)],
        otherwise: Option<&'a Term>,
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        self.choose(
            branches,
            otherwise,
            input,
            &mut |this, chosen| match chosen {
                Some(term) => this.run(term, input, out),
                None => {
                    out.push(input.clone());
                    Ok(())
                }
            },
        )
    }

    /// Goes on with what conditions choose, which is nothing without an `else`. Each output of a condition chooses once.
    fn choose(
        &mut self,
        mut branches: &'a [(Term, Term)],
        otherwise: Option<&'a Term>,
        input: &Value<'a>,
        go_on: &mut dyn FnMut(&mut Self, Option<&'a Term>) -> Done<'a>,
    ) -> Done<'a> {
        while let Some(((condition, then), rest)) = branches.split_first() {
            let mut conditions = Vec::new();
            let ended = self.run(condition, input, &mut conditions);
            if let ([only], Ok(())) = (conditions.as_slice(), &ended) {
                if only.is_true() {
                    return go_on(self, Some(then));
                }
                branches = rest;
                continue;
            }
            if let Err(Stop::Spent(_)) = ended {
                return ended;
            }
            self.walking(|this| {
                for condition in conditions {
                    match condition.is_true() {
                        true => go_on(this, Some(then))?,
                        false => this.choose(rest, otherwise, input, go_on)?,
                    }
                }
                Ok(())
            })?;
            return ended;
        }
        go_on(self, otherwise)
    }

    /// The true outputs of the first part that has any, else what the last part puts out. An error is no
    /// absence: it is not caught.
    fn alternative(
        &mut self,
        parts: &'a [Term],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let Some((last, before)) = parts.split_last() else {
            return Ok(());
        };
        for part in before {
            let start = out.len();
            let ended = self.run(part, input, out);
            let put_out = out.split_off(start);
            out.extend(put_out.into_iter().filter(Value::is_true));
            ended?;
            if out.len() > start {
                return Ok(());
            }
        }
        self.run(last, input, out)
    }

    fn attempt(
        &mut self,
        body: &'a Term,
        catch: Option<&'a Term>,
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        match (self.run(body, input, out), catch) {
            (Err(Stop::Raised(raised)), Some(catch)) => self.run(catch, &raised, out),
            (Err(Stop::Raised(_)), None) => Ok(()),
            (ended, _) => ended,
        }
    }

    fn bind(
        &mut self,
        source: &'a Term,
        pattern: &'a Pattern,
        body: &'a Term,
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        let mut sources = Vec::new();
        let ended = self.run(source, input, &mut sources);
        if let Err(Stop::Spent(_)) = ended {
            return ended;
        }
        let outer = self.variables.len();
        for value in &sources {
            let mut ways = Vec::new();
            let destructured = self.destructure(pattern, value, input, vec![Vec::new()], &mut ways);
            if let Err(Stop::Spent(_)) = destructured {
                return destructured;
            }
            for bound in ways {
                self.charge(2 * bound.len() as u64)?;
                self.variables.extend(bound);
                let ran = self.run(body, input, out);
                self.variables.truncate(outer);
                ran?;
            }
            destructured?;
        }
        ended
    }

    /// The ways to bind the variables of a pattern, each after one of the ways to bind those before them. Those that
    /// were found before an error stand.
    fn destructure(
        &mut self,
        pattern: &'a Pattern,
        value: &Value<'a>,
        input: &Value<'a>,
        mut ways: Vec<Way<'a>>,
        out: &mut Vec<Way<'a>>,
    ) -> Done<'a> {
        self.charge(2 * ways.len() as u64)?;
        let mut ended = Ok(());
        match pattern {
            Pattern::Variable => {
                for way in &mut ways {
                    way.push(value.clone());
                }
            }
            Pattern::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let part = self.index(value, &Value::from(at))?;
                    let mut next = Vec::new();
                    let destructured = self.destructure(item, &part, input, ways, &mut next);
                    ended = destructured.and(ended);
                    ways = next;
                }
            }
            Pattern::Object(entries) => {
                for entry in entries {
                    let mut next = Vec::new();
                    for way in ways {
                        let destructured =
                            self.destructure_entry(entry, value, input, way, &mut next);
                        if destructured.is_err() {
                            ended = destructured;
                            break;
                        }
                    }
                    ways = next;
                }
            }
        }
        out.append(&mut ways);
        ended
    }

    /// One entry of a pattern, after one way to bind the variables before it.
    fn destructure_entry(
        &mut self,
        (key, is_bound, inner): &'a (Term, bool, Option<Pattern>),
        value: &Value<'a>,
        input: &Value<'a>,
        way: Way<'a>,
        out: &mut Vec<Way<'a>>,
    ) -> Done<'a> {
        let outer = self.variables.len();
        self.variables.extend(way.iter().cloned());
        let keys = self.outputs(Some(key), input);
        self.variables.truncate(outer);
        let (keys, ended) = keys?;
        for key in keys {
            self.charge(2 + 2 * way.len() as u64)?;
            let part = self.index(value, &key)?;
            let mut way = way.clone();
            if *is_bound {
                way.push(part.clone());
            }
            match inner {
                Some(inner) => self.destructure(inner, &part, input, vec![way], out)?,
                None => out.push(way),
            }
        }
        ended
    }

    /// One level further down, whose depth the tree does not bound.
    fn walking<T>(&mut self, go: impl FnOnce(&mut Self) -> Done<'a, T>) -> Done<'a, T> {
        if self.walked == MAX_WALKED {
            return Err(Stop::Spent(Spent::Depth));
        }
        self.walked += 1;
        let gone = go(self);
        self.walked -= 1;
        gone
    }
}

/// A key under which an object can be read without evaluating anything.
fn constant_key(part: &Part) -> Option<&str> {
    match part {
        Part::Index(Term::Constant(serde_json::Value::String(key))) => Some(key),
        _ => None,
    }
}

/// A value in a message: its type and the start of its text.
fn shown(value: &Value<'_>) -> String {
    let text = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_json().to_string(),
        Value::Text(text) => {
            let start: String = text.as_str().chars().take(40).collect();
            let is_cut = start.len() < text.as_str().len();
            format!("{start:?}{}", if is_cut { "…" } else { "" })
        }
        Value::Array(items) => format!("of {} items", items.len()),
        Value::Object(fields) => format!("of {} fields", fields.len()),
    };
    format!("{} ({text})", value.type_name())
}

/// The values of one type and the operator's name, for messages.
fn name_of(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "added",
        Operator::Subtract => "subtracted",
        Operator::Multiply => "multiplied",
        _ => "divided",
    }
}

/// The letters of a text value.
fn letters<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value {
        Value::Text(text) => Some(Text::as_str(text)),
        _ => None,
    }
}
