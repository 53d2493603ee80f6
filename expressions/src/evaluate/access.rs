//! Reading parts of values: fields, items, slices.

use std::collections::VecDeque;

use super::{Done, Evaluator, Stop, constant_key, shown};
use crate::number;
use crate::tree::{Part, Step, Term};
use crate::value::{Array, Value};

/// The keys of each step, and how their evaluation ended.
pub(super) struct Sought<'a> {
    pub(super) keys: VecDeque<(Keys<'a>, Done<'a>)>,
    /// Each step has a key. Otherwise jq does not evaluate what the steps are read from.
    pub(super) is_any: bool,
}

pub(super) enum Keys<'a> {
    Each,
    Parts(Vec<Value<'a>>),
    Slices(Vec<(Value<'a>, Value<'a>)>),
}

impl Keys<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Each => false,
            Self::Parts(parts) => parts.is_empty(),
            Self::Slices(slices) => slices.is_empty(),
        }
    }

    /// An error further inwards comes before the second key.
    pub(super) fn truncate(&mut self, length: usize) {
        match self {
            Self::Each => {}
            Self::Parts(parts) => parts.truncate(length),
            Self::Slices(slices) => slices.truncate(length),
        }
    }
}

impl<'a> Evaluator<'a> {
    pub(super) fn access(
        &mut self,
        base: &'a Term,
        steps: &'a [Step],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        // The usual case, `.a.b.c`, makes no list.
        let mut current = input.clone();
        let mut read = 0;
        if matches!(base, Term::Identity) {
            for step in steps {
                let Some(key) = constant_key(&step.part) else {
                    break;
                };
                match field(&current, key) {
                    Some(value) => current = value,
                    None => break,
                }
                self.charge(1)?;
                self.charge_bytes(key.len())?;
                read += 1;
            }
        }
        if read == steps.len() {
            out.push(current);
            return Ok(());
        }
        let steps = &steps[read..];
        let sought = self.sought(steps, input)?;
        let mut values = Vec::new();
        let mut ended = match (sought.is_any, read) {
            (false, _) => Ok(()),
            (true, 0) => self.run(base, input, &mut values),
            (true, _) => {
                values.push(current);
                Ok(())
            }
        };
        for (step, (mut keys, keys_ended)) in steps.iter().zip(sought.keys) {
            if let Err(Stop::Spent(_)) = ended {
                return ended;
            }
            if ended.is_err() {
                keys.truncate(1);
            }
            let mut next = Vec::new();
            let parted = self.step(step, &keys, &values, &mut next);
            ended = parted.and(ended).and(keys_ended);
            values = next;
        }
        out.append(&mut values);
        ended
    }

    /// Evaluates the keys of all steps, the last step first, as jq does.
    pub(super) fn sought(&mut self, steps: &'a [Step], input: &Value<'a>) -> Done<'a, Sought<'a>> {
        let mut keys = VecDeque::with_capacity(steps.len());
        let mut is_any = true;
        for step in steps.iter().rev() {
            let (found, ended) = match &step.part {
                _ if !is_any => (Keys::Parts(Vec::new()), Ok(())),
                Part::Each => (Keys::Each, Ok(())),
                Part::Index(term) => {
                    let (parts, ended) = self.outputs(Some(term), input)?;
                    (Keys::Parts(parts), ended)
                }
                Part::Slice(from, until) => self.slices(from.as_ref(), until.as_ref(), input)?,
            };
            is_any = !found.is_empty();
            keys.push_front((found, ended));
        }
        Ok(Sought { keys, is_any })
    }

