//! Reading parts of values: fields, items, slices.

use super::{Done, Evaluator, Stop, constant_key, shown};
use crate::number;
use crate::tree::{Part, Step, Term};
use crate::value::{Array, Value};

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
        let mut values = Vec::new();
        let mut ended = match read {
            0 => self.run(base, input, &mut values),
            _ => {
                values.push(current);
                Ok(())
            }
        };
        for step in &steps[read..] {
            if let Err(Stop::Spent(_)) = ended {
                return ended;
            }
            let mut next = Vec::new();
            let parted = self.step(step, &values, input, &mut next);
            if parted.is_err() {
                ended = parted;
            }
            values = next;
        }
        out.append(&mut values);
        ended
    }

    /// The parts of values that one step names.
    fn step(
        &mut self,
        step: &'a Step,
        values: &[Value<'a>],
        input: &Value<'a>,
        out: &mut Vec<Value<'a>>,
    ) -> Done<'a> {
        match &step.part {
            Part::Each => {
                for value in values {
                    let parts = self.each(value);
                    self.keep(step, parts, out, |out, parts| out.extend(parts))?;
                }
            }
            Part::Index(term) => {
                for key in self.all(term, input)? {
                    for value in values {
                        self.charge(1)?;
                        let part = self.index(value, &key);
                        self.keep(step, part, out, Vec::push)?;
                    }
                }
            }
            Part::Slice(from, until) => {
                // The end changes fastest, as in jq.
                for from in self.bounds(from.as_ref(), input)? {
                    for until in self.bounds(until.as_ref(), input)? {
                        for value in values {
                            let part = self.slice(value, &from, &until);
                            self.keep(step, part, out, Vec::push)?;
                        }
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

    pub(super) fn bounds(
        &mut self,
        bound: Option<&'a Term>,
        input: &Value<'a>,
    ) -> Done<'a, Vec<Value<'a>>> {
        match bound {
            Some(bound) => self.all(bound, input),
            None => Ok(vec![Value::Null]),
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