    /// The bounds of a slice. The end changes fastest, as in jq.
    fn slices(
        &mut self,
        from: Option<&'a Term>,
        until: Option<&'a Term>,
        input: &Value<'a>,
    ) -> Done<'a, (Keys<'a>, Done<'a>)> {
        let (mut froms, ended) = self.outputs(from, input)?;
        if froms.is_empty() {
            return Ok((Keys::Slices(Vec::new()), ended));
        }
        let (untils, inner_ended) = self.outputs(until, input)?;
        if inner_ended.is_err() {
            froms.truncate(1);
        }
        let mut slices = Vec::new();
        for from in froms {
            for until in &untils {
                self.charge(1)?;
                slices.push((from.clone(), until.clone()));
            }
        }
        Ok((Keys::Slices(slices), inner_ended.and(ended)))
    }

    /// The parts of values that one step names.
    fn step(
        &mut self,
        step: &Step,
        keys: &Keys<'a>,
        values: &[Value<'a>],
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        match keys {
            Keys::Each => {
                for value in values {
                    let parts = self.each(value);
                    self.keep(step, parts, out, |out, parts| out.extend(parts))?;
                }
            }
            Keys::Parts(keys) => {
                for key in keys {
                    for value in values {
                        self.charge(1)?;
                        let part = self.index(value, key);
                        self.keep(step, part, out, Vec::push)?;
                    }
                }
            }
            Keys::Slices(slices) => {
                for (from, until) in slices {
                    for value in values {
                        let part = self.slice(value, from, until);
                        self.keep(step, part, out, Vec::push)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Keeps what was read; an error is nothing where the step is optional.
    fn keep<T>(
        &mut self,
        step: &Step,
        read: Done<'a, T>,
        out: &mut Vec<Value<'a>>,
        keep: impl FnOnce(&mut Vec<Value<'a>>, T),
    ) -> Done<'a> {
        match read {
            Ok(read) => keep(out, read),
            Err(Stop::Raised(_)) if step.is_optional => {}
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    /// What a term put out, and how it ended unless a budget is spent. Without a term it is null.
    pub(super) fn outputs(
        &mut self,
        term: Option<&'a Term>,
        input: &Value<'a>,
    ) -> Done<'a, (Vec<Value<'a>>, Done<'a>)> {
        let Some(term) = term else {
            return Ok((vec![Value::Null], Ok(())));
        };
        let mut put_out = Vec::new();
        match self.run(term, input, &mut put_out) {
            Err(Stop::Spent(spent)) => Err(Stop::Spent(spent)),
            ended => Ok((put_out, ended)),
        }
    }

    /// The items of an array or the values of an object.
    pub(super) fn each(&mut self, value: &Value<'a>) -> Done<'a, Vec<Value<'a>>> {
        match value {
            Value::Array(items) => {
                self.charge(2 * items.len() as u64)?;
                Ok(items.iter().collect())
            }
            Value::Object(fields) => {
                self.charge(2 * fields.len() as u64)?;
                Ok(fields.iter().map(|(_, value)| value).collect())
            }
            _ => self.raise(format!("Cannot iterate over {}", shown(value))),
        }
    }

    pub(super) fn index(&mut self, value: &Value<'a>, key: &Value<'a>) -> Done<'a, Value<'a>> {
        match (value, key) {
            (Value::Object(fields), Value::Text(key)) => {
                self.charge_bytes(key.as_str().len())?;
                Ok(fields.get(key.as_str()).unwrap_or(Value::Null))
            }
            (Value::Array(items), Value::Number(at)) => {
                let at = number::place(at, items.len());
                Ok(at.and_then(|at| items.get(at)).unwrap_or(Value::Null))
            }
            (Value::Null, Value::Text(_) | Value::Number(_) | Value::Null) => Ok(Value::Null),
            (Value::Array(_), Value::Array(_)) => self.indices(value, key),
            _ => self.raise(format!("Cannot index {} with {}", shown(value), shown(key))),
        }
    }

    pub(super) fn slice(
        &mut self,
        value: &Value<'a>,
        from: &Value<'a>,
        until: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        let places = |length: usize| {
            let from = match from {
                Value::Null => Some(0),
                Value::Number(from) => Some(number::bound(number::float(from).floor(), length)),
                _ => None,
            }?;
            let until = match until {
                Value::Null => Some(length),
                Value::Number(until) => Some(number::bound(number::float(until).ceil(), length)),
                _ => None,
            }?;
            Some(from..until.max(from))
        };
        match value {
            Value::Null => Ok(Value::Null),
            Value::Array(items) => match (places(items.len()), items) {
                (None, _) => self.raise("The bounds of a slice must be numbers".to_owned()),
                (Some(places), Array::Borrowed(items)) => {
                    Ok(Value::Array(Array::Borrowed(&items[places])))
                }
                (Some(places), Array::Made(items)) => self.array(items.inner[places].to_vec()),
            },
            Value::Text(text) => {
                let text = text.as_str();
                self.charge_bytes(text.len())?;
                match places(text.chars().count()) {
                    Some(places) => {
                        self.text(text.chars().skip(places.start).take(places.len()).collect())
                    }
                    None => self.raise("The bounds of a slice must be numbers".to_owned()),
                }
            }
            _ => self.raise(format!("Cannot take a slice of {}", shown(value))),
        }
    }
}

/// A field of an object, or null of null; `None` if it takes the long way.
fn field<'a>(value: &Value<'a>, key: &str) -> Option<Value<'a>> {
    match value {
        Value::Object(fields) => Some(fields.get(key).unwrap_or(Value::Null)),
        Value::Null => Some(Value::Null),
        _ => None,
    }
}
